from pathlib import Path

import pytest

from roamcast.errors import ConfigurationError
from roamcast.world.radio.models.lora import Lora
from roamcast.world.radio.signals import LogDistance
from roamcast.world.scenario import Mobility, Partition, Run, Scenario
from roamcast.world.scenario_file import read_run, run_from_tables


def run_of(folder: Path, text: str) -> Run:
    (folder / "run.toml").write_text(text)
    return read_run(folder / "run.toml")


def refusal(folder: Path, text: str) -> str:
    with pytest.raises(ConfigurationError) as refused:
        run_of(folder, text)
    line = str(refused.value)
    assert "\n" not in line
    prefix = f"{folder}/run.toml: "
    assert line.startswith(prefix), line
    return line.removeprefix(prefix)


def test_an_empty_file_is_the_default_run(tmp_path: Path) -> None:
    assert run_of(tmp_path, "") == Run()


def test_every_part_of_a_run_can_be_given(tmp_path: Path) -> None:
    run = run_of(
        tmp_path,
        """
        protocol = "gossip"
        seed = 7
        [parameters]
        probability = 0.6
        [scenario]
        nodes = 20
        area_m = 1500
        [scenario.mobility]
        model = "grid"
        [scenario.radio]
        model = "ideal"
        range_m = 300
        [[scenario.faults.partitions]]
        from_s = 1
        until_s = 2
        west_m = 0
        south_m = 0
        east_m = 10
        north_m = 10
        """,
    )
    assert (run.protocol, run.seed, run.parameters) == ("gossip", 7, {"probability": 0.6})
    assert run.scenario.area_m == (1500, 1500)
    assert run.scenario.mobility == Mobility(model="grid")
    assert run.scenario.radio.range_m == 300
    partition = Partition(from_s=1, until_s=2, west_m=0, south_m=0, east_m=10, north_m=10)
    assert run.scenario.faults.partitions == (partition,)


def test_an_area_may_be_a_rectangle(tmp_path: Path) -> None:
    assert run_of(tmp_path, "[scenario]\narea_m = [1500, 300]").scenario.area_m == (1500, 300)


def test_positions_are_found_beside_the_file_and_embedded(tmp_path: Path) -> None:
    (tmp_path / "hall.txt").write_text("0 0\n10 0\n10 10\n")
    scenario = run_of(tmp_path, "[scenario.mobility]\npositions_file = 'hall.txt'").scenario
    assert (scenario.nodes, scenario.mobility.model) == (3, "static")
    assert scenario.mobility.positions_m == ((0, 0), (10, 0), (10, 10))
    assert scenario.duration_s == Scenario().duration_s


def test_contacts_decide_nodes_and_duration_unless_they_are_given(tmp_path: Path) -> None:
    (tmp_path / "met.txt").write_text("0 4 1 2\n2 1 5 60\n")
    scenario = run_of(tmp_path, "[scenario.mobility]\ncontacts_file = 'met.txt'").scenario
    assert (scenario.nodes, scenario.duration_s, scenario.mobility.model) == (5, 60, "contacts")
    text = "[scenario]\nnodes = 9\nduration_s = 30\n[scenario.mobility]\ncontacts_file = 'met.txt'"
    assert (run_of(tmp_path, text).scenario.nodes, run_of(tmp_path, text).scenario.duration_s) == (9, 30)


def test_movements_decide_nodes_and_duration(tmp_path: Path) -> None:
    lines = ["$node_(0) set X_ 0.0", "$node_(0) set Y_ 0.0", '$ns_ at 10.0 "$node_(0) setdest 30.0 40.0 5.0"']
    (tmp_path / "moves.tcl").write_text("\n".join(lines))
    scenario = run_of(tmp_path, "[scenario.mobility]\nmovements_file = 'moves.tcl'").scenario
    assert (scenario.nodes, scenario.duration_s, scenario.mobility.model) == (1, 20, "movements")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[scenario]\narea_m = -5", "scenario: area_m = (-5.0, -5.0): must be above 0"),
        ("[scenario]\nnodes = 'many'", "scenario.nodes = 'many': Expected `int`, got `str`"),
        ("[scenario]\nnodes = 0", "scenario: nodes = 0: must be between 1 and 100000"),
        ("[scenario]\nduration_s = inf", "scenario.duration_s = inf: must be a finite number"),
        ("[scenario]\narea_m = [1, nan]", "scenario.area_m = nan: must be a finite number"),
        ("[scenario]\nnodes = 5\n[scenario.workload]\npublishers = 6", "workload.publishers = 6: must be at most"),
        ("[scenario.radio]\nmodel = 'laser'", "model = 'laser': must be one of ideal, lora, 802.11b, 802.11g"),
        ("[scenario.radio]\ncapture = 'flag'", "must be one of threshold, bit-errors, none"),
        ("[scenario.radio]\nloss = 1.5", "scenario.radio: loss = 1.5: must be at least 0 and below 1"),
        ("[scenario.radio]\nwatts = 1", "scenario.radio.watts: is not a field; allowed: model, range_m, loss, signal"),
        ("speed = 1", "speed: is not a field; allowed: scenario, protocol, parameters, seed"),
        ("scenario = 3", "scenario = 3: Expected `object`, got `int`"),
        ("[[scenario.faults.partitions]]\nfrom_s = 'x'", "faults.partitions[0].from_s = 'x': Expected `float`"),
        ("seed = x", "is not TOML: Invalid value (at line 1, column 8)"),
        ("[scenario.mobility]\npositions_file = 3", "scenario.mobility.positions_file = 3: must be a file's name"),
        (
            "[scenario.mobility]\npositions_file = 'a'\ncontacts_file = 'b'",
            "scenario.mobility: positions_file and contacts_file are given; allowed: one of them",
        ),
        (
            "[scenario.mobility]\nmodel = 'grid'\ncontacts_file = 'b'",
            "scenario.mobility.model = 'grid': must be 'contacts' with contacts_file",
        ),
    ],
)
def test_a_refusal_names_file_field_value_and_what_is_allowed(tmp_path: Path, text: str, expected: str) -> None:
    assert expected in refusal(tmp_path, text)


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"nowhere\.toml: cannot be read"):
        read_run(tmp_path / "nowhere.toml")
    (tmp_path / "run.toml").write_text("[scenario.mobility]\npositions_file = 'gone.txt'")
    with pytest.raises(ConfigurationError, match=r"gone\.txt: cannot be read"):
        read_run(tmp_path / "run.toml")


def test_tables_are_not_changed_by_building_a_run() -> None:
    tables = {"scenario": {"area_m": 500}}
    run_from_tables(tables)
    assert tables == {"scenario": {"area_m": 500}}


def test_none_switches_off_what_may_be_absent() -> None:
    radio = {"model": "lora", "capture_db": "none", "signal": {"model": "log-distance", "update_period_s": "none"}}
    run = run_from_tables({"scenario": {"radio": radio}})
    assert run.scenario.radio == Lora(capture_db=None, signal=LogDistance())
    with pytest.raises(ConfigurationError, match=r"scenario\.radio\.duty_cycle = 'none': Expected `float`"):
        run_from_tables({"scenario": {"radio": {"model": "lora", "duty_cycle": "none"}}})
