"""Protocols of one's own, named by import path: their sources name runs, and travel to executors."""

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from roamcast.analysis.analyse import Precision
from roamcast.campaign.conduct import Conductor, Ending
from roamcast.campaign.store import Store
from roamcast.campaign.worker import FAILED, Worker, outcome_row, simulate_runs
from roamcast.form import protocol_digest, protocol_package
from roamcast.world.scenario import Run, run_id

PROTOCOL = "ownpackage.loud:Loud"
LOUD = """
from roamcast.protocols.flooding import Flooding
from ownpackage.settings import QUIET


class Loud(Flooding):
    name = "loud"

    def start(self) -> None:
        if QUIET:
            raise ValueError("too quiet")
        super().start()
"""
CAMPAIGN = f"""
protocols = ["flooding", "{PROTOCOL}"]
seeds = 2
[scenario]
nodes = 8
area_m = 300
duration_s = 12
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package that only the driver can import."""
    place = tmp_path / "own" / "ownpackage"
    place.mkdir(parents=True)
    (place / "__init__.py").touch()
    (place / "loud.py").write_text(LOUD, encoding="utf-8")
    (place / "settings.py").write_text("QUIET = False\n", encoding="utf-8")
    monkeypatch.syspath_prepend(str(place.parent))
    forget()
    yield place
    forget()


def forget() -> None:
    """As a new process would start."""
    protocol_digest.cache_clear()
    for name in [name for name in sys.modules if name.partition(".")[0] == "ownpackage"]:
        del sys.modules[name]
    importlib.invalidate_caches()


def conducted(
    spark: SparkSession, directory: Path, worker: Worker = simulate_runs, **options: Any
) -> tuple[Store, Ending]:
    file = directory / "campaign.toml"
    file.write_text(CAMPAIGN, encoding="utf-8")
    conductor = Conductor(file, directory / "out", master="local[2]")
    return conductor.store, conductor.conduct(
        spark, precise=Precision(spark, conductor.store), worker=worker, **options
    )


def test_a_runs_name_covers_the_package_of_its_protocol(package: Path) -> None:
    mine, ours = Run(protocol=PROTOCOL), Run(protocol="flooding")
    before = run_id(mine), run_id(ours)
    forget()
    assert (run_id(mine), run_id(ours)) == before
    (package / "settings.py").write_text("QUIET = 0\n", encoding="utf-8")
    forget()
    assert run_id(mine) != before[0]
    assert run_id(ours) == before[1]


def test_a_module_alone_is_a_package_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "ownmodule.py").write_text("first = 1\n", encoding="utf-8")
    protocol_digest.cache_clear()
    before = protocol_digest("ownmodule:Mine")
    (tmp_path / "ownmodule.py").write_text("first = 2\n", encoding="utf-8")
    protocol_digest.cache_clear()
    assert before != protocol_digest("ownmodule:Mine") != ""
    assert protocol_package("roamcast.protocols.flooding:Flooding") == protocol_digest("flooding") == ""
    protocol_digest.cache_clear()


def test_it_travels_to_executors_and_is_simulated_again_after_an_edit(
    spark: SparkSession, tmp_path: Path, package: Path
) -> None:
    store, ending = conducted(spark, tmp_path)
    assert (ending.planned, ending.failed) == (4, [])
    first = store.outcomes()
    (package / "settings.py").write_text("QUIET = True\n", encoding="utf-8")
    forget()
    store, ending = conducted(spark, tmp_path)
    assert (ending.planned, ending.skipped) == (4, 2)  # flooding's runs are those of before
    assert [outcome.detail.partition(" (")[0] for outcome in ending.failed] == ["ValueError: too quiet"] * 2
    assert len(store.outcomes()) == len(first) + 2


def test_failed_runs_are_repeated_when_asked(spark: SparkSession, tmp_path: Path, package: Path) -> None:
    def half_fail(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for name, text in zip(batch["run_id"].to_pylist(), batch["run"].to_pylist(), strict=True):
                if "ownpackage" in str(text):
                    yield outcome_row(str(name), FAILED, "ValueError: on purpose", 0.1, 0)
                else:
                    alone = pa.RecordBatch.from_pydict({"run_id": [name], "run": [text]})
                    yield from simulate_runs(iter([alone]))

    store, ending = conducted(spark, tmp_path, half_fail)
    assert len(ending.failed) == 2
    assert conducted(spark, tmp_path)[1].skipped == 4  # a failure is an outcome
    store, ending = conducted(spark, tmp_path, retry_failed=True)
    assert (ending.planned, ending.skipped, ending.failed) == (4, 2, [])
    assert not any(outcome.failed for outcome in store.outcomes().values())
    ends = [file for commit in store.commits() for file in commit.files if file.kind == "end"]
    assert sum(file.rows for file in ends) == 4  # each run once
