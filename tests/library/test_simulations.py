"""Simulating and reading traces from Python."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

import roamcast
from roamcast.trace.summary import summarise
from roamcast.world.scenario import Run, Scenario
from roamcast.world.simulator import simulate as simulate_run

SMALL: dict[str, Any] = {"nodes": 12, "area_m": 300, "duration_s": 20}


def test_keywords_describe_the_same_run_as_structs() -> None:
    trace = roamcast.simulate(protocol="gossip", seed=7, parameters={"probability": 0.9}, **SMALL)
    scenario = Scenario(nodes=12, area_m=(300.0, 300.0), duration_s=20.0)
    run = Run(scenario=scenario, protocol="gossip", seed=7, parameters={"probability": 0.9})
    assert trace.run == run
    assert trace.table.equals(simulate_run(run).recorder.table())
    assert trace.summary == summarise(trace.table)


def test_tables_have_a_row_per_event_and_per_delivery() -> None:
    trace = roamcast.simulate(protocol="flooding", **SMALL)
    assert trace.events.num_rows == trace.summary["publications"] > 0
    assert trace.deliveries.num_rows == trace.summary["delivered"] + trace.summary["duplicates"] > 0
    assert set(trace.deliveries["event_id"].to_pylist()) <= set(trace.events["event_id"].to_pylist())
    assert "category" not in trace.deliveries.column_names  # deliveries have none
    assert set(trace.deliveries.to_pandas()["node"]) <= set(range(12))


def test_arguments_override_the_file(tmp_path: Path) -> None:
    file = tmp_path / "network.toml"
    file.write_text(
        """
        protocol = "gossip"
        parameters.probability = 0.5
        [scenario]
        nodes = 12
        area_m = 300
        duration_s = 20
        workload.rate_per_s = 2
        workload.publishers = 3
        """
    )
    run = roamcast.simulate(file, seed=3, workload={"rate_per_s": 1}, parameters={"certain_hops": "2"}).run
    assert run is not None
    assert (run.protocol, run.seed) == ("gossip", 3)
    assert run.parameters == {"probability": 0.5, "certain_hops": 2}
    assert (run.scenario.workload.rate_per_s, run.scenario.workload.publishers) == (1, 3)


def test_another_radio_brings_its_own_settings() -> None:
    plain = Scenario(nodes=12, area_m=(300.0, 300.0), duration_s=20.0)
    run = roamcast.simulate(plain, radio={"model": "ideal", "range_m": 90}).run
    assert run is not None
    assert msgspec.to_builtins(run.scenario.radio)["model"] == "ideal"
    assert run.scenario.radio.range_m == 90


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"nodes": 0}, "nodes"),
        ({"wheels": 4}, "wheels"),
        ({"protocol": "smoke"}, "smoke"),
        ({"workload": 3}, "workload"),
    ],
)
def test_a_mistake_is_one_line_that_names_it(settings: dict[str, Any], named: str) -> None:
    with pytest.raises(roamcast.ConfigurationError, match=named) as refused:
        roamcast.simulate(**settings)
    assert "\n" not in str(refused.value)


def test_a_saved_trace_reads_back(tmp_path: Path) -> None:
    trace = roamcast.simulate(protocol="flooding", **SMALL)
    trace.save(tmp_path / "trace")
    again = roamcast.read_trace(tmp_path / "trace")
    assert again.run == trace.run
    assert again.summary == trace.summary
    assert again.deliveries.equals(trace.deliveries)


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(roamcast.ConfigurationError, match="kind: 'smoke'"):
        roamcast.simulate(protocol="flooding", **SMALL).rows("smoke")
