"""Every measure of a run by hand on a small trace, and the expected pairs against a slow twin."""

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roamcast.errors import CallerError
from roamcast.events import event_id
from roamcast.interests import parse_interest
from roamcast.trace.arrow import SCHEMA, rows_of_table
from roamcast.trace.evaluation import percentile
from roamcast.trace.pairs import OpenInterest, expected_pairs, subscriptions
from roamcast.trace.recorder import Recorder
from roamcast.trace.schema import Record
from roamcast.trace.summary import summarise


def table(*records: Record, run_id: str = "run") -> pa.Table:
    recorder = Recorder(run_id)
    for record in records:
        recorder.add(record)
    return recorder.table()


def subscribed(t: float, node: int, interest: str, language: str = "intervals") -> Record:
    return Record(t, "subscribed", node, category=language, detail=interest)


def unsubscribed(t: float, node: int, interest: str, language: str = "intervals") -> Record:
    return Record(t, "unsubscribed", node, category=language, detail=interest)


def published(t: float, node: int, number: int, value: float, shortest: list[int] | None = None) -> Record:
    event = event_id(node, number)
    return Record(
        t, "published", node, event_id=event, value=value, bytes=64, category="intervals", shortest_hops=shortest
    )


def announced(t: float, node: int, number: int, topic: str) -> Record:
    return Record(t, "published", node, event_id=event_id(node, number), bytes=64, category="topics", detail=topic)


def delivered(t: float, node: int, publisher: int, number: int, latency_s: float, hops: int) -> Record:
    return Record(
        t, "delivered", node, publisher, event_id(publisher, number), value=latency_s, hops=hops, bytes=64
    )


def frames(t: float, count: int, label: str, category: str, airtime_s: float, size: int) -> Record:
    return Record(t, "frame", value=airtime_s, bytes=size, count=count, category=category, detail=label)


# Nodes 1, 2 and 3 want 0..10, node 0 publishes 5 twice and 50 once. Node 3 is cut off at the first publication.
RUN = [
    subscribed(0.1, 1, "0..10"),
    subscribed(0.2, 2, "0..10"),
    subscribed(0.3, 3, "0..10"),
    subscribed(0.4, 0, "0..10"),  # the publisher's own wish counts for nothing
    published(10.0, 0, 1, 5.0, [0, 1, 2, -1]),
    delivered(10.1, 1, 0, 1, 0.1, 1),
    delivered(10.3, 2, 0, 1, 0.3, 4),
    delivered(10.4, 2, 0, 1, 0.4, 2),  # again
    published(20.0, 0, 2, 5.0, [0, 1, 1, 1]),
    delivered(20.2, 3, 0, 2, 0.2, 2),
    published(30.0, 0, 3, 50.0, [0, 1, 1, 1]),
    delivered(30.1, 1, 0, 3, 0.1, 1),  # nobody asked for it
    Record(31.0, "dropped", 2, detail="queue"),
    Record(32.0, "dropped", 3, detail="queue"),
    Record(33.0, "dropped", 3, detail="age"),
    frames(10.0, 3, "Flood", "publish_subscribe", 0.3, 300),
    frames(11.0, 1, "Flood", "publish_subscribe", 0.1, 100),
    frames(11.0, 4, "Hello", "maintenance", 0.2, 80),
    Record(100.0, "load", 0, value=0.3, bytes=300, count=3, category="publish_subscribe", detail="Flood"),
    Record(100.0, "load", 0, value=0.1, bytes=80, count=4, category="maintenance", detail="Hello"),
    Record(100.0, "load", 1, value=0.2, bytes=100, count=1, category="publish_subscribe", detail="Flood"),
    Record(100.0, "lost", count=7, detail="collision"),
    Record(100.0, "lost", count=2, detail="noise"),
    Record(100.0, "end", count=4),
]


def test_the_measures_of_delivery() -> None:
    summary = summarise(table(*RUN))
    assert summary["nodes"] == 4
    assert summary["duration_s"] == 100.0
    assert summary["publications"] == 3
    assert summary["expected"] == 6
    assert summary["delivered"] == 3
    assert summary["delivery_ratio"] == 3 / 6
    assert summary["expected_reachable"] == 5
    assert summary["delivered_reachable"] == 3
    assert summary["delivery_ratio_reachable"] == 3 / 5
    assert summary["deliveries_per_event"] == 3 / 3
    assert summary["duplicates"] == 1
    assert summary["unexpected"] == 1


def test_the_measures_of_quality_look_at_first_deliveries_of_expected_pairs() -> None:
    summary = summarise(table(*RUN))
    assert summary["latency_ms_mean"] == pytest.approx(200.0)
    assert summary["latency_ms_p50"] == pytest.approx(200.0)
    assert summary["latency_ms_p95"] == pytest.approx(300.0)
    assert summary["latency_ms_p99"] == pytest.approx(300.0)
    assert summary["hops_mean"] == pytest.approx((1 + 4 + 2) / 3)
    assert summary["stretch_mean"] == pytest.approx((1 / 1 + 4 / 2 + 2 / 1) / 3)


def test_the_measures_of_cost() -> None:
    summary = summarise(table(*RUN))
    assert summary["frames"] == {"Flood": 4, "Hello": 4}
    assert summary["frames_by_category"] == {"maintenance": 4, "publish_subscribe": 4}
    assert summary["frames_total"] == 8
    assert summary["bytes"] == {"Flood": 400, "Hello": 80}
    assert summary["bytes_by_category"] == {"maintenance": 80, "publish_subscribe": 400}
    assert summary["bytes_total"] == 480
    assert summary["airtime_s"] == pytest.approx({"Flood": 0.4, "Hello": 0.2})
    assert summary["airtime_s_by_category"] == pytest.approx({"maintenance": 0.2, "publish_subscribe": 0.4})
    assert summary["airtime_s_total"] == pytest.approx(0.6)
    assert summary["control_frames_share"] == 0.5
    assert summary["control_bytes_share"] == pytest.approx(1 / 6)
    assert summary["control_airtime_share"] == pytest.approx(1 / 3)
    assert summary["frames_per_delivery"] == pytest.approx(8 / 3)
    assert summary["bytes_per_delivery"] == 160
    assert summary["airtime_per_delivery_ms"] == pytest.approx(200.0)
    assert summary["load_fairness"] == pytest.approx(0.6**2 / (4 * (0.4**2 + 0.2**2)))
    assert summary["frames_lost"] == {"collision": 7, "noise": 2}
    assert summary["dropped"] == {"age": 1, "queue": 2}


def test_the_order_of_rows_does_not_matter() -> None:
    forward, backward = summarise(table(*RUN)), summarise(table(*reversed(RUN)))
    assert list(forward) == list(backward)
    for name, value in forward.items():
        assert backward[name] == pytest.approx(value), name


def test_a_trace_without_anything_has_no_ratios() -> None:
    summary = summarise(SCHEMA.empty_table())
    assert summary["publications"] == summary["expected"] == summary["delivered"] == summary["frames_total"] == 0
    assert summary["frames"] == summary["frames_lost"] == summary["dropped"] == {}
    for name in ("nodes", "delivery_ratio", "delivery_ratio_reachable", "latency_ms_p50", "hops_mean", "stretch_mean"):
        assert summary[name] is None
    for name in ("deliveries_per_event", "frames_per_delivery", "load_fairness", "control_frames_share"):
        assert summary[name] is None


def test_without_shortest_paths_nothing_is_known_to_be_reachable() -> None:
    summary = summarise(table(subscribed(0.0, 1, "0..10"), published(1.0, 0, 1, 5.0), delivered(1.1, 1, 0, 1, 0.1, 2)))
    assert summary["delivery_ratio"] == 1
    assert summary["expected_reachable"] == 0
    assert summary["delivery_ratio_reachable"] is None
    assert summary["stretch_mean"] is None


def test_a_node_beyond_the_list_of_shortest_paths_is_not_reachable() -> None:
    asked = [subscribed(0.0, node, "0..10") for node in (1, 2)]
    lists = [published(1.0, 0, 1, 5.0, [0, 3]), published(2.0, 0, 2, 5.0), published(3.0, 0, 3, 5.0, [0, -1, 2])]
    summary = summarise(table(*asked, *lists, delivered(3.5, 2, 0, 3, 0.5, 3)))
    assert summary["expected"] == 6
    assert summary["expected_reachable"] == 2
    assert summary["stretch_mean"] == 1.5


def test_events_of_unknown_origin_are_unexpected() -> None:
    summary = summarise(table(subscribed(0.0, 1, "0..10"), delivered(1.0, 1, 9, 1, 0.1, 2)))
    assert summary["unexpected"] == 1
    assert summary["delivered"] == summary["duplicates"] == 0


def test_two_runs_are_one_too_many() -> None:
    both = pa.concat_tables([table(*RUN), table(*RUN, run_id="other")])
    with pytest.raises(CallerError, match="holds 2 runs"):
        summarise(both)


def expected_of(*records: Record) -> int:
    expected = summarise(table(*records))["expected"]
    assert isinstance(expected, int)
    return expected


def test_an_interest_counts_from_its_subscription_until_it_is_taken_back() -> None:
    both = [subscribed(1.0, 1, "0..10"), unsubscribed(2.0, 1, "0..10")]
    assert [expected_of(*both, published(t, 0, 1, 5.0)) for t in (0.9, 1.0, 1.9, 2.0)] == [0, 1, 1, 0]


def test_a_subscription_made_again_is_the_same_one() -> None:
    again = [subscribed(1.0, 1, "0..10"), Record(2.0, "fault", 1, detail="crash"), subscribed(3.0, 1, "0..10")]
    assert expected_of(*again, published(4.0, 0, 1, 5.0)) == 1
    assert expected_of(*again, unsubscribed(5.0, 1, "0..10"), published(6.0, 0, 1, 5.0)) == 0


def test_a_crash_closes_nothing() -> None:
    crash = Record(2.0, "fault", 1, detail="crash")
    assert expected_of(subscribed(1.0, 1, "0..10"), crash, published(4.0, 0, 1, 5.0)) == 1


def test_an_interest_replaced_by_an_equal_one_stays_open() -> None:
    rows = [subscribed(1.0, 1, "0..10"), unsubscribed(2.0, 1, "0..10"), subscribed(2.0, 1, "0..10")]
    assert expected_of(*rows, published(2.0, 0, 1, 5.0), published(3.0, 0, 2, 5.0)) == 2


def test_a_node_with_several_matching_interests_expects_an_event_once() -> None:
    assert expected_of(subscribed(0.0, 1, "0..10"), subscribed(0.0, 1, "4..6 8..20"), published(1.0, 0, 1, 5.0)) == 1


def test_topics_are_matched_by_their_patterns() -> None:
    asked = [subscribed(0.0, 1, "fire/* flood/north", "topics"), subscribed(0.0, 2, "**", "topics")]
    summary = summarise(
        table(
            *asked,
            announced(1.0, 0, 1, "fire/north"),
            announced(2.0, 0, 2, "flood/north"),
            announced(3.0, 0, 3, "flood/south"),
            delivered(1.5, 1, 0, 1, 0.5, 3),
        )
    )
    assert summary["expected"] == 2 + 2 + 1
    assert summary["delivered"] == 1


@pytest.mark.parametrize(("percent", "value"), [(1, 1), (50, 5), (51, 6), (95, 10), (99, 10), (100, 10)])
def test_a_percentile_is_the_value_of_its_rank(percent: int, value: float) -> None:
    ascending = np.arange(1.0, 11.0)
    assert percentile(ascending, percent) == value
    assert percentile(ascending, percent) == np.percentile(ascending, percent, method="inverted_cdf")
    assert percentile(ascending[:0], percent) is None


times = st.integers(0, 6).map(float)
nodes = st.integers(0, 3)
texts = st.one_of(
    st.sampled_from(["0..4", "2..6", "0..1 3..5", ""]).map(lambda text: ("intervals", text)),
    st.sampled_from(["a/**", "*/b", "a", "b b/a", "**"]).map(lambda text: ("topics", text)),
)
words = st.lists(st.tuples(times, st.booleans(), nodes, texts), max_size=14)
contents = st.one_of(st.integers(-1, 6), st.sampled_from(["a", "a/b", "b/a", "c"]))


Said = tuple[float, bool, int, tuple[str, str]]


def slow_expected(said: list[Said], t: float, publisher: int, content: object) -> set[int]:
    wanting = set()
    for node in range(4):
        for interest in {words[3] for words in said}:
            rows = [(when, subscribes) for when, subscribes, who, what in said if (who, what) == (node, interest)]
            before = sorted(row for row in rows if row[0] <= t)  # False, unsubscribing, goes first
            if before and before[-1][1] and parse_interest(*interest).contains(content) and node != publisher:
                wanting.add(node)
    return wanting


@given(words, st.lists(st.tuples(times, nodes, contents), max_size=6))
@settings(deadline=None, derandomize=True, max_examples=150)
def test_expected_pairs_agree_with_a_slow_twin(
    said: list[Said], publications: list[tuple[float, int, int | str]]
) -> None:
    rows = [
        (subscribed if subscribes else unsubscribed)(t, node, text, language)
        for t, subscribes, node, (language, text) in said
    ]
    events = [
        announced(t, node, number, content)
        if isinstance(content, str)
        else published(t, node, number, float(content))
        for number, (t, node, content) in enumerate(publications, 1)
    ]
    pairs = expected_pairs(rows_of_table(table(*events)), subscriptions(rows_of_table(table(*rows))))
    slow = [
        (place, node)
        for place, (t, publisher, content) in enumerate(publications)
        for node in sorted(slow_expected(said, t, publisher, content))
    ]
    assert list(zip(pairs.publication.tolist(), pairs.node.tolist(), strict=True)) == slow


def test_blocks_do_not_change_the_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    events = rows_of_table(table(*(published(float(number), 0, number, float(number % 7)) for number in range(1, 60))))
    periods = [OpenInterest(node, "intervals", f"0..{node}", 0.0, math.inf) for node in range(1, 9)]
    whole = expected_pairs(events, periods)
    monkeypatch.setattr("roamcast.trace.pairs._BLOCK_CELLS", 20)
    parts = expected_pairs(events, periods)
    assert len(whole.node) > 100
    assert whole.publication.tolist() == parts.publication.tolist()
    assert whole.node.tolist() == parts.node.tolist()
