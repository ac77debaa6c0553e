"""`roamcast mobility`, run as users run it."""

import json
from pathlib import Path
from xml.etree import ElementTree

import pyarrow.compute as pc
import pytest
import typer
from typer.testing import CliRunner

from roamcast.cli import main
from roamcast.cli.mobility import mobility
from roamcast.errors import ConfigurationError
from roamcast.world.scenario_file import run_from_tables
from roamcast.world.simulator import simulate

SVG = "{http://www.w3.org/2000/svg}"

app = typer.Typer()
app.command()(mobility)


def run(*arguments: object) -> str:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def answer(*arguments: object) -> dict[str, object]:
    told = json.loads(run(*arguments, "--json"))
    assert isinstance(told, dict)
    return told


def refusal(*arguments: object) -> str:
    with pytest.raises(ConfigurationError) as refused:
        run(*arguments)
    assert "\n" not in str(refused.value)
    return str(refused.value)


def test_roamcast_finds_it_and_refuses_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, status in ((["mobility", "--json"], 0), (["mobility", "--at", "-1"], 2)):
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        assert ended.value.code == status
    told = capsys.readouterr()
    assert json.loads(told.out)["nodes"] == 50
    assert told.err == "roamcast: at = -1.0: must be at least 0 and below the duration (100)\n"


def test_a_lattice_is_summarised() -> None:
    found = answer("--mobility", "grid", "--nodes", 9, "--area", 200, "--range", 100, "--duration", 10)
    assert found == {
        "mobility": "grid",
        "nodes": 9,
        "seed": 1,
        "range_m": 100.0,
        "duration_s": 10.0,
        "degree_mean": pytest.approx(24 / 9),
        "contacts": 12,
        "contact_duration_s_mean": pytest.approx(10.0),
        "at_s": 0.0,
        "links": 12,
        "largest_component_share": 1.0,
        "written": [],
    }


def test_the_summary_for_people_says_the_same() -> None:
    told = run("--mobility", "grid", "--nodes", 9, "--area", 200, "--range", 100, "--duration", 10)
    assert told.splitlines() == [
        "nodes        9 (grid, seed 1)",
        "mean degree  2.67 over 10 s",
        "contacts     12, 10.0 s each on average",
        "at 0 s       12 links, largest component 100.0%",
    ]


def test_a_network_without_contacts_has_no_mean_duration() -> None:
    found = answer("--mobility", "grid", "--nodes", 4, "--range", 10)
    assert (found["contacts"], found["contact_duration_s_mean"]) == (0, None)
    assert found["largest_component_share"] == 0.25


def test_written_movements_and_contacts_give_the_same_answer(tmp_path: Path) -> None:
    drawn = ("--nodes", 25, "--area", "600x400", "--range", 120, "--seed", 4, "--pause-max", 5, "--duration", 60)
    direct = answer(*drawn, "--write", "movements", "--out", tmp_path / "moves.ns")
    run(*drawn, "--write", "contacts", "--out", tmp_path / "contacts.txt")
    run(*drawn, "--write", "positions", "--out", tmp_path / "places.txt", "--at", 30)
    assert direct["written"] == [str(tmp_path / "moves.ns")]
    measures = ("nodes", "contacts", "links", "largest_component_share")
    from_moves = answer("--movements", tmp_path / "moves.ns", "--range", 120, "--duration", 60)
    from_contacts = answer("--contacts", tmp_path / "contacts.txt")
    from_places = answer("--positions", tmp_path / "places.txt", "--range", 120)
    for found in (from_moves, from_contacts):
        assert [found[measure] for measure in measures] == [direct[measure] for measure in measures]
        assert found["degree_mean"] == pytest.approx(direct["degree_mean"])
    assert from_places["links"] == answer(*drawn, "--at", 30)["links"]


@pytest.mark.parametrize(("product", "suffix"), [("movements", "ns"), ("csv", "csv")])
@pytest.mark.parametrize("model", ["waypoint", "static", "golf"])
def test_movements_of_a_short_run_round_trip_without_further_options(
    tmp_path: Path, product: str, suffix: str, model: str
) -> None:
    drawn = ("--duration", 20, "--nodes", 40, "--area", "900x700", "--mobility", model)
    direct = answer(*drawn, "--write", product, "--out", tmp_path / f"moves.{suffix}")
    again = answer("--movements", tmp_path / f"moves.{suffix}")
    for measure in ("nodes", "duration_s", "contacts", "links", "largest_component_share"):
        assert again[measure] == direct[measure], measure
    assert again["degree_mean"] == pytest.approx(direct["degree_mean"])


FCD = """<fcd-export>
<timestep time="100"><vehicle id="a" x="0" y="0"/></timestep>
<timestep time="110"><vehicle id="a" x="100" y="0"/><vehicle id="b" x="0" y="50"/></timestep>
<timestep time="120"><vehicle id="b" x="0" y="50"/></timestep>
</fcd-export>"""


def test_an_imported_trace_is_shown(tmp_path: Path) -> None:
    path = tmp_path / "city.xml"
    path.write_text(FCD)
    told = run("--movements", path, "--show").splitlines()
    frame = [line for line in told if line.startswith(("┌", "│", "└"))]
    assert frame[0][0] + frame[-1][0] == "┌└"
    assert sum(line.count("●") for line in frame) == 1  # of two vehicles, one has set off
    lowest = frame[-2].strip("│")
    assert lowest.startswith("●")
    assert all("\u2800" < mark <= "\u28ff" for mark in lowest[1:])  # the way of the other, along the south
    found = answer("--movements", path)
    assert (found["nodes"], found["duration_s"], found["contacts"]) == (2, 20.0, 0)


def test_an_imported_trace_is_drawn_on_the_map(tmp_path: Path) -> None:
    (tmp_path / "city.xml").write_text(FCD)
    run("--movements", tmp_path / "city.xml", "--map", tmp_path / "map.svg", "--at", 15)
    root = ElementTree.parse(tmp_path / "map.svg").getroot()
    assert [title.text for title in root.findall(f"{SVG}circle/{SVG}title")] == ["node 1 (b) at 0.0, 50.0"]
    assert len(root.findall(f"{SVG}polyline")) == 1  # the other vehicle stands still


def test_geojson_has_a_line_per_node_with_its_times(tmp_path: Path) -> None:
    out = tmp_path / "paths.geojson"
    rows = "id,timestamp,lat,lon\nx,0,48,11\nx,10,48.001,11.002\ny,0,48.001,11\ny,10,48.001,11\n"
    (tmp_path / "moves.csv").write_text(rows)
    run("--movements", tmp_path / "moves.csv", "--write", "geojson", "--out", out)
    collection = json.loads(out.read_text())
    assert collection["type"] == "FeatureCollection"
    moving, resting = collection["features"]
    assert moving["geometry"]["type"] == "LineString"
    assert moving["geometry"]["coordinates"] == [[11.0, 48.0], [11.002, 48.001]]  # longitude first, back where it was
    assert moving["properties"] == {"node": 0, "name": "x", "times_s": [0.0, 10.0]}
    assert resting["geometry"] == {"type": "Point", "coordinates": [11.0, 48.001]}


def test_geojson_of_a_drawn_scenario_lies_at_the_equator(tmp_path: Path) -> None:
    run("--nodes", 3, "--mobility", "grid", "--write", "geojson", "--out", tmp_path / "paths.geojson")
    features = json.loads((tmp_path / "paths.geojson").read_text())["features"]
    places = [feature["geometry"]["coordinates"] for feature in features]
    assert all(0 <= degrees <= 0.0091 for place in places for degrees in place)  # 1000 m


def test_a_bad_movement_file_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "moves.csv").write_text("node,t,x,y\n0,1,2,3\n0,2,east,3\n")
    assert refusal("--movements", tmp_path / "moves.csv").startswith(f"{tmp_path}/moves.csv:3: '0,2,east,3': expected ")
    told = refusal("--movements", tmp_path / "moves.csv", "--movements-format", "gpx")
    assert told.startswith(f"{tmp_path}/moves.csv:1: is not XML")
    assert "movements_format = 'gpx': must be one of ns2, " in refusal("--movements-format", "gpx")
    assert "must not be given together" in refusal("--show", "--json")


def test_the_map_shows_every_node_and_link(tmp_path: Path) -> None:
    path = tmp_path / "map.svg"
    arguments = ("--mobility", "beehive", "--nodes", 20, "--range", 290, "--map", path)
    found = answer(*arguments)
    root = ElementTree.fromstring(path.read_text())
    assert len(root.findall(f"{SVG}circle/{SVG}title")) == 20
    strokes = max((element.get("d", "") for element in root.iter(f"{SVG}path")), key=len)
    assert strokes.count("M") == found["links"]
    told = {element.text for element in root.iter(f"{SVG}text")}
    assert {"20 nodes (beehive) at 0 s", "largest component", "in range", "range", "200 m"} <= told
    first = path.read_bytes()
    answer(*arguments)
    assert path.read_bytes() == first


def test_partitions_of_a_scenario_file_cut_and_are_drawn_while_they_stand(tmp_path: Path) -> None:
    scenario, path = tmp_path / "wall.toml", tmp_path / "map.svg"
    scenario.write_text(
        """
        [scenario]
        nodes = 9
        area_m = 200
        mobility.model = "grid"
        radio.range_m = 100
        [[scenario.faults.partitions]]
        from_s = 10
        until_s = 30
        west_m = -1
        south_m = -1
        east_m = 50
        north_m = 300
        """
    )
    links = [answer("--scenario", scenario, "--at", at_s)["links"] for at_s in (9, 10, 29, 30)]
    assert links == [12, 9, 9, 12]
    for at_s, is_shown in ((9, False), (10, True)):
        run("--scenario", scenario, "--map", path, "--at", at_s)
        assert ("partition" in {element.text for element in ElementTree.parse(path).iter(f"{SVG}text")}) is is_shown


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--area", "-5"), "area_m = (-5.0, -5.0): must be above 0"),
        (("--area", "wide"), "--area: 'wide' is not a size"),
        (("--area", "inf"), "area_m = (inf, inf): must be above 0 and finite"),
        (("--duration", "inf"), "duration_s = inf: must be"),
        (("--nodes", "0"), "nodes = 0: must be between 1"),
        (("--pause-min", "9", "--pause-max", "3"), "pause_max_s = 3.0: must be at least pause_min_s"),
        (("--speed-min", "0"), "speed_min_mps = 0.0: must be above 0"),
        (("--speed-max", "1e300"), "speed_max_mps = 1e+300: must be above 0 and at most 10000"),
        (("--at", "100"), "at = 100.0: must be at least 0 and below the duration (100)"),
        (("--write", "contacts"), "--write and --out: must be given together"),
        (("--mobility", "grid", "--spacing", "900"), "mobility.spacing_m = 900.0: must be at most"),
    ],
)
def test_bad_settings_are_refused_in_one_line(arguments: tuple[str, ...], complaint: str) -> None:
    assert complaint in refusal(*arguments)


def test_files_are_refused_with_their_names_and_nothing_is_left_behind(tmp_path: Path) -> None:
    places, contacts = tmp_path / "places.txt", tmp_path / "contacts.txt"
    places.write_text("1 2\n3 4 5\n")
    contacts.write_text("0 1 0 5\n")
    assert refusal("--positions", places).startswith(f"{places}:2: ")
    assert "are given; allowed: one of them" in refusal("--positions", places, "--contacts", contacts)
    assert "no places" in refusal("--contacts", contacts, "--map", tmp_path / "map.svg")
    assert "cannot be written" in refusal("--map", tmp_path / "absent" / "map.svg")
    places.write_text("1 2\n")
    assert "nodes = 2: must be 1" in refusal("--positions", places, "--nodes", 2)
    assert sorted(tmp_path.iterdir()) == [contacts, places]


def test_contacts_are_those_of_the_radio(tmp_path: Path) -> None:
    """With shadowing: the contacts that a run with the same seed has in its trace."""
    options = ["--nodes", 12, "--area", 400, "--duration", 5, "--signal", "log-distance"]
    options += ["--set-signal", "shadowing_db=8", "--range", 120]
    found = answer(*options)
    tables = {
        "scenario": {
            "nodes": 12,
            "area_m": 400,
            "duration_s": 5,
            "radio": {"range_m": 120, "signal": {"model": "log-distance", "shadowing_db": 8}},
        }
    }
    rows = simulate(run_from_tables(tables)).recorder.table().filter(pc.field("kind") == "contact").to_pylist()
    begun = [row for row in rows if row["value"] == 1]
    assert found["contacts"] == len(begun) > 20
    assert found["links"] == sum(row["t"] == 0 for row in begun)
    assert found["links"] != answer("--nodes", 12, "--area", 400, "--duration", 5, "--range", 120)["links"]
