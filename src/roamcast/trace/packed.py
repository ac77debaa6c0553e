"""The binary form of trace rows: what a recorder keeps, numpy reads and a trace's hash covers.

A row is one bit per field that is present, then the fields: numbers as they are, texts as places in a table of texts,
lists as their lengths. The elements of all lists lie apart, one after the other.
"""

from typing import NamedTuple

import numpy as np

from roamcast.trace.schema import FIELDS

_CODES = {"float64": "d", "int64": "q", "int32": "i"}  # texts and lists: a number of 32 bits

LAYOUT = "I" + "".join(_CODES.get(field.type, "I") for field in FIELDS)
ROW = np.dtype(
    [(name, f"<{code}") for name, code in zip(["present", *(field.name for field in FIELDS)], LAYOUT, strict=True)]
)
ELEMENT = np.dtype("<i2")


class PackedRows(NamedTuple):
    """Everything that a recorder has."""

    run_id: str
    texts: tuple[str, ...]  # what rows mean by the places of texts
    parts: list[tuple[bytes, bytes]]  # rows of `ROW`, and the elements of their lists
