"""Campaigns on object storage: the S3 server of moto (`conftest.py`).

Spark here has no S3 driver of its own (`hadoop-aws`), so executors read and write through Arrow.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from roamcast import cli
from roamcast.analysis.analyse import Precision, analyse, measured_runs
from roamcast.analysis.source import knows_file_system, read_traces
from roamcast.campaign.compact import compact, vacuum
from roamcast.campaign.conduct import Conductor
from roamcast.campaign.lock import locked
from roamcast.campaign.store import Store
from roamcast.campaign.verify import verify
from roamcast.errors import ConfigurationError

CAMPAIGN = """
protocols = ["flooding", "gossip"]
seeds = 2
[scenario]
nodes = 8
area_m = 300
duration_s = 12
"""


def place_in(bucket: str, name: str) -> str:
    base, _, options = bucket.partition("?")
    return f"{base}/{name}?{options}"


def conducted(spark: SparkSession, directory: Path, out: str | Path) -> tuple[Store, Any]:
    file = directory / "campaign.toml"
    file.write_text(CAMPAIGN, encoding="utf-8")
    conductor = Conductor(file, out, master="local[2]")
    return conductor.store, conductor.conduct(spark, precise=Precision(spark, conductor.store))


def rows(spark: SparkSession, store: Store) -> list[str]:
    frame = read_traces(spark, store.directory).where("kind not in ('run', 'measure')")
    return sorted(map(repr, frame.toArrow().to_pylist()))


@pytest.fixture(scope="module")
def here(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Store:
    directory = tmp_path_factory.mktemp("here")
    return conducted(spark, directory, directory / "out")[0]


@pytest.mark.slow("interrupts and resumes campaigns on an object store")
def test_a_campaign_lives_in_a_bucket(
    spark: SparkSession, bucket: str, here: Store, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    out = place_in(bucket, "whole")
    store, ending = conducted(spark, tmp_path, f"s3a{out.removeprefix('s3')}")  # Hadoop's name of it
    assert (ending.planned, ending.skipped, ending.failed) == (4, 0, [])
    assert Store(out).outcomes() == store.outcomes()
    assert not knows_file_system(spark, store.directory)
    assert rows(spark, store) == rows(spark, here)
    assert measured_runs(spark, store).drop(columns="run_id").equals(measured_runs(spark, here).drop(columns="run_id"))
    assert len(analyse(spark, store).runs) == 4
    with pytest.raises(SystemExit):
        cli.main(["campaign", "status", out, "--json"])
    assert json.loads(capfd.readouterr().out)["done"] == 4
    with pytest.raises(SystemExit) as ended:
        cli.main(["campaign", "report", out, "--json"])
    assert ended.value.code == 0
    assert store.directory.read("report.html").startswith(b"<!doctype html>")
    key = out.partition("@")[0].rpartition(":")[2]
    assert key not in str(store.directory)
    assert f":{key}@" not in store.manifest().command + capfd.readouterr().err
    assert f":{key}@".encode() not in store.directory.read("report.html") + store.directory.read("campaign.json")
    assert sorted(tmp_path.iterdir()) == [tmp_path / "campaign.toml"]  # no local folder `s3:`


def test_a_campaign_lives_at_a_scheme_that_only_fsspec_knows(spark: SparkSession, here: Store, tmp_path: Path) -> None:
    pytest.importorskip("fsspec", reason="left out: pip install fsspec brings further file systems")
    store, ending = conducted(spark, tmp_path, f"local://{tmp_path}/out")
    assert (ending.planned, ending.failed) == (4, [])
    assert not knows_file_system(spark, store.directory)
    assert rows(spark, store) == rows(spark, here)
    assert verify(store.directory) == []
    compact(store)
    vacuum(store)
    assert rows(spark, store) == rows(spark, here)


def test_damage_in_a_bucket_is_found_and_mended(spark: SparkSession, bucket: str, here: Store, tmp_path: Path) -> None:
    store, _ = conducted(spark, tmp_path, place_in(bucket, "damaged"))
    first, second = (
        next(file.path for commit in store.commits() for file in commit.files if file.kind == kind)
        for kind in ("delivered", "end")
    )
    store.trace.remove([first])
    store.trace.write(second, store.trace.read(second)[:-1] + b"!")
    assert {damage.path for damage in verify(store.directory)} == {f"trace/{first}", f"trace/{second}"}
    store, ending = conducted(spark, tmp_path, place_in(bucket, "damaged"))
    assert ending.skipped < 4
    assert rows(spark, store) == rows(spark, here)


def test_compaction_and_vacuum_in_a_bucket(spark: SparkSession, bucket: str, here: Store, tmp_path: Path) -> None:
    store, _ = conducted(spark, tmp_path, place_in(bucket, "compacted"))
    store.commit(store.next_batch(), [])  # a second commit, so that there is something to put together
    compact(store)
    vacuum(store)
    assert len(store.directory.files("commits")) == 1
    assert rows(spark, store) == rows(spark, here)


def test_one_driver_at_a_time_in_a_bucket(bucket: str) -> None:
    first, second = (Store(place_in(bucket, "locked")) for _ in range(2))
    with locked(first.directory, first.owner):
        late = locked(second.directory, second.owner)
        with pytest.raises(ConfigurationError, match="in use by another campaign run"), late:
            pass
    with locked(second.directory, second.owner):
        pass


def test_a_bucket_that_is_not_there_is_one_line(bucket: str) -> None:
    nowhere = bucket.replace("@bucket/", "@nowhere/")
    with pytest.raises(ConfigurationError, match=r"^out: [^\n]+ cannot be written: [^\n]+$"):
        Store(nowhere).require_writable()


def test_a_store_that_does_not_answer_is_one_line(capfd: pytest.CaptureFixture[str]) -> None:
    place = "s3://KEY:SECRET@bucket/x?endpoint_override=127.0.0.1:1&scheme=http&region=us-east-1"
    with pytest.raises(SystemExit) as ended:
        cli.main(["campaign", "status", place])
    said = capfd.readouterr().err
    assert (ended.value.code, said.count("\n")) == (2, 1)
    assert "NETWORK_CONNECTION" in said
    assert "SECRET" not in said
    assert str(Store(place).directory).startswith("s3://KEY:***@bucket/x?")
