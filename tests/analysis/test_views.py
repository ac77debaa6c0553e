"""The SQL views: documented, complete, and equal to what the analysis says."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from roamcast.analysis.analyse import Precision, analyse
from roamcast.analysis.views import VIEWS, named_views, register_views
from roamcast.campaign.conduct import Conductor
from roamcast.campaign.store import Store
from roamcast.cli.sql import sql
from roamcast.errors import ConfigurationError
from roamcast.trace.files import write_trace
from roamcast.trace.summary import summarise
from roamcast.world.scenario import Run, Scenario
from roamcast.world.simulator import simulate

DOCUMENT = Path(__file__).parents[2] / "docs" / "sql.md"
CAMPAIGN = """
protocols = ["flooding", "gossip"]
seeds = 2
[scenario]
nodes = 10
area_m = 400
duration_s = 12
[grid]
scenario.radio.range_m = [150, 250]
"""


@pytest.fixture(scope="module")
def store(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Store:
    directory = tmp_path_factory.mktemp("views")
    (directory / "campaign.toml").write_text(CAMPAIGN, encoding="utf-8")
    conductor = Conductor(directory / "campaign.toml", directory / "out", master="local[2]")
    conductor.conduct(spark, precise=Precision(spark, conductor.store))
    return conductor.store


def documented() -> dict[str, list[str]]:
    """View -> the columns that docs/sql.md names."""
    found = {}
    for line in DOCUMENT.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if len(cells) == 3 and cells[0].strip("`") in VIEWS:
            found[cells[0].strip("`")] = re.findall(r"`(\w+)`", cells[2].partition("; of a trace")[0])
    return found


def test_every_view_has_the_documented_columns(spark: SparkSession, store: Store) -> None:
    made = register_views(spark, str(store.directory))
    assert made == list(VIEWS) == list(documented())
    for name, columns in documented().items():
        if name != "trace":
            swept = ["range_m"] if name in ("runs", "points") else []
            assert set(spark.table(name).columns) == {*columns, *swept}, name


def test_swept_numbers_compare_as_numbers(spark: SparkSession, store: Store) -> None:
    register_views(spark, str(store.directory))
    far = spark.sql("select distinct range_m from points where range_m > 150.5 and range_m = 250").collect()
    assert [row.range_m for row in far] == [250.0]


def test_views_say_what_the_analysis_says(spark: SparkSession, store: Store) -> None:
    register_views(spark, str(store.directory))
    analysis = analyse(spark, store)
    means = {(row.point, row.measure): row.mean for row in analysis.points.itertuples()}
    assert {(row.point, row.measure): row.mean for row in spark.table("summaries").collect()} == pytest.approx(means)
    rows = spark.sql("""
        select r.run_id, count(d.node) as rows, first(m.value) as frames from runs r
        left join deliveries d on d.run_id = r.run_id
        join measures m on m.run_id = r.run_id and m.measure = 'frames_total' group by 1
    """).collect()
    runs: Any = analysis.runs.set_index("run_id")
    for row in rows:
        mine = runs.loc[row.run_id]
        assert row.rows == mine["delivered"] + mine["duplicates"] + mine["unexpected"]
        assert row.frames == mine["frames_total"]
    (sent,) = spark.sql("select sum(frames) as frames from frames").collect()
    assert sent.frames == runs["frames_total"].sum()


def test_a_single_trace_has_views_too(spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = simulate(Run(scenario=Scenario(nodes=10, area_m=(400, 400), duration_s=12)))
    write_trace(tmp_path / "trace", result.recorder.batches())
    sql(str(tmp_path / "trace"), "select measure, value from measures where measure like 'within%'", as_json=True)
    told = {row["measure"]: row["value"] for row in json.loads(capsys.readouterr().out)}
    summary = summarise(result.recorder.table())
    assert told == pytest.approx({name: summary[name] for name in ("within_100ms", "within_250ms", "within_1s")})
    sql(str(tmp_path / "trace"), "select count(*) as n from events", as_json=True)
    assert json.loads(capsys.readouterr().out) == [{"n": summary["publications"]}]
    with pytest.raises(ConfigurationError, match="'points' is a view of campaigns"):
        sql(str(tmp_path / "trace"), "select * from points")


def test_a_wrong_query_is_one_line(spark: SparkSession, store: Store) -> None:
    with pytest.raises(ConfigurationError) as refusal:
        sql(str(store.directory), "select nonsense from runs")
    assert "nonsense" in str(refusal.value)
    assert "\n" not in str(refusal.value)
    with pytest.raises(ConfigurationError, match=f"`nowhere` cannot be found.* Views: {', '.join(VIEWS)}"):
        sql(str(store.directory), "select * from nowhere")


def test_a_place_that_holds_nothing_is_refused_whatever_the_query(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="holds no trace"):
        sql(str(tmp_path / "nowhere"), "select 1")


def test_only_views_that_a_query_names_are_made() -> None:
    assert named_views("SELECT * FROM Runs JOIN measures USING (run_id)") == ["runs", "measures"]
    assert named_views("select 1") == []
