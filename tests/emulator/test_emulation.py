"""The emulator by running it: real processes, real datagrams, a moving network."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.emulator.namespaces import needs_namespaces

import roamcast
from roamcast.emulator.emulation import require_emulable
from roamcast.world.incident import Incident
from roamcast.world.radio.models.wifi_b import Wifi80211b
from roamcast.world.radio.signals import LogDistance
from roamcast.world.scenario import Faults, Run, Scenario, Security

SOURCE = Path(__file__).parents[2] / "src"
PATIENCE_S = 240
SCENARIO = """
protocol = "flooding"
[scenario]
nodes = 5
area_m = 300
duration_s = 15
radio.model = "ideal"
radio.range_m = 200
mobility.speed_max_mps = 3
workload.start_s = 2
workload.tail_s = 3
workload.rate_per_s = 2
workload.language = "topics"
workload.selectivity = 0.5
"""


def emulator(scenario: Path, out: Path, *options: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "roamcast", "emulate", str(scenario), "--out", str(out), "--json", *options]
    environment = os.environ | {"PYTHONPATH": str(SOURCE), "TMPDIR": str(out.parent)}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def emulated(tmp_path: Path, scenario: str = SCENARIO, *options: str) -> dict[str, Any]:
    file = tmp_path / "scenario.toml"
    file.write_text(scenario, encoding="utf-8")
    process = emulator(file, tmp_path / "trace", *options)
    out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, err
    answer: dict[str, Any] = json.loads(out)
    return answer


@pytest.mark.slow("real nodes live in real time")
@needs_namespaces
def test_real_nodes_do_what_simulated_ones_do(tmp_path: Path) -> None:
    """15 s of real time: the point of an emulation. Links are shadowed, differently in their two directions."""
    signal = '{ model = "log-distance", shadowing_db = 4, symmetric = false }'
    answer = emulated(tmp_path, f"{SCENARIO}radio.signal = {signal}\n")
    expected = roamcast.simulate(tmp_path / "scenario.toml").summary
    assert answer["publications"] == expected["publications"] > 10
    assert answer["delivery_ratio_reachable"] >= expected["delivery_ratio_reachable"] - 0.02
    frames, simulated = sum(answer["frames"].values()), sum(expected["frames"].values())
    assert abs(frames - simulated) <= 0.1 * simulated
    trace = roamcast.read_trace(tmp_path / "trace")
    assert trace.run is not None
    assert trace.run.scenario.nodes == 5
    assert trace.summary["delivered"] == answer["delivered"]
    assert trace.rows("position").num_rows > 0


@pytest.mark.slow("real nodes live in real time")
@needs_namespaces
def test_a_crash_is_a_kill_a_return_a_new_process_and_a_pause_a_stop(tmp_path: Path) -> None:
    """Everybody wants everything, so what nodes 1 and 2 got tells when they were there. They share a key. 3 leaves."""
    away = "from_s = 4, until_s = 7"
    incidents = f'[{{ what = "crash", node = 1, {away} }}, {{ what = "pause", node = 2, {away} }}'
    incidents += ', { what = "leave", node = 3, from_s = 6 }, { what = "join", node = 4, from_s = 5 }]'
    scenario = SCENARIO.replace("range_m = 200", "range_m = 500").replace("selectivity = 0.5", "selectivity = 1.0")
    emulated(
        tmp_path, f'{scenario}security.protection = "sealed"\nfaults.incidents = {incidents}\n', "--duration", "12"
    )
    trace = roamcast.read_trace(tmp_path / "trace")
    assert [row["detail"] for row in trace.rows("fault").to_pylist()] == ["crash", "join", "leave", "return"]
    joined = [row["t"] for row in trace.rows("subscribed").to_pylist() if row["node"] == 4]
    assert joined
    assert min(joined) >= 5  # what it wants is known from then on
    published = trace.rows("published").to_pylist()
    assert {row["shortest_hops"][3] for row in published if row["t"] < 6} <= {0, 1}
    assert {row["shortest_hops"][3] for row in published if row["t"] > 7} == {-1}  # who has left is in nobody's reach
    got = {node: [row for row in trace.rows("delivered").to_pylist() if row["node"] == node] for node in (1, 2)}
    assert not [row for row in got[1] if 4.2 < row["t"] < 7]
    assert [row for row in got[1] if row["t"] > 7.5]
    during = [row for row in got[2] if 4.2 < row["t"] - row["value"] < 6.8]
    assert during  # a node that stops loses nothing: its socket holds what comes
    assert all(row["t"] >= 6.9 for row in during)


@needs_namespaces
def test_nothing_is_left_behind_when_it_is_killed(tmp_path: Path) -> None:
    scenario = tmp_path / "scenario.toml"
    scenario.write_text(SCENARIO, encoding="utf-8")
    process = emulator(scenario, tmp_path / "trace")
    assert process.stderr is not None
    for line in process.stderr:
        if "running for" in line:
            break
    children = psutil.Process(process.pid).children(recursive=True)
    assert len(children) >= 10  # a node and what keeps its namespace, five times
    process.kill()
    process.communicate()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["scenario.toml", "trace"]
    give_up = time.monotonic() + 20
    while any(child.is_running() and child.status() != psutil.STATUS_ZOMBIE for child in children):
        assert time.monotonic() < give_up
        time.sleep(0.1)


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"nodes": 65}, "at most 64"),
        ({"duration_s": 4000.0}, "at most 3600"),
        ({"faults": Faults(incidents=(Incident("slow", 1, 2.0, amount=0.1),))}, "'slow' is simulated only"),
        ({"faults": Faults(dropper_share=0.1)}, "dropper_share: is simulated only"),
        ({"security": Security(protection="signed")}, "write 'sealed'"),
        ({"radio": Wifi80211b(signal=LogDistance(fading="rayleigh"))}, "fading"),
    ],
)
def test_what_cannot_be_emulated_is_refused(settings: dict[str, Any], named: str) -> None:
    with pytest.raises(roamcast.ConfigurationError, match=named):
        require_emulable(Run(scenario=Scenario(**settings)))
