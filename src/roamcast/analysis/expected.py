"""Which nodes should have received which events, by joins that stay small. `roamcast.trace.pairs` has the definition.

A subscription's interest is a list of *terms*, each with the node that asks and the period in which it is open: number
ranges or topic patterns. Comparing every publication with every term of its run would take the product of the two, so
both are put into buckets first, and only rows in the same bucket of the same run are compared:

- Numbers: the span of a run's publications is cut into `BUCKETS` equal pieces. A publication is in one of them, a range
  in each that it touches; so at most about one comparison in `BUCKETS` per edge is wasted.
- Topics: a pattern's bucket is its leading names, up to the first wildcard. A topic is in the buckets of all its
  prefixes, `a/b` in those of ``, `a` and `a/b`. Inside a bucket a regular expression made from the pattern decides.
- Documents: each is compared with every open interest of its run, by the interest itself.
"""

from collections.abc import Iterable
from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from roamcast.analysis.content import document_meets
from roamcast.analysis.traces import RUN, of_kind

BUCKETS = 64


def subscription_periods(trace: DataFrame) -> DataFrame:
    """Each interest of a node and the period `[from_s, until_s)` in which it is open; open ends are infinite."""
    by_interest = Window.partitionBy(RUN, "node", "category", "detail").orderBy("t", f.col("kind") == "subscribed")
    subscribes = f.col("kind") == "subscribed"
    changes = (
        of_kind(trace, "subscribed", "unsubscribed")
        .withColumn("was_open", f.coalesce(f.lag(subscribes).over(by_interest), f.lit(False)))
        .where(subscribes != f.col("was_open"))
    )
    return (
        changes.withColumn("until_s", f.coalesce(f.lead("t").over(by_interest), f.lit(float("inf"))))
        .where(subscribes & (f.col("t") < f.col("until_s")))
        .select(
            RUN,
            "node",
            f.col("category").alias("language"),
            f.col("detail").alias("interest"),
            f.col("t").alias("from_s"),
            "until_s",
        )
    )


def publications(trace: DataFrame) -> DataFrame:
    return of_kind(trace, "published").select(
        RUN,
        "event_id",
        f.col("node").alias("publisher"),
        "t",
        "value",
        f.col("detail").alias("topic"),
        f.col("category").alias("language"),
        "shortest_hops",
    )


def interval_matches(published: DataFrame, periods: DataFrame) -> DataFrame:
    """Pairs whose number is in an open range; a pair comes once per range that matches."""
    numbers = published.where((f.col("language") == "intervals") & f.col("value").isNotNull())
    spans = numbers.groupBy(RUN).agg(f.min("value").alias("least"), f.max("value").alias("most"))
    parts = f.split("term", r"\.\.")
    terms = (
        _terms(periods, "intervals")
        .withColumn("low", parts[0].cast("double"))
        .withColumn("high", parts[1].cast("double"))
        .join(f.broadcast(spans), RUN)
        .where((f.col("low") <= f.col("most")) & (f.col("least") < f.col("high")))
        .withColumn("first", _bucket(f.greatest("low", "least")))
        .withColumn("last", _bucket(f.least("high", "most")))
        .withColumn("bucket", f.explode(f.sequence("first", "last")))
        .select(RUN, "bucket", "node", "from_s", "until_s", "low", "high")
    )
    dealt = numbers.join(f.broadcast(spans), RUN).withColumn("bucket", _bucket(f.col("value")))
    inside = (f.col("low") <= f.col("value")) & (f.col("value") < f.col("high"))
    return dealt.join(terms, [RUN, "bucket"]).where(inside & _wanted()).select(RUN, "event_id", "node", _shortest())


def topic_matches(published: DataFrame, periods: DataFrame) -> DataFrame:
    """Pairs whose topic fits an open pattern; a pair comes once per pattern that matches."""
    levels = f.split("term", "/")
    names_first = f.regexp_extract("term", r"^((?:[^*/]+(?:/|$))*)", 1)
    terms = (
        _terms(periods, "topics")
        .withColumn("bucket", f.regexp_replace(names_first, "/$", ""))
        .withColumn("expression", f.concat(f.lit("^"), f.array_join(f.transform(levels, _level), ""), f.lit("$")))
        .select(RUN, "bucket", "node", "from_s", "until_s", "expression")
    )
    topics = published.where((f.col("language") == "topics") & f.col("topic").isNotNull())
    steps = f.split("topic", "/")
    depths = f.sequence(f.lit(0), f.size(steps))
    prefixes = f.transform(depths, lambda depth: f.array_join(f.slice(steps, f.lit(1), depth), "/"))
    dealt = topics.withColumn("bucket", f.explode(prefixes))
    fits = f.regexp_like(f.concat("topic", f.lit("/")), f.col("expression"))
    return dealt.join(terms, [RUN, "bucket"]).where(_wanted() & fits).select(RUN, "event_id", "node", _shortest())


def content_matches(published: DataFrame, periods: DataFrame) -> DataFrame:
    """Pairs whose document meets an open interest."""
    interests = periods.where((f.col("language") == "content") & (f.col("interest") != "")).drop("language")
    documents = published.where((f.col("language") == "content") & f.col("topic").isNotNull())
    pairs = documents.join(interests, RUN).where(_wanted())
    return pairs.where(document_meets("interest", "topic")).select(RUN, "event_id", "node", _shortest())


MATCHES = {"intervals": interval_matches, "topics": topic_matches, "content": content_matches}


def matches(trace: DataFrame, languages: Iterable[str] = tuple(MATCHES)) -> DataFrame:
    """Every expected pair, perhaps repeated, with the length of its shortest path (-1: none, or unknown)."""
    published, periods = publications(trace), subscription_periods(trace)
    spoken = [MATCHES[language](published, periods) for language in sorted(languages)]
    return reduce(DataFrame.unionByName, spoken).select(RUN, "event_id", "node", "shortest")


def expected_pairs(trace: DataFrame) -> DataFrame:
    """Every expected pair once."""
    return matches(trace).dropDuplicates([RUN, "event_id", "node"]).select(RUN, "event_id", "node", "shortest")


def _terms(periods: DataFrame, language: str) -> DataFrame:
    spoken = periods.where((f.col("language") == language) & (f.trim("interest") != ""))
    return spoken.withColumn("term", f.explode(f.split(f.trim("interest"), r"\s+")))


def _bucket(value: Column) -> Column:
    span = f.col("most") - f.col("least")
    return f.when(span > 0, f.floor((value - f.col("least")) / span * BUCKETS)).otherwise(f.lit(0)).cast("int")


def _wanted() -> Column:
    """The subscription is open when the event is published, and is not the publisher's own."""
    return (f.col("from_s") <= f.col("t")) & (f.col("t") < f.col("until_s")) & (f.col("node") != f.col("publisher"))


def _shortest() -> Column:
    """Lists start with node 0, and a live trace has none."""
    return f.coalesce(f.get("shortest_hops", f.col("node").cast("int")).cast("int"), f.lit(-1)).alias("shortest")


def _level(level: Column) -> Column:
    """What one level of a pattern means for a topic whose levels all end in a slash."""
    literal = f.concat(f.lit(r"\Q"), f.replace(level, f.lit(r"\E"), f.lit(r"\E\\E\Q")), f.lit(r"\E/"))
    return f.when(level == "**", r"(?:[^/]+/)*").when(level == "*", "[^/]+/").otherwise(literal)
