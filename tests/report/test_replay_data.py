"""From a trace to the columns that the page plays."""

import base64
import gzip
import json
from typing import Any

import numpy as np
import pytest

from roamcast.events import event_id
from roamcast.report.replay.data import replay_data
from roamcast.report.replay.layout import SIDE_M, laid_out
from roamcast.report.replay.page import replay_page
from roamcast.report.replay.recordings import RecordedRun, Recording
from roamcast.trace.schema import Record
from roamcast.trace.summary import summarise
from roamcast.world.mobility import scenario_movements
from roamcast.world.scenario import Run, Scenario
from roamcast.world.simulator import simulate


class Unpacked:
    """The container as the page sees it."""

    def __init__(self, packed: str) -> None:
        content = gzip.decompress(base64.b64decode(packed))
        length = int.from_bytes(content[:4], "little")
        self.header: dict[str, Any] = json.loads(content[4 : 4 + length])
        self._content = content
        self._start = -(-(4 + length) // 8) * 8

    def __getitem__(self, name: str) -> list[Any]:
        kind, offset, count = self.header["columns"][name]
        values: list[Any] = np.frombuffer(self._content, kind, count, self._start + offset).tolist()
        return values

    def seconds(self, group: str) -> list[float]:
        return [tick * self.header["tick_s"] for tick in self[f"{group}.tick"]]


def unpacked(recording: Recording) -> Unpacked:
    return Unpacked(replay_data(recording).packed)


def test_rows_become_columns_in_order_of_time(chain: Recording) -> None:
    data = unpacked(chain)
    assert data.seconds("event") == pytest.approx([1.0, 1.3, 1.6, 2.5])
    assert data["event.node"] == [0, 1, 2, 0]
    assert data["event.number"] == [1, 1, 1, 2]
    assert data["event.cause"] == [-1, 0, 1, -1]
    assert data["delivery.event"] == [0, 0, 1]
    assert data["delivery.node"] == [1, 2, 2]
    assert data["delivery.shortest"] == [1, 2, -2]  # the second event's row tells no distances
    assert data["delivery.latency_s"] == pytest.approx([0.1, 0.2, 0.2])
    assert [data.header["texts"][text] for text in data["fault.text"]] == ["crash", "return"]
    assert data["structure.peer"] == [-1, 0, 1]
    assert data["contact.up"] == [1, 1, 0]


def test_what_never_arrived_is_told_with_its_distance(chain: Recording) -> None:
    data = unpacked(chain)
    missed = list(zip(data["missed.event"], data["missed.node"], data["missed.shortest"], strict=True))
    assert missed == [(3, 2, -1)]  # node 2 wants everything and was cut off


def test_deliveries_and_misses_add_up_to_the_summary() -> None:
    result = simulate(Run(scenario=Scenario(nodes=25, area_m=(1000.0, 1000.0), duration_s=20.0), protocol="gossip"))
    table = result.recorder.table()
    found = replay_data(_of(result.run, table)).found
    summary = summarise(table)
    assert found.missed == summary["expected"] - summary["delivered"] > 0
    assert found.publications == summary["publications"]
    assert (found.nodes, found.positions, found.raw_frames) == (25, True, False)


def test_corners_are_enough_to_know_every_position() -> None:
    run = Run(scenario=Scenario(nodes=8, duration_s=60.0), seed=4)
    truth = scenario_movements(run.scenario, run.seed)
    assert truth is not None
    data = unpacked(_of(run, simulate(run).recorder.table()))
    t, node = np.array(data.seconds("position")), np.array(data["position.node"])
    x_m, y_m = np.array(data["position.x_m"]), np.array(data["position.y_m"])
    for each in range(8):
        own = node == each
        for now_s in np.linspace(0, 60, 61).tolist():
            seen = np.interp(now_s, t[own], x_m[own]), np.interp(now_s, t[own], y_m[own])
            assert seen == pytest.approx(truth.position(each, now_s), abs=1e-2)


def test_raw_frames_name_the_event_they_carry(line: Recording) -> None:
    data = unpacked(line)
    events = len(data["event.tick"])
    assert data.header["has_raw_frames"]
    assert sorted(set(data["frame.event"])) == list(range(events))
    assert all(data["frame.event"].count(event) == 4 for event in range(events))  # every node repeats each event once


def test_a_trace_without_places_is_laid_out_and_says_so(record: Any) -> None:
    recording = record([Record(0.0, "contact", 0, 1, value=1.0), Record(9.0, "end", count=5)])
    data = unpacked(recording)
    assert not data.header["has_positions"]
    assert data["position.node"] == [0, 1, 2, 3, 4]
    west, south, east, north = data.header["bounds_m"]
    assert max(east - west, north - south) == pytest.approx(SIDE_M)


def test_live_nodes_that_do_not_know_where_they_are_stand_below_the_others(record: Any) -> None:
    places = [Record(0.0, "position", node, x_m=100.0 * node, y_m=50.0) for node in (0, 2)]
    data = unpacked(record([*places, Record(9.0, "end", count=4)]))
    assert data.header["has_positions"]
    assert data["position.node"] == [0, 1, 2, 3]
    assert data["position.x_m"] == [0.0, 0.0, 200.0, 20.0]
    assert data["position.y_m"] == [50.0, 30.0, 50.0, 30.0]
    assert data.header["bounds_m"] == [0.0, 30.0, 200.0, 50.0]


def test_a_live_trace_starts_at_its_first_row_and_keeps_its_addresses(record: Any) -> None:
    big = 2**40
    event = event_id(7, 3)
    recording = record(
        [
            Record(1000.0, "subscribed", big, category="topics", detail="*"),
            Record(1000.5, "delivered", big, 7, event, value=0.01, hops=1, bytes=3),
            Record(1002.0, "frame", value=0.0, count=2, bytes=80, category="maintenance", detail="Hello"),
        ]
    )
    data = unpacked(recording)
    assert data.header["nodes"] == [7, big]
    assert data.header["duration_s"] == pytest.approx(2.0)
    assert data.seconds("delivery") == pytest.approx([0.5])
    assert data["delivery.event"] == [-1]  # published elsewhere
    assert data["traffic.frames"] == [2]


def test_an_empty_run_can_be_packed(record: Any) -> None:
    found = replay_data(record([Record(5.0, "end", count=2)])).found
    assert (found.nodes, found.publications, found.deliveries) == (2, 0, 0)


def test_the_same_trace_gives_the_same_page(line: Recording) -> None:
    assert replay_page(replay_data(line).packed) == replay_page(replay_data(line).packed)


def test_nothing_in_a_trace_can_become_markup(chain: Recording) -> None:
    page = replay_page(replay_data(chain).packed)
    assert "onerror" not in page
    assert page.count("</script>") == 3


def test_a_page_of_a_large_network_stays_small() -> None:
    run = Run(scenario=Scenario(nodes=250, area_m=(2000.0, 2000.0), duration_s=10.0), protocol="gossip")
    packed = replay_data(_of(run, simulate(run).recorder.table())).packed
    assert len(packed) < 300_000  # of 10 s; 100 s stay below a few megabytes


def test_nodes_that_meet_stand_close() -> None:
    one, other = [(a, b) for a in range(5) for b in range(a)], [(a, b) for a in range(5, 10) for b in range(5, a)]
    a, b = np.array([*one, *other, (0, 5)]).T
    places = laid_out(10, a, b, np.array([1.0] * 20 + [0.05]))

    def apart(i: int, j: int) -> float:
        return float(np.hypot(*(places[i] - places[j])))

    within = [apart(i, j) for i, j in (*one, *other)]
    across = [apart(i, j) for i in range(5) for j in range(5, 10)]
    assert np.mean(within) < 0.6 * np.mean(across)
    assert np.array_equal(places, laid_out(10, a, b, np.array([1.0] * 20 + [0.05])))


def _of(run: Run, table: Any) -> Recording:
    known = RecordedRun("run", run.protocol, run.seed, run=run)
    return Recording(known, table, [known])
