"""Loads: the text that other simulators read, and that it says what our own benchmarks simulate."""

import numpy as np
import pytest

from roamcast.bench.flood import PAYLOAD_BYTES, SOURCES, flood_run
from roamcast.bench.load import FLOODING_JITTER_S, Load, flood_load, read_load, unicast_load, write_load
from roamcast.bench.worker import answer_load, run_of
from roamcast.errors import ConfigurationError
from roamcast.protocols.flooding.parameters import FloodingParameters
from roamcast.world.simulator import simulate
from roamcast.world.workload import Publish

LAYOUT = {
    "positions_m": [[0.0, 0.0], [150.0, 0.0], [300.0, 0.0], [900.0, 0.0]],
    "range_m": 200.0,
    "side_m": 900.0,
    "flood": {},
    "unicast": {"payload_bytes": 64, "duration_s": 3.0, "measure_packets_started_before_s": 2.0},
}


@pytest.mark.parametrize("load", [flood_load(12, 3.0, 7), unicast_load(LAYOUT, 10, 1)], ids=["flood", "unicast"])
def test_a_load_survives_its_text(load: Load) -> None:
    assert read_load(write_load(load)) == load


def test_the_load_is_the_flood_benchmark() -> None:
    load = flood_load(30, 4.0, 1)
    run, actions = flood_run(30, 4.0, 1)
    published = [(action.t_s, action.node) for action in actions if isinstance(action, Publish)]
    assert list(load.floods) == published
    assert len(published) == SOURCES * 4
    assert load.payload_bytes == PAYLOAD_BYTES
    assert load.jitter_s == FLOODING_JITTER_S == FloodingParameters().jitter_s
    again, actions_again = run_of(load, 1)
    assert again.scenario.nodes == 30
    ours, theirs = simulate(run, actions=actions), simulate(again, actions=actions_again)
    assert ours.medium.receptions_possible > 0
    assert theirs.recorder.table()["event_id"].equals(ours.recorder.table()["event_id"])


def test_packets_go_to_neighbours_at_the_rate() -> None:
    load = unicast_load(LAYOUT, 50, 1)
    assert {(source, destination) for _, source, destination in load.packets} == {(0, 1), (1, 0), (1, 2), (2, 1)}
    gaps = np.diff([t_s for t_s, source, _ in load.packets if source == 0])
    assert gaps.min() >= 0.5 / 50
    assert gaps.max() <= 1.5 / 50


def test_what_is_no_load_is_refused() -> None:
    text = write_load(flood_load(3, 2.0, 1))
    with pytest.raises(ConfigurationError, match="'node 1' is no statement"):
        read_load(text + "node 1\n")
    with pytest.raises(ConfigurationError, match="jitter_s missing"):
        read_load(text.replace("jitter_s", "node 1"))


def test_the_worker_answers_for_floods() -> None:
    answer = answer_load(flood_load(20, 3.0, 2), 1)
    assert 0.5 < answer["reach"] <= 1
    assert answer["transmissions"] > 20 * 2
    assert answer["cpu_s"] > 0
    assert answer["peak_mib"] > 10
    assert "data_frames_per_packet" not in answer


def test_the_worker_answers_for_packets() -> None:
    answer = answer_load(unicast_load(LAYOUT, 10, 1), 1)
    assert answer["reach"] == 1
    assert answer["hops_mean"] == 1
    assert 1 <= answer["data_frames_per_packet"] < 1.5
