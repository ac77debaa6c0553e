"""The comparison with other simulators, played with programs that only pretend; none of the peers is needed."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from roamcast.bench.load import flood_load, write_load
from roamcast.bench.peers import COLUMNS, LIMIT, NS3, SIMPY, Named, Simulator, compare, loads, simulators, table
from roamcast.bench.processes import ask, this_machine
from roamcast.bench.worker import answer_load
from roamcast.errors import ConfigurationError

PRETENDER = """
import json, sys
load, seed = open(sys.argv[2]).read(), int(sys.argv[3])
assert load.startswith("range_m 200.0")
answer = {"version": "9", "cpu_s": float(sys.argv[1]) * seed, "wall_s": float(sys.argv[1]) * seed,
          "transmissions": 1000, "reach": 0.5 + seed / 10, "delay_ms_mean": 20.0}
print(json.dumps(answer))
"""


def pretender(name: str, seconds: float) -> Simulator:
    return Simulator(name, (sys.executable, "-c", PRETENDER, str(seconds)))


def test_simulators_take_turns_and_are_summed_up() -> None:
    said: list[str] = []
    load = Named("flood, 5 nodes", flood_load(5, 2.0, 1), runs=3)
    comparison = compare([pretender(NS3, 2.0), pretender("other", 0.5)], [load], said.append)
    assert [line.split(": ")[1].split()[0] for line in said] == [NS3, "other"] * 3
    reference, other = comparison.measurements
    assert reference.cpu_s_per_simulated_s == 2.0  # the median of 2, 4 and 6 s for 2 simulated ones
    assert other.us_per_transmission == 1000.0
    assert other.reach == pytest.approx(0.7)
    assert comparison.times_faster(other) == 4.0
    assert comparison.find("flood, 6 nodes", NS3) is None
    rows = table(comparison)
    assert all(len(row) == len(COLUMNS) for row in rows)
    assert rows[1][:5] == ["flood, 5 nodes", "other", "0.5000", "0.5000", "4.0"]


def test_what_takes_long_runs_once() -> None:
    load = Named("flood", flood_load(5, 2.0, 1), runs=3)
    slow, quick = compare([pretender("slow", 31.0), pretender("quick", 1.0)], [load], lambda line: None).measurements
    assert (slow.runs, quick.runs) == (1, 3)


def test_what_is_done_at_once_runs_more_often() -> None:
    load = Named("flood", flood_load(5, 2.0, 1), runs=3)
    contestants = [pretender("long enough", 1.0), pretender("short", 0.1), pretender("very short", 0.001)]
    measured = compare(contestants, [load], lambda line: None).measurements
    assert [measurement.runs for measurement in measured] == [3, 6, 15]


def test_where_one_run_is_enough_short_ones_are_repeated_all_the_same() -> None:
    load = Named("unicast", flood_load(5, 2.0, 1), runs=1)
    slow, quick = compare([pretender("slow", 20.0), pretender("quick", 0.1)], [load], lambda line: None).measurements
    assert (slow.runs, quick.runs) == (1, 6)


def test_without_ns3_there_is_no_ratio() -> None:
    load = Named("flood", flood_load(5, 2.0, 1), runs=1, short_again=False)
    (row,) = table(compare([pretender("other", 1.0)], [load], lambda line: None))
    assert row[4] == "–"


def test_only_what_is_at_hand_takes_part() -> None:
    names = [simulator.name for simulator in simulators(None, None)]
    assert names == ["Roamcast, compiled", "Roamcast, interpreted"]
    with_all = simulators(Path("ns3"), (Path("python"), Path("program")), Path("limit"))
    assert [simulator.name for simulator in with_all if simulator.unicast] == [NS3, *names]
    assert [simulator.name for simulator in with_all if not simulator.unicast] == [SIMPY, LIMIT]


def test_loads_by_size_and_layout(tmp_path: Path) -> None:
    layout = tmp_path / "layout-7.json"
    content = {"positions_m": [[0, 0], [100, 0]], "range_m": 200.0, "side_m": 100.0, "flood": {}}
    layout.write_text(json.dumps(content))
    with pytest.raises(ConfigurationError, match="'unicast' is missing"):
        loads([], None, [layout], 1)
    content["unicast"] = {
        "payload_bytes": 64,
        "duration_s": 2.0,
        "measure_packets_started_before_s": 1.0,
        "ns3": [{"packets_per_s_per_node": 40}, {"packets_per_s_per_node": 20}],
    }
    layout.write_text(json.dumps(content))
    named = loads([50], None, [layout], 3)
    assert [each.title for each in named] == ["flood, 50 nodes", "unicast, layout-7, 20/s", "unicast, layout-7, 40/s"]
    assert [each.load.duration_s for each in named] == [40.0, 2.0, 2.0]


@pytest.mark.parametrize(
    ("program", "complaint"),
    [
        ("import sys; sys.exit('no such file')", "x: ended with 1: no such file"),
        ("print('hello')", "x: its answer is no JSON"),
    ],
)
def test_programs_that_fail_are_named(program: str, complaint: str) -> None:
    with pytest.raises(ConfigurationError, match=complaint):
        ask("x", (sys.executable, "-c", program))


def test_a_program_that_is_not_there_is_named() -> None:
    with pytest.raises(ConfigurationError, match="x: '/nowhere' cannot be run"):
        ask("x", ("/nowhere",))


def test_the_form_that_was_asked_for_must_run() -> None:
    program = 'import json, os; print(json.dumps({"form": "interpreted: " + os.environ.get("ROAMCAST_PURE", "")}))'
    assert ask("x", (sys.executable, "-c", program), form="interpreted")["form"] == "interpreted: 1"
    with pytest.raises(ConfigurationError, match="compiled was to be measured, but it ran interpreted"):
        ask("x", (sys.executable, "-c", program), form="compiled")


def test_the_machine_is_described() -> None:
    machine = this_machine()
    assert machine.cores >= 1
    assert machine.memory_gib > 0
    assert machine.processor


@pytest.mark.skipif(shutil.which("g++") is None, reason="there is no C++ compiler")
def test_the_limit_in_cpp_floods_as_roamcast_does(tmp_path: Path) -> None:
    program = tmp_path / "limit"
    source = Path(__file__).parents[2] / "peers" / "limit.cc"
    subprocess.run(["g++", "-std=c++17", "-O1", "-o", str(program), str(source)], check=True)
    load = flood_load(40, 6.0, 1)
    file = tmp_path / "load"
    file.write_text(write_load(load))
    answer = ask(LIMIT, (str(program), str(file), "1"))
    ours = answer_load(load, 1)
    assert answer["reach"] == pytest.approx(ours["reach"], abs=0.05)
    assert answer["transmissions"] == pytest.approx(ours["transmissions"], rel=0.05)
    assert answer["delay_ms_mean"] == pytest.approx(ours["delay_ms_mean"], rel=0.1)
