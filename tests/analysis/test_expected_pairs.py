"""The bucketed joins against a brute-force twin: every publication with every subscription, in plain Python."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from roamcast.analysis.expected import expected_pairs, interval_matches, publications, subscription_periods
from roamcast.events import Event
from roamcast.interests import parse_interest

# One example is a whole table of runs: asking Spark is slow, so each question is a big one.
few_but_big = settings(max_examples=2, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
NODES = 4

numbers = st.one_of(st.integers(-5, 105), st.floats(-5, 105, allow_nan=False).map(lambda x: round(x, 2)))
ranges = st.tuples(numbers, numbers).map(sorted).filter(lambda pair: pair[0] < pair[1])
intervals = st.lists(ranges, min_size=1, max_size=3).map(lambda found: " ".join(f"{a}..{b}" for a, b in found))
levels = st.sampled_from(["a", "b", "a.b", "*", "**"])
patterns = st.lists(levels, min_size=1, max_size=4).map("/".join)
topics = st.lists(st.sampled_from(["a", "b", "a.b"]), min_size=1, max_size=4).map("/".join)
times = st.integers(0, 6).map(float)


class Speech(NamedTuple):
    """What one run's applications say: (t, node, on, interest) and (t, node, content)."""

    language: str
    changes: list[tuple[float, int, bool, str]]
    contents: list[tuple[float, int, float | str]]


def speeches(language: Any, interests: Any, contents: Any) -> Any:
    changes = st.tuples(times, st.integers(0, NODES - 1), st.sampled_from([True, True, False]), interests)
    said = st.tuples(times, st.integers(0, NODES - 1), contents)
    return st.builds(Speech, st.just(language), st.lists(changes, max_size=8), st.lists(said, max_size=6))


def brute_force(speech: Any) -> Any:
    """The definition, word by word: the last word before or at the time of publication counts."""
    found = set()
    for event_id, (t, publisher, content) in enumerate(speech.contents, 1):
        for node in range(NODES):
            words = {}
            for at, who, on, text in sorted(speech.changes, key=lambda change: (change[0], change[2])):
                if who == node and at <= t:
                    words[text] = on
            event = Event(event_id, t, content)
            wanted = any(on and parse_interest(speech.language, text).matches(event) for text, on in words.items())
            if wanted and node != publisher:
                found.add((event_id, node))
    return found


def records(rows: Any, speech: Any) -> Iterator[Any]:
    for t, node, on, text in speech.changes:
        yield (rows.subscribed if on else rows.unsubscribed)(t, node, text, speech.language)
    for event_id, (t, node, content) in enumerate(speech.contents, 1):
        yield rows.published(t, node, event_id, content)
    yield rows.ended(7, NODES)


def check(spark: SparkSession, rows: Any, runs: Any) -> None:
    tables = [rows.table(f"run{place:02d}", list(records(rows, speech))) for place, speech in enumerate(runs)]
    answer = expected_pairs(rows.frame(spark, *tables)).collect()
    pairs = {(row.run_id, row.event_id, row.node) for row in answer}
    assert len(pairs) == len(answer)  # each pair once
    assert pairs == {(f"run{place:02d}", *pair) for place, speech in enumerate(runs) for pair in brute_force(speech)}


@few_but_big
@given(st.lists(speeches("intervals", intervals, numbers), min_size=40, max_size=60))
def test_interval_join_finds_what_comparing_everything_finds(spark: SparkSession, rows: Any, runs: Any) -> None:
    check(spark, rows, runs)


@few_but_big
@given(st.lists(speeches("topics", patterns, topics), min_size=40, max_size=60))
def test_topic_join_finds_what_comparing_everything_finds(spark: SparkSession, rows: Any, runs: Any) -> None:
    check(spark, rows, runs)


def test_names_are_taken_literally(spark: SparkSession, rows: Any) -> None:
    """A dot or a \\E in a topic's name is no regular expression."""
    speech = Speech(
        "topics",
        [(0.0, 1, True, "a.b/*"), (0.0, 2, True, r"x\Ey/**"), (0.0, 3, True, "**/(c")],
        [(1.0, 0, "a.b/c"), (1.0, 0, "aXb/c"), (1.0, 0, r"x\Ey"), (1.0, 0, r"x\Ey/q/r"), (1.0, 0, "z/(c")],
    )
    check(spark, rows, [speech])
    assert len(brute_force(speech)) == 4


def test_the_interval_join_does_not_compare_everything(spark: SparkSession, rows: Any) -> None:
    """Thousands of subscriptions and hundreds of events meet in buckets, not in the product of both."""
    subscriptions = [rows.subscribed(0.0, node % 50, f"{node * 5}..{node * 5 + 100}") for node in range(2000)]
    events = [rows.published(1.0, 99, 1 + number, number * 20.0) for number in range(500)]
    trace = rows.frame(spark, rows.table("run", subscriptions + events))
    matched = interval_matches(publications(trace), subscription_periods(trace))
    assert matched.count() == sum(5 * s <= e * 20 < 5 * s + 100 for s in range(2000) for e in range(500))
    plan = matched._jdf.queryExecution().executedPlan().toString()
    assert "Cartesian" not in plan
    assert "NestedLoop" not in plan
