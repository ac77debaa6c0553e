"""The page of speed: what it says about measurements, and that goals are judged by them."""

from pathlib import Path

import msgspec
import pytest

from roamcast.bench.forms import NODES, Forms, Pair, Single, long_run, short_run
from roamcast.bench.goals import BenchGoal, goals
from roamcast.bench.peers import COMPILED, INTERPRETED, LIMIT, NS3, Comparison, Measurement, flood_title
from roamcast.bench.processes import Machine
from roamcast.bench.speed_page import render, store
from roamcast.errors import ConfigurationError
from roamcast.papers import somer_setting
from roamcast.world.scenario_file import run_from_tables

MACHINE = Machine("Abacus 9", 2, 16.0, "Linux x86_64", "CPython 3.11.7", "2020-02-02", 0.25)


def measurement(nodes: int, simulator: str, cpu_s: float, us: float, peak_mib: float | None = None) -> Measurement:
    return Measurement(
        load=flood_title(nodes),
        simulator=simulator,
        version="3.37" if simulator == NS3 else "0.1.0",
        nodes=nodes,
        simulated_s=10.0,
        runs=3,
        cpu_s_per_simulated_s=cpu_s,
        wall_s_per_simulated_s=cpu_s,
        us_per_transmission=us,
        transmissions=1000,
        reach=0.9,
        delay_ms_mean=44.0,
        data_frames_per_packet=None,
        peak_mib=peak_mib,
    )


COMPARISON = Comparison(
    MACHINE,
    "12.2.0",
    (
        measurement(50, COMPILED, 0.002, 2.0),
        measurement(250, NS3, 1.2, 240.0),
        measurement(250, COMPILED, 0.01, 2.0),
        measurement(250, INTERPRETED, 0.2, 40.0),
        measurement(250, LIMIT, 0.001, 0.4),
        measurement(1000, COMPILED, 0.1, 5.0, peak_mib=300.0),
    ),
)
FORMS = Forms(
    MACHINE,
    "0.1.0",
    (Pair("flooding", 0.5, 2.0), Pair("somer", 2.0, 5.0)),
    Single(250, 1000.0, 13.0, 14.0, 250.0),
    Single(1000, 30.0, 9.0, 9.5, 1200.0),
)


def verdicts(comparison: Comparison | None, forms: Forms | None) -> dict[str, str]:
    return {goal.what: goal.verdict for goal in goals(comparison, forms)}


def test_goals_are_judged_by_what_was_measured() -> None:
    assert verdicts(COMPARISON, FORMS) == {
        "compiled against ns-3, 250 nodes": "held",
        "compiled against ns-3, unicasts": "not measured",
        "compiled against the C++ limit, µs per transmission": "not held",
        "interpreted against ns-3, 250 nodes": "not held",
        "Roamcast, compiled: µs per transmission, 1000 nodes against 50": "not held",
        "Roamcast, interpreted: µs per transmission, 1000 nodes against 50": "not measured",
        "compiled against interpreted, flooding": "held",
        "compiled against interpreted, somer": "not held",
        "SOMER, 250 nodes, 1000 s, compiled": "not held",
        "memory of a run with 1000 nodes": "not held",
    }


def test_nothing_measured_is_nothing_held() -> None:
    assert set(verdicts(None, None).values()) == {"not measured"}
    assert "held |" not in render(None, None)


@pytest.mark.parametrize(("measured", "verdict"), [(59.9, "not held"), (60.0, "held"), (None, "not measured")])
def test_at_least(measured: float | None, verdict: str) -> None:
    assert BenchGoal("speed", 60, measured, at_least=True).verdict == verdict


@pytest.mark.parametrize(("measured", "verdict"), [(2.1, "not held"), (2.0, "held")])
def test_at_most(measured: float, verdict: str) -> None:
    assert BenchGoal("growth", 2, measured).verdict == verdict


def test_the_page_names_machine_versions_and_figures() -> None:
    page = render(COMPARISON, FORMS)
    assert "Abacus 9, 2 cores, 16 GiB" in page
    assert "ns-3 3.37" in page
    assert "gcc 12.2.0" in page
    assert "| flood, 250 nodes | Roamcast, compiled | 0.0100 | 0.0100 | 120.0 | 2.00 | 1,000 | 0.900 | 44.00 |" in page
    assert "| interpreted against ns-3, 250 nodes | at least 12 times | 6 times | **not held** |" in page
    assert "| somer | 2.00 | 5.00 | 2.50 |" in page
    assert "SOMER, 250 nodes, 1000 s, compiled: 14.0 s (13.0 s CPU), 250 MiB" in page
    assert "Roamcast, compiled 2.5 times." in page


def test_each_benchmark_keeps_the_other_ones_measurements(tmp_path: Path) -> None:
    page = store(tmp_path, FORMS)
    assert "| interpreted against ns-3, 250 nodes | at least 12 times | – | not measured |" in page.read_text()
    assert store(tmp_path, COMPARISON).read_text() == render(COMPARISON, FORMS)
    (tmp_path / "data" / "speed" / "forms.json").write_text("[]")
    with pytest.raises(ConfigurationError, match=r"forms\.json: is not what roamcast bench stored"):
        store(tmp_path, COMPARISON)


def test_the_long_run_is_the_thesis_own() -> None:
    tables = somer_setting.full([{"protocol": "somer"}], {}, nodes=NODES)
    assert run_from_tables({"scenario": tables["scenario"]}).scenario == long_run().scenario
    low, high = long_run().scenario.workload, short_run("somer").scenario.workload
    assert (low.rate_per_s, high.rate_per_s) == (somer_setting.LOW_RATE_PER_S, somer_setting.HIGH_RATE_PER_S)
    assert msgspec.structs.replace(high, rate_per_s=low.rate_per_s, start_s=40, tail_s=10) == low
