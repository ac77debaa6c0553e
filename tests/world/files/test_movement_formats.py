"""Movements of other tools, as these tools write them: what is read, and what is refused with which line."""

import gzip
from math import inf
from pathlib import Path

import pytest

from roamcast.errors import ConfigurationError
from roamcast.world.files import MovementRecording, read_movements
from roamcast.world.files.formats import Format, told_apart
from roamcast.world.mobility import Movements

BONNMOTION = """\
0.0 10.0 20.0 5.5 30.0 20.0 9.0 30.0 20.0
0.0 1.0 2.0
"""

EXTERNAL = """\
100 160 1000 1500 2000 2400 0 0
100 7 1000.0 2000.0
110 7 1100.0 2050.0
105 3 1500.0 2400.0
160 3 1500.0 2390.0
"""

SNAPSHOTS = """\
[10]
p1 5.0 6.0
p10 1.0 1.0
c0 0.0 0.0
[40]
p1 35.0 6.0
p10 1.0 1.0
c0 0.0 60.0
"""

FCD = """\
<?xml version="1.0" encoding="UTF-8"?>
<!-- generated on 2024-05-01 by Eclipse SUMO sumo Version 1.18.0
<configuration><output><fcd-output value="fcd.xml"/></output></configuration>
-->
<fcd-export xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:noNamespaceSchemaLocation="fcd_file.xsd">
    <timestep time="25200.00">
        <vehicle id="bus.9" x="-5.00" y="10.00" angle="90.00" type="bus" speed="0.00" pos="5.10" lane="a_0" slope="0"/>
    </timestep>
    <timestep time="25201.00">
        <vehicle id="bus.9" x="0.00" y="10.00" angle="90.00" type="bus" speed="5.00" pos="10.10" lane="a_0" slope="0"/>
        <vehicle id="bus.10" x="95.00" y="60.00" angle="0.00" type="bus" speed="0.00" pos="0.10" lane="b_0" slope="0"/>
    </timestep>
    <timestep time="25202.00">
        <vehicle id="bus.9" x="5.00" y="10.00" angle="90.00" type="bus" speed="5.00" pos="15.10" lane="a_0" slope="0"/>
        <person id="ped1" x="1.00" y="2.00" angle="0.00" speed="0.00" pos="0.00" edge="a" slope="0.00"/>
    </timestep>
    <timestep time="25204.00">
        <person id="ped1" x="1.00" y="2.00" angle="0.00" speed="0.00" pos="0.00" edge="a" slope="0.00"/>
    </timestep>
</fcd-export>
"""

# The next four are from runs of SUMO 1.28 and its tools, shortened.
SUMO_GEO = """\
<?xml version="1.0" encoding="UTF-8"?>

<!-- generated on 2026-11-18T05:28:49.325195+00:00 by Eclipse SUMO sumo 1.28.0
<sumoConfiguration xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:noNamespaceSchemaLocation="s.xsd">

    <output>
        <fcd-output value="geo.xml"/>
        <fcd-output.geo value="true"/>
    </output>

</sumoConfiguration>
-->

<fcd-export xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:noNamespaceSchemaLocation="fcd_file.xsd">
    <timestep time="0.00">
        <vehicle id="bus.9" x="11.570162" y="48.129986" angle="88.09" type="bus" speed="13.89" pos="12.10" lane="ab_1"/>
    </timestep>
    <timestep time="3.00">
        <vehicle id="bus.10" x="11.573837" y="48.133014" angle="268.08" type="bus" speed="13.89" lane="cd_1"/>
        <vehicle id="bus.9" x="11.570712" y="48.129986" angle="88.09" type="bus" speed="13.69" pos="53.03" lane="ab_1"/>
    </timestep>
</fcd-export>
"""

SUMO_GEO_CSV = """\
timestep_time;vehicle_id;vehicle_x;vehicle_y;vehicle_angle;vehicle_type;vehicle_speed;vehicle_pos;vehicle_lane
0.00;bus.9;11.570162;48.129986;88.09;bus;13.89;12.10;ab_1
3.00;bus.10;11.573837;48.133014;268.08;bus;13.89;12.10;cd_1
3.00;bus.9;11.570712;48.129986;88.09;bus;13.69;53.03;ab_1
"""

SUMO_XML2CSV = """\
timestep_time;vehicle_angle;vehicle_id;vehicle_lane;vehicle_x;vehicle_y;person_angle;person_id;person_x;person_y
0.00;88.09;bus.9;ab_1;23.28;1.20;;;;
4.00;88.09;bus.9;ab_1;78.00;0.63;;;;
4.00;;;;;;88.09;ped1;11.30;4.80
5.00;;;;;;88.09;ped1;12.00;4.80
"""

SUMO_NS2 = """\
$node_(0) set X_ 23.28
$node_(0) set Y_ 1.2
$node_(0) set Z_ 0
$ns_ at 0.0 "$node_(0) setdest 23.28 1.2 13.89"
$ns_ at 1.0 "$node_(0) setdest 36.63 0.75 13.35"
$node_(1) set X_ 285.44
$node_(1) set Y_ 344.56
$node_(1) set Z_ 0
$ns_ at 3.0 "$node_(1) setdest 285.44 344.56 13.89"
$ns_ at 4.0 "$node_(1) setdest 271.6 344.09 13.85"
"""

GPX = """\
<?xml version="1.0" encoding="UTF-8"?>
<gpx version="1.1" creator="Garmin Connect" xmlns="http://www.topografix.com/GPX/1/1">
  <metadata><time>2024-05-01T11:00:00Z</time></metadata>
  <wpt lat="1.0" lon="2.0"><name>a waypoint</name></wpt>
  <trk>
    <name>Anna</name>
    <trkseg>
      <trkpt lat="48.0000" lon="11.0000"><ele>520.1</ele><time>2024-05-01T12:00:00Z</time></trkpt>
      <trkpt lat="48.0010" lon="11.0000"><ele>520.4</ele><time>2024-05-01T12:01:00.500Z</time></trkpt>
    </trkseg>
  </trk>
  <trk>
    <trkseg>
      <trkpt lat="48.0000" lon="11.0010"><time>2024-05-01T14:00:30+02:00</time></trkpt>
      <trkpt lat="48.0000" lon="11.0020"><time>2024-05-01T14:00:40+02:00</time></trkpt>
    </trkseg>
  </trk>
</gpx>
"""

CSV = """\
# exported by hand
id;time;speed;x;y
b;2;0;10;0
a;0;1;0;0
a;4;1;8;0
b;4;0;10;4
"""


def read(folder: Path, text: str, name: str = "input.txt", named: Format | None = None) -> MovementRecording:
    path = folder / name
    path.write_text(text)
    return read_movements(path, named)


def refusal(folder: Path, text: str, name: str = "input.txt", named: Format | None = None) -> str:
    with pytest.raises(ConfigurationError) as refused:
        read(folder, text, name, named)
    line = str(refused.value)
    assert "\n" not in line
    assert line.startswith(f"{folder}/{name}")
    return line.removeprefix(f"{folder}/{name}")


def test_bonnmotion_lists_a_nodes_corners_in_one_line(tmp_path: Path) -> None:
    found = read(tmp_path, BONNMOTION)
    assert found.paths == (((0.0, 10.0, 20.0), (5.5, 30.0, 20.0), (9.0, 30.0, 20.0)), ((0.0, 1.0, 2.0),))
    assert (found.area_m, found.duration_s, found.present) == ((30.0, 20.0), 9.0, ())


def test_bonnmotion_in_three_dimensions_packed_with_its_parameters(tmp_path: Path) -> None:
    (tmp_path / "s.movements.gz").write_bytes(gzip.compress(b"0.0 1.0 2.0 0.0 4.0 5.0 2.0 0.0\n0 9 9 3\n"))
    without = read_movements(tmp_path / "s.movements.gz")
    assert without.paths == (((0.0, 1.0, 2.0), (4.0, 5.0, 2.0)), ((0.0, 9.0, 9.0),))
    (tmp_path / "s.params").write_text("model=RandomWaypoint3D\nx=200.0\ny=150.0\nduration=600.0\nnn=2\nJ=3D\n")
    found = read_movements(tmp_path / "s.movements.gz")
    assert (found.paths, found.area_m, found.duration_s) == (without.paths, (200.0, 150.0), 600.0)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("0.0 1.0 2.0 5.0", "corners `t x y` in a row, 3 numbers each (there are 4 numbers)"),
        ("0.0 1.0 2.0 5.0 3.0 3.0 4.0 1.0 1.0", "corners `t x y` in order of time (the one at 4 s is not)"),
        ("0.0 1.0 2.0 5.0 3.0 3.0 5.0 100.0 1.0", "one place at 5 s"),
        ("0.0 1.0 north", "numbers: `t x y t x y ...`"),
    ],
)
def test_broken_bonnmotion_is_refused_by_line(tmp_path: Path, line: str, expected: str) -> None:
    told = refusal(tmp_path, f"0.0 1.0 2.0\n\n{line}\n", "a.movements")
    assert told.startswith(":3: ")
    assert expected in told
    (tmp_path / "a.params").write_text("x=wide\n")
    with pytest.raises(ConfigurationError, match=r"a.params:1: 'x=wide': expected x=NUMBER"):
        read(tmp_path, "0 1 2\n", "a.movements")


def test_external_movements_of_the_one_start_at_their_minima(tmp_path: Path) -> None:
    found = read(tmp_path, EXTERNAL)
    assert found.names == ("3", "7")
    late, early = found.paths
    assert early == ((0.0, 0.0, 0.0), (10.0, 100.0, 50.0))
    assert late == ((0.0, 500.0, 400.0), (5.0, 500.0, 400.0), (60.0, 500.0, 390.0))
    assert found.present == ((5.0, 60.0), (0.0, 10.0))
    assert (found.area_m, found.duration_s) == ((500.0, 400.0), 60.0)


def test_location_snapshots_of_the_one(tmp_path: Path) -> None:
    found = read(tmp_path, SNAPSHOTS)
    assert found.names == ("c0", "p1", "p10")  # digits compare as numbers
    assert found.paths[1] == ((0.0, 5.0, 6.0), (30.0, 35.0, 6.0))
    assert (found.present, found.duration_s, found.area_m) == ((), 30.0, (35.0, 60.0))


@pytest.mark.parametrize(
    ("text", "number", "expected"),
    [
        ("0 10 0 100 0\n1 1 1 1\n", 1, "minTime maxTime"),
        ("0 10 0 100 5 5\n1 1 1 1\n", 1, "minima below maxima"),
        ("0 10 0 100 0 50\n1 1 1 1\n2 1 101 1\n", 3, "within the bounds of line 1"),
        ("0 10 0 100 0 50\n1 1 1 1\n2 1 1\n", 3, "`time id x y`"),
        ("[0]\np0 1\n", 2, "`name x y`, or `[time]`"),
        ("[soon]\np0 1 1\n", 1, "`[time]`, a number of seconds"),
    ],
)
def test_broken_files_of_the_one_are_refused_by_line(tmp_path: Path, text: str, number: int, expected: str) -> None:
    told = refusal(tmp_path, text, named="one")
    assert told.startswith(f":{number}: ")
    assert expected in told


def test_floating_car_data_comes_and_goes(tmp_path: Path) -> None:
    found = read(tmp_path, FCD)
    assert found.names == ("bus.9", "bus.10", "ped1")
    # From 7 o'clock and from the west: times start at 0, and no coordinate is negative.
    assert found.paths[0] == ((0.0, 0.0, 10.0), (2.0, 10.0, 10.0))
    assert found.present == ((0.0, 2.0), (1.0, 2.0), (2.0, 4.0))
    assert (found.duration_s, found.area_m, found.origin_deg) == (4.0, (100.0, 60.0), None)


def test_floating_car_data_in_degrees(tmp_path: Path) -> None:
    text = FCD.replace('value="fcd.xml"/>', 'value="fcd.xml"/><fcd-output.geo value="true"/>')
    text = text.replace('"-5.00"', '"0.00"').replace('"95.00"', '"2.00"')
    declared = read(tmp_path, text)
    assert declared.origin_deg == (2.0, 0.0)
    assert declared.paths[0][-1][1:] == pytest.approx((5 * 95_500, 8 * 110_860), rel=0.002)
    asked = read(tmp_path, text.replace("fcd-output.geo", "something"), named="fcd-geo")
    assert asked == declared


def test_a_broken_element_is_refused_with_its_line_also_far_down(tmp_path: Path) -> None:
    steps = "".join(f'<timestep time="{t}">\n<vehicle id="v" x="1" y="2"/>\n</timestep>\n' for t in range(30_000))
    told = refusal(tmp_path, f'<fcd-export>\n{steps}<timestep time="x">\n</timestep></fcd-export>')
    assert told == ":90002: \"<timestep time='x'>\": expected a time in seconds"
    told = refusal(tmp_path, '<fcd-export>\n<timestep time="1">\n\n<vehicle id="v" x="1"/></timestep></fcd-export>')
    assert told.startswith(":4: ")
    assert "x and y numbers" in told
    assert refusal(tmp_path, "<fcd-export>\n<timestep>\n") == ":2: '<timestep time=None>': expected a time in seconds"
    assert refusal(tmp_path, "<fcd-export>\n</timestep>\n") == ":2: is not XML: mismatched tag"
    assert "expected `<fcd-export>`" in refusal(tmp_path, "<routes/>")
    assert "expected at least one `<vehicle>`" in refusal(tmp_path, "<fcd-export/>")


@pytest.mark.parametrize(("text", "named"), [(SUMO_GEO, None), (SUMO_GEO_CSV, "csv-geo")])
def test_degrees_of_sumo_become_metres(tmp_path: Path, text: str, named: Format | None) -> None:
    found = read(tmp_path, text, named=named)
    assert found.names == ("bus.9", "bus.10")
    assert found.origin_deg == (48.129986, 11.570162)
    movements = Movements(found.paths)
    assert movements.velocity(0, 1.0)[0] == pytest.approx(13.6, abs=0.1)  # 41 m in 3 s, as `pos` says
    assert movements.position(1, 3.0)[1] == pytest.approx(336.7, abs=0.5)


def test_xml2csv_has_rows_about_vehicles_and_about_persons(tmp_path: Path) -> None:
    found = read(tmp_path, SUMO_XML2CSV)
    assert found.names == ("bus.9", "ped1")
    assert found.present == ((0.0, 4.0), (4.0, 5.0))


def test_trace_exporter_tells_ns2_where_cars_are_each_second(tmp_path: Path) -> None:
    found = read(tmp_path, SUMO_NS2)
    assert Movements(found.paths).position(0, 2.0) == pytest.approx((36.63, 0.75), abs=0.02)
    assert Movements(found.paths).position(1, 4.5) == pytest.approx((278.5, 344.3), abs=0.1)


@pytest.mark.parametrize("root", ["fcd-export", "gpx"])
def test_a_document_type_definition_is_refused(tmp_path: Path, root: str) -> None:
    bomb = f'<?xml version="1.0"?>\n<!DOCTYPE {root} [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]>\n<{root}>&b;</{root}>'
    told = refusal(tmp_path, bomb)
    assert told == ":2: '<!DOCTYPE': expected no document type definition"


def test_gpx_tracks_in_metres(tmp_path: Path) -> None:
    found = read(tmp_path, GPX, "walk.gpx")
    assert found.names == ("Anna", "walk track 2")
    anna, other = found.paths
    assert anna[0] == (0.0, 0.0, 0.0)
    assert anna[1] == pytest.approx((60.5, 0.0, 111.19), abs=0.01)  # a thousandth of a degree of latitude at 48°
    assert other[1] == pytest.approx((30.0, 74.63, 0.0), abs=0.01)  # of longitude
    assert found.present == ((0.0, 60.5), (30.0, 40.0))
    assert found.origin_deg == (48.0, 11.0)


def test_gpx_of_sumo_has_times_in_seconds(tmp_path: Path) -> None:
    points = '<trkpt lon="11" lat="48"><time>0.0</time></trkpt><trkpt lon="11" lat="48.001"><time>2</time></trkpt>'
    found = read(tmp_path, f'<gpx version="1.0"><trk><name>v0</name><trkseg>{points}</trkseg></trk></gpx>')
    assert found.names == ("v0",)
    assert [corner[0] for corner in found.paths[0]] == [0.0, 2.0]


def test_a_folder_of_gpx_files_is_one_recording(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.gpx").write_text(GPX)
    found = read_movements(tmp_path)
    assert found.names == ("Anna", "Anna (2)", "a track 2", "b track 2")
    assert found.paths[0] == found.paths[1]


@pytest.mark.parametrize(
    ("old", "new", "number", "expected"),
    [
        ('lat="48.0010"', 'lat="high"', 9, "`<trkpt lat=… lon=…>`, both numbers"),
        ('lat="48.0010"', 'lat="98"', 9, "a latitude between -90 and 90"),
        ("<time>2024-05-01T12:01:00.500Z</time>", "", 9, "a `<time>` in every point"),
        ("2024-05-01T12:01:00.500Z", "noon", 9, "a time such as 2024-05-01T12:00:00Z"),
        ("2024-05-01T12:01:00.500Z", "2024-05-01T12:00:00Z", 9, "at one place"),
    ],
)
def test_broken_gpx_is_refused_by_line(tmp_path: Path, old: str, new: str, number: int, expected: str) -> None:
    told = refusal(tmp_path, GPX.replace(old, new))
    assert told.startswith(f":{number}: ")
    assert expected in told


def test_csv_columns_go_by_their_names(tmp_path: Path) -> None:
    found = read(tmp_path, CSV)
    assert found.names == ("a", "b")
    assert found.paths == (((0.0, 0.0, 0.0), (4.0, 8.0, 0.0)), ((0.0, 10.0, 0.0), (2.0, 10.0, 0.0), (4.0, 10.0, 4.0)))
    assert found.present == ((0.0, 4.0), (2.0, 4.0))


def test_csv_with_degrees_and_timestamps(tmp_path: Path) -> None:
    text = "name,timestamp,lat,lon\nx,2024-05-01T12:00:00Z,48,11\nx,2024-05-01T12:00:10Z,48.001,11\n"
    found = read(tmp_path, text)
    assert found.paths[0][1] == pytest.approx((10.0, 0.0, 111.2), abs=0.1)
    assert found.origin_deg == (48.0, 11.0)


def test_sumos_csv_is_read_too(tmp_path: Path) -> None:
    header = "timestep_time;vehicle_angle;vehicle_id;vehicle_lane;vehicle_pos;vehicle_x;vehicle_y"
    found = read(tmp_path, f"{header}\n0.00;90.0;v0;a_0;5.1;1.00;2.00\n1.00;90.0;v0;a_0;9.1;5.00;2.00\n")
    assert found.paths == (((0.0, 1.0, 2.0), (1.0, 5.0, 2.0)),)


@pytest.mark.parametrize(
    ("text", "number", "expected"),
    [
        ("node,t\n0,1\n", 1, "a header with columns for node, time (t_s), and x_m, y_m or lat, lon"),
        ("node,t,x,y\n0,1,2,3\n0,2,3\n", 3, "two coordinates"),
        ("node,t,x,y\n\n0,1,2,3\n0,later,3,4\n", 4, "a time in seconds"),
        ("node,t,x,y\n,1,2,3\n", 2, "a node"),
        ("node,t,x,y\n0,1,2,nan\n", 2, "two coordinates"),
        ("node,t,x,y\n0,1,2,3\n0,1,5,3\n", 3, "'0' at one place at 1 s (line 2 has another)"),
        ("node,t,lat,lon\n0,1,200,3\n", 2, "a latitude between"),
    ],
)
def test_broken_csv_is_refused_by_line(tmp_path: Path, text: str, number: int, expected: str) -> None:
    told = refusal(tmp_path, text, "moves.csv")
    assert told.startswith(f":{number}: ")
    assert expected in told


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (BONNMOTION, "bonnmotion"),
        (EXTERNAL, "one"),
        (SNAPSHOTS, "one"),
        (FCD, "fcd"),
        (GPX, "gpx"),
        (CSV, "csv"),
        ("$node_(0) set X_ 1\n", "ns2"),
        ("0 1 2 3 4 5\n0 1 2\n", "bonnmotion"),
        ("hello\n", "ns2"),
    ],
)
def test_formats_are_told_apart(text: str, expected: Format) -> None:
    assert told_apart(Path("input.txt"), text) == expected


def test_a_node_that_stands_still_keeps_only_the_corners_it_needs(tmp_path: Path) -> None:
    rows = "".join(f"car,{t},{min(t, 10)},0\n" for t in range(101))
    found = read(tmp_path, f"node,t,x,y\n{rows}")
    assert found.paths == (((0.0, 0.0, 0.0), (10.0, 10.0, 0.0), (100.0, 10.0, 0.0)),)
    where = Movements(found.paths)
    assert [where.position(0, t) for t in (5.0, 50.0)] == [(5.0, 0.0), (10.0, 0.0)]
    assert inf not in found.paths[0][-1]
