"""Completion and time of causal chains and graphs, against numbers worked by hand."""

import pytest

from roamcast.trace.recorder import Recorder
from roamcast.trace.schema import Record
from roamcast.trace.summary import summarise

CAUSAL = (
    "chains",
    "chain_completion_ratio",
    "chain_time_ms_mean",
    "causal_graphs",
    "causal_graph_completion_ratio",
    "causal_graph_time_ms_mean",
)


def measured(*rows: tuple[float, int, int | None, int | None]) -> dict[str, float | None]:
    """From rows (t, event, cause, count)."""
    recorder = Recorder("run")
    for t, event, cause, count in rows:
        recorder.add(Record(t, "published", 1, event_id=event, cause_id=cause, count=count))
    summary = summarise(recorder.table())
    return {name: summary[name] for name in CAUSAL}


def test_two_graphs_one_of_them_torn() -> None:
    found = measured(
        (0.0, 1, None, 3),  # should set off three chains: 1-2, 1-3-5, 1-4-6
        (0.1, 2, 1, 0),
        (0.2, 3, 1, 1),
        (0.3, 4, 1, 1),
        (0.5, 5, 3, 0),
        (0.9, 6, 4, 0),
        (10.0, 11, None, 3),
        (10.2, 12, 11, 0),
        (10.4, 13, 11, 1),  # its effect never came, and the third chain not even began
        (20.0, 21, None, None),  # an ordinary event
    )
    assert found == {
        "chains": 6,
        "chain_completion_ratio": 4 / 6,
        "chain_time_ms_mean": pytest.approx((100 + 500 + 900 + 200) / 4),
        "causal_graphs": 2,
        "causal_graph_completion_ratio": 1 / 2,
        "causal_graph_time_ms_mean": pytest.approx(900),
    }


def test_an_initiation_that_nobody_heard_counts() -> None:
    found = measured((0.0, 1, None, 3))
    assert (found["chains"], found["chain_completion_ratio"], found["chain_time_ms_mean"]) == (3, 0, None)
    assert (found["causal_graphs"], found["causal_graph_completion_ratio"]) == (1, 0)


def test_an_event_of_unknown_origin_belongs_to_no_chain() -> None:
    found = measured((0.0, 1, None, 1), (1.0, 3, 99, 0))
    assert (found["chains"], found["chain_completion_ratio"]) == (1, 0)


def test_without_causal_events_there_is_nothing() -> None:
    found = measured((0.0, 1, None, None), (0.1, 2, 1, None))
    assert (found["chains"], found["causal_graphs"]) == (0, 0)
    assert {value for name, value in found.items() if name not in ("chains", "causal_graphs")} == {None}
