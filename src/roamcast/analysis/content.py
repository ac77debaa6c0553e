"""Which documents meet which interests, in Spark.

Spark takes XPath as a constant only, not from a column, so our own implementation evaluates it, in Arrow batches.
Compiled interests and documents are cached in the executor's Python. The cost is proportional to the product of
publications and open subscriptions within a run, at about a microsecond each.
"""

from functools import lru_cache

from pyspark.sql import Column
from pyspark.sql import functions as f
from pyspark.sql.types import BooleanType

from roamcast.interests import Interest, parse_interest

_CACHED = 4096


def document_meets(interest: str, document: str) -> Column:
    """Whether the document in one column meets the interest in the other."""
    return f.udf(_meets, BooleanType(), useArrow=True)(interest, document)


def _meets(interest: str, document: str) -> bool:
    return _interest(interest).contains(document)


@lru_cache(_CACHED)
def _interest(text: str) -> Interest:
    return parse_interest("content", text)
