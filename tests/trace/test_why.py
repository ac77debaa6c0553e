"""`trace/why.py`: every verdict, on traces in which it is plain to see."""

import pyarrow as pa
import pytest

from roamcast.errors import ConfigurationError
from roamcast.trace.recorder import Recorder
from roamcast.trace.schema import Record
from roamcast.trace.why import explain

EVENT = (0 << 32) | 1
PUBLISHED = Record(10.0, "published", 0, event_id=EVENT, value=5.0, category="intervals", shortest_hops=[0, 1, 2, -1])


def trace(*records: Record) -> pa.Table:
    """Nodes 0, 1 and 2 in a line, 3 apart until 20 s; all want everything; 0 publishes at 10 s."""
    recorder = Recorder("run")
    for a, b in ((0, 1), (1, 2)):
        recorder.add(Record(0.0, "contact", a, b, value=1.0))
    for node in range(1, 4):
        recorder.add(Record(0.0, "subscribed", node, category="intervals", detail="0..10"))
    for record in sorted([PUBLISHED, Record(20.0, "contact", 2, 3, value=1.0), *records]):
        recorder.add(record)
    return recorder.table()


def frame(t_s: float, node: int, peer: int | None = None) -> Record:
    return Record(t_s, "frame", node, peer, EVENT, value=0.001, bytes=100, count=1, category="x", detail="Flood")


def test_delivered() -> None:
    got = Record(10.2, "delivered", 2, 0, EVENT, value=0.2, hops=2)
    found = explain(trace(got), EVENT, 2)
    assert (found.verdict, found.latency_s) == ("delivered", 0.2)
    assert explain(trace(got), EVENT, 1).delivered_to == [2]


def test_own_events_are_not_served() -> None:
    assert explain(trace(), EVENT, 0).verdict == "own"


def test_unwanted() -> None:
    gone = Record(9.0, "unsubscribed", 2, category="intervals", detail="0..10")
    assert explain(trace(gone), EVENT, 2).verdict == "unwanted"


def test_down_and_back() -> None:
    faults = [Record(5.0, "fault", 2, detail="crash"), Record(15.0, "fault", 2, detail="return")]
    found = explain(trace(*faults), EVENT, 2)
    assert (found.verdict, found.down_until_s) == ("down", 15.0)


def test_a_node_that_joins_later_was_down() -> None:
    found = explain(trace(Record(12.0, "fault", 2, detail="join")), EVENT, 2)
    assert (found.verdict, found.down_until_s) == ("down", 12.0)


def test_unreachable_and_when_patience_would_have_helped() -> None:
    found = explain(trace(), EVENT, 3)
    assert (found.verdict, found.path_s) == ("unreachable", 20.0)


def test_a_path_over_time_that_never_came() -> None:
    parted = Record(15.0, "contact", 1, 2, value=0.0)
    assert explain(trace(parted), EVENT, 3).path_s == 20.0  # 2 could have had it before they parted
    before = Record(9.0, "contact", 1, 2, value=0.0)
    assert explain(trace(before), EVENT, 3).path_s is None


def test_without_rows_for_frames_nothing_more_is_known() -> None:
    assert explain(trace(), EVENT, 2).verdict == "silent"


def test_stopped_before_it_came_near() -> None:
    dropped = Record(10.1, "dropped", 1, event_id=EVENT, detail="no-path")
    found = explain(trace(frame(10.0, 0), dropped), EVENT, 2)
    assert found.verdict == "stopped"
    assert [drop.reason for drop in found.dropped] == ["no-path"]


def test_missed_though_it_was_near() -> None:
    found = explain(trace(frame(10.0, 0), frame(10.1, 1)), EVENT, 2)
    assert found.verdict == "missed"
    assert [sent.in_range for sent in found.sent] == [False, True]


def test_questions_about_nothing_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="not published"):
        explain(trace(), 77, 2)
    with pytest.raises(ConfigurationError, match="there is no 9"):
        explain(trace(), EVENT, 9)
