"""The same campaign on a real cluster: a standalone master and two workers from the installed PySpark, on loopback.

The executors run the Python of an environment that comes in an archive. They have no Roamcast of their own, nor the
protocol `owncluster:Loud`: both come in archives that the driver ships. They run in directories of their own. One
campaign has tasks that fail on their first attempt; one is on object storage, so that driver and executors share no
disk. The place of the last is another directory for every process, as a disk that is not shared would be.
"""

import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from roamcast.analysis.analyse import Precision
from roamcast.bench.standalone import standalone_cluster
from roamcast.campaign.conduct import Conductor
from roamcast.campaign.store import Store

SOURCE = Path(__file__).parents[2] / "src"
PATIENCE_S = 300
CAMPAIGN = """
protocols = ["flooding", "owncluster:Loud"]
seeds = 2
[scenario]
nodes = 12
area_m = 400
duration_s = 12
"""

OWN = "from roamcast.protocols.flooding import Flooding\n\n\nclass Loud(Flooding):\n    name = 'loud'\n"

DRIVER = """
import json, os, sys
from pathlib import Path
from pyspark import TaskContext
import roamcast
from roamcast.analysis.analyse import Precision
from roamcast.bench.standalone import QUICK_START
from roamcast.campaign.conduct import Conductor
from roamcast.campaign.session import start_session
from roamcast.campaign.worker import simulate_runs
from roamcast.errors import ConfigurationError

master, file, directory, bucket = sys.argv[1:]

def smooth(batches):
    import roamcast
    assert "/app-" in roamcast.__file__, roamcast.__file__  # in the executor's directory, not where the driver has it
    assert os.environ["ENVIRONMENT"] == "packed"
    yield from simulate_runs(batches)

def failing_at_first(batches):
    rows = smooth(batches)
    if TaskContext.get().attemptNumber() == 0:
        yield next(rows)
        raise RuntimeError("first attempt")
    yield from rows

session = start_session(master, settings={"spark.executor.memory": "512m", "spark.cores.max": "2",
                                          "spark.executor.cores": "1", "spark.driver.host": "127.0.0.1",
                                          "spark.driver.bindAddress": "127.0.0.1",
                                          "spark.executor.extraJavaOptions": QUICK_START,
                                          "spark.archives": directory + "/packed.tar.gz#packed",
                                          "spark.pyspark.python": "packed/bin/python"})
session.sparkContext.setLogLevel("OFF")
said = []
for out, worker in ((directory + "/failing", failing_at_first), (bucket, smooth)):
    conductor = Conductor(Path(file), out, master=master)
    ending = conductor.conduct(session, precise=Precision(session, conductor.store), worker=worker, tell=said.append)
    assert ending.failed == [], ending.failed
try:
    conductor = Conductor(Path(file), "/proc/self/cwd/unshared", master=master)
    conductor.conduct(session, precise=Precision(session, conductor.store))
except ConfigurationError as error:
    said.append(str(error))
executors = session.sparkContext._jsc.sc().getExecutorMemoryStatus().size() - 1
print(json.dumps({"said": said, "executors": executors}))
session.stop()
"""


def pack_environment(directory: Path) -> None:
    """An archive as `venv-pack` or `conda pack` make it; its Python is this one, and says where it came from."""
    python = directory / "python"
    python.write_text(f'#!/bin/sh\nENVIRONMENT=packed exec {sys.executable} "$@"\n', encoding="utf-8")
    python.chmod(0o755)
    with tarfile.open(directory / "packed.tar.gz", "w:gz") as archive:
        archive.add(python, "bin/python")


def hashes(store: Store) -> dict[str, tuple[str, str, int]]:
    return {name: (outcome.status, outcome.detail, outcome.rows) for name, outcome in store.outcomes().items()}


def rows(spark: SparkSession, store: Store) -> list[str]:
    """Every trace row of the campaign."""
    from roamcast.analysis.traces import read_traces

    return sorted(map(repr, read_traces(spark, store.trace).where("kind <> 'run'").toArrow().to_pylist()))


@pytest.mark.slow("starts a Spark cluster and runs two campaigns on it")
def test_a_cluster_gives_the_rows_of_the_embedded_session_also_when_tasks_fail(
    spark: SparkSession, bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "campaign.toml"
    file.write_text(CAMPAIGN, encoding="utf-8")
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "owncluster.py").write_text(OWN, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path / "own"))
    pack_environment(tmp_path)
    hidden = tmp_path / "hidden" / "roamcast"
    hidden.mkdir(parents=True)
    (hidden / "__init__.py").write_text("raise ImportError('not installed here')", encoding="utf-8")
    with standalone_cluster(tmp_path, 2, 1, environment={"PYTHONPATH": str(hidden.parent)}) as master:
        environment = os.environ | {"PYTHONPATH": f"{SOURCE}:{tmp_path / 'own'}"}
        driver = subprocess.run(
            [sys.executable, "-c", DRIVER, master, str(file), str(tmp_path), bucket],
            env=environment,
            cwd=tmp_path / "own",
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
    assert driver.returncode == 0, driver.stderr
    said = json.loads(driver.stdout.splitlines()[-1])
    assert said["executors"] == 2
    assert [line for line in said["said"] if "shipped by the driver" in line] == said["said"][:2]
    assert said["said"][2].startswith("out: '/proc/self/cwd/unshared' is not shared: the executor on ")
    assert "a URI such as s3://bucket/path" in said["said"][2]

    here = Conductor(file, tmp_path / "here", master="local[2]")
    here.conduct(spark, precise=Precision(spark, here.store))
    for place in (tmp_path / "failing", bucket):
        assert hashes(Store(place)) == hashes(here.store)
        assert rows(spark, Store(place)) == rows(spark, here.store)
