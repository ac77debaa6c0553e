"""The search for the highest rate, on a made-up ladder and on a small network."""

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from roamcast.advise.candidates import candidate
from roamcast.advise.capacity import DOUBLINGS_MAX, HALVINGS_MAX, RUNGS_PER_DOUBLING, CapacitySearch, Climb
from roamcast.advise.demands import parse_demand
from roamcast.errors import ConfigurationError

SCENARIO = {
    "nodes": 9,
    "area_m": 300,
    "duration_s": 8,
    "mobility": {"model": "grid", "spacing_m": 100},
    "radio": {"model": "802.11b", "range_m": 110},
    "workload": {"publishers": 3, "selectivity": 1.0, "rate_per_s": 20, "start_s": 1, "tail_s": 1},
}


def climbed(capacity: int) -> tuple[Climb, list[int]]:
    """A candidate that passes up to a rung; and the rungs that were tried."""
    climb, tried = Climb(), []
    while (rung := climb.next_rung()) is not None:
        tried.append(rung)
        climb.measured(rung, 1.0 if rung <= capacity else 0.5, passes=rung <= capacity)
    return climb, tried


@pytest.mark.parametrize("capacity", [-7, -1, 0, 3, 4, 17])
def test_neighbouring_rungs_bracket_the_capacity(capacity: int) -> None:
    climb, tried = climbed(capacity)
    assert (climb.passed, climb.failed) == (capacity, capacity + 1)
    assert len(tried) == len(set(tried))


def test_there_is_a_highest_and_a_lowest_rate() -> None:
    top, bottom = RUNGS_PER_DOUBLING * DOUBLINGS_MAX, -RUNGS_PER_DOUBLING * HALVINGS_MAX
    assert (climbed(1000)[0].passed, climbed(1000)[0].failed) == (top, None)
    assert (climbed(-1000)[0].passed, climbed(-1000)[0].failed) == (None, bottom)


def test_a_channel_has_a_capacity_and_the_same_command_finds_it_again(spark: SparkSession, tmp_path: Path) -> None:
    search = CapacitySearch(
        SCENARIO,
        [candidate("flooding", {})],
        parse_demand("delivery>=0.95"),
        tmp_path,
        source="net.toml",
        master="local[2]",
        seeds=(1,),
    )
    answer = search.run(spark)
    (flooding,) = answer.capacities
    assert flooding.passes is not None
    assert flooding.fails is not None
    assert flooding.fails.rate_per_s / flooding.passes.rate_per_s == pytest.approx(2**0.25, rel=0.01)
    assert flooding.passes.mean is not None
    assert flooding.passes.mean >= 0.95
    assert json.loads((tmp_path / "capacity.json").read_text())["publishers"] == 3
    assert search.run(spark) == answer


def test_without_a_rate_there_is_nothing_to_start_from(tmp_path: Path) -> None:
    silent = SCENARIO | {"workload": {"rate_per_s": 0}}
    with pytest.raises(ConfigurationError, match="must be above 0 to start from"):
        CapacitySearch(silent, [], parse_demand("delivery>=0.9"), tmp_path, source="x", master="local[2]", seeds=(1,))
