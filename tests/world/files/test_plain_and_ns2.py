"""Positions, contacts and ns-2 movements: what is read, what is refused and where, and that writing reads back."""

import gzip
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from roamcast.errors import ConfigurationError
from roamcast.world.contacts import ContactPlan, contact_plan
from roamcast.world.files import (
    contacts_text,
    movements_text,
    positions_text,
    read_contacts,
    read_movements,
    read_positions,
    table_text,
    write_whole,
)
from roamcast.world.mobility import Movements, scenario_movements
from roamcast.world.scenario import Mobility, Scenario

NS2 = """\
# nodes: 2, pause: 1.00, max speed: 20.00, max x: 670.00, max y: 400.50
$node_(0) set X_ 10.0
$node_(0) set Y_ 20.0
$node_(0) set Z_ 0.000000000000
$node_(1) set Y_ 0;
$node_(1) set X_ 5e1
$god_ set-dist 0 1 2

$ns_ at 40.0 "$node_(0) setdest 110.0 120.0 10.0"
$ns_ at 30.0 "$node_(0) setdest 10.0 20.0 0.0"
$ns_ at 10.0 "$node_(0) setdest 110.0 20.0 5.0"  # arrives at 30
$ns_ at 12.0 "$god_ set-dist 0 1 1"
$ns_ at 0.0 "$node_(1) setdest 50.0 100.0 10.0"
$ns_ at 5.0 "$node_(1) setdest 80.0 50.0 3.0"
$ns_ at 5.0 "$node_(1) setdest 80.0 50.0 6.0"
$ns_ at 7.5 "$node_(1) setdest 0.0 0.0 0.0"
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "input.txt"
    path.write_text(text)
    return path


def test_positions_by_line(tmp_path: Path) -> None:
    path = written(tmp_path, "# two nodes\n1.5 2\n\n3,4e1  # with a comma\n")
    assert read_positions(path) == ((1.5, 2.0), (3.0, 40.0))


def test_contacts_by_line(tmp_path: Path) -> None:
    path = written(tmp_path, "#a b from until\n0 1 0 5.5\n3, 2, 1e1, 20\n")
    assert read_contacts(path) == ((0, 1, 0.0, 5.5), (3, 2, 10.0, 20.0))


def test_a_movement_file_goes_rests_turns_and_stops(tmp_path: Path) -> None:
    recording = read_movements(written(tmp_path, NS2))
    first, second = recording.paths
    assert (recording.area_m, recording.duration_s) == ((670.0, 400.5), 50.0)
    assert first == ((0, 10, 20), (10, 10, 20), (30, 110, 20), (40, 110, 20), (50, 110, 120))
    # Redirected at (50, 50) before it arrived, by the later of two orders at the same time; then stopped halfway.
    assert second[:2] == ((0.0, 50.0, 0.0), (5.0, 50.0, 50.0))
    assert second[2] == pytest.approx((7.5, 65.0, 50.0))
    assert len(second) == 3


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("$node_(0) set X_ far", "a number of metres after X_"),
        ("$node_(0) set X_ nan", "a number of metres after X_"),
        ("$node_(zero) set X_ 1", "`$node_(N) set X_ NUMBER` or"),
        ('$ns_ at 1.0 "$node_(0) setdest 1 2"', 'or `$ns_ at TIME "$node_(N) setdest X Y SPEED"`'),
        ('$ns_ at -1.0 "$node_(0) setdest 1 2 3"', "TIME and SPEED at least 0"),
        ('$ns_ at 1.0 "$node_(0) setdest 1 2 -3"', "TIME and SPEED at least 0"),
        ('$ns_ at soon "$node_(0) setdest 1 2 3"', "TIME, X, Y and SPEED to be numbers"),
        ('$ns_ at 1.0 "$node_(1) setdest 1 2 3"', "a starting place, `$node_(1) set X_ NUMBER`"),
        ("hello", "`$node_(N) set X_ NUMBER` or"),
    ],
)
def test_a_broken_movement_file_is_refused_by_line(tmp_path: Path, line: str, expected: str) -> None:
    path = written(tmp_path, f"# made by hand\n$node_(0) set X_ 1\n$node_(0) set Y_ 1\n\n{line}\n")
    with pytest.raises(ConfigurationError) as refused:
        read_movements(path)
    assert str(refused.value).startswith(f"{path}:5: {line!r}: expected ")
    assert expected in str(refused.value)


def test_a_header_that_makes_no_sense_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, "#\n# nodes: 1, max x: -5, max y: 3\n$node_(0) set X_ 1\n$node_(0) set Y_ 1\n")
    with pytest.raises(ConfigurationError, match=r"input.txt:2: .* expected a number above 0 after `max x:`"):
        read_movements(path)


def test_node_numbers_must_not_have_gaps(tmp_path: Path) -> None:
    path = written(tmp_path, "$node_(0) set X_ 1\n$node_(0) set Y_ 1\n$node_(987654321) set X_ 1\n")
    with pytest.raises(ConfigurationError, match=r"input.txt:3: .* no lines about \$node_\(1\)"):
        read_movements(path)


@pytest.mark.parametrize("line", ["1 2 3", "1", "1 north", "1 inf"])
def test_a_broken_position_is_refused_by_line(tmp_path: Path, line: str) -> None:
    path = written(tmp_path, f"1 2\n{line}\n")
    with pytest.raises(ConfigurationError) as refused:
        read_positions(path)
    assert str(refused.value) == f"{path}:2: {line!r}: expected `x y`, two numbers in metres"


@pytest.mark.parametrize("line", ["0 1 2", "0 0 1 2", "0 -1 1 2", "0 1.5 1 2", "0 1 2 2", "0 1 -1 2", "0 1 a 2"])
def test_a_broken_contact_is_refused_by_line(tmp_path: Path, line: str) -> None:
    path = written(tmp_path, f"# header\n0 1 2 3\n{line}\n")
    with pytest.raises(ConfigurationError) as refused:
        read_contacts(path)
    assert str(refused.value).startswith(f"{path}:3: {line!r}: expected `a b from until`")


@pytest.mark.parametrize("read", [read_positions, read_movements, read_contacts])
def test_files_that_are_absent_empty_or_not_text_are_refused(tmp_path: Path, read: Callable[[Path], object]) -> None:
    with pytest.raises(ConfigurationError, match=r"absent.txt: cannot be read: No such file"):
        read(tmp_path / "absent.txt")
    with pytest.raises(ConfigurationError, match=r"cannot be read: Is a directory"):
        read(tmp_path)
    with pytest.raises(ConfigurationError, match=r"input.txt: expected at least one"):
        read(written(tmp_path, "# nothing\n"))
    (tmp_path / "image").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigurationError, match=r"image: cannot be read: expected a text file in UTF-8"):
        read(tmp_path / "image")
    (tmp_path / "packed.gz").write_bytes(gzip.compress(b"1 2\n")[:-5])
    with pytest.raises(ConfigurationError, match=r"packed.gz: cannot be read: it is damaged"):
        read(tmp_path / "packed.gz")


@pytest.mark.parametrize("model", ["waypoint", "group", "static"])
def test_what_is_written_reads_back(tmp_path: Path, model: str) -> None:
    mobility = Mobility(model=model, speed_min_mps=3.0, speed_max_mps=30.0, pause_max_s=4.0)  # type: ignore[arg-type]
    where = scenario_movements(Scenario(nodes=20, area_m=(400.0, 300.0), duration_s=60.0, mobility=mobility), 2)
    assert where is not None
    recording = read_movements(written(tmp_path, movements_text(where, (400.0, 300.0), 60.0)))
    assert (recording.area_m, recording.duration_s) == ((400.0, 300.0), 60.0)
    again = Movements(recording.paths)
    for t_s in np.linspace(0.0, 60.0, 121).tolist():
        assert np.abs(again.positions(t_s) - where.positions(t_s)).max() < 1e-6
    assert [len(again.corners(node)) for node in range(20)] == [len(where.until(node, 60.0)) for node in range(20)]

    table = read_movements(written(tmp_path, table_text(where, 60.0)))
    assert (table.duration_s, table.present, table.names) == (60.0, (), ())
    for t_s in np.linspace(0.0, 60.0, 121).tolist():
        assert np.abs(Movements(table.paths).positions(t_s) - where.positions(t_s)).max() < 1e-6

    positions_m = read_positions(written(tmp_path, positions_text(where, 12.5)))
    assert positions_m == tuple(where.position(node, 12.5) for node in range(20))

    plan = contact_plan(where, 80.0, 60.0)
    read = ContactPlan.from_list(read_contacts(written(tmp_path, contacts_text(plan))), 20, 60.0)
    for column in ("a", "b", "from_s", "until_s"):
        assert getattr(read, column).tolist() == getattr(plan, column).tolist()


def test_writing_is_all_or_nothing(tmp_path: Path) -> None:
    path = tmp_path / "kept.txt"
    write_whole(path, "first\n")
    with pytest.raises(UnicodeEncodeError):
        write_whole(path, "half\ud800")
    assert path.read_text() == "first\n"
    assert [entry.name for entry in tmp_path.iterdir()] == ["kept.txt"]
    with pytest.raises(ConfigurationError, match=r"absent/new.txt: cannot be written: No such file or directory"):
        write_whole(tmp_path / "absent" / "new.txt", "text")
    (tmp_path / "folder").mkdir()
    with pytest.raises(ConfigurationError, match=r"folder: cannot be written: Is a directory"):
        write_whole(tmp_path / "folder", "text")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["folder", "kept.txt"]
