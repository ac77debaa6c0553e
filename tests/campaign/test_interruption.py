"""A campaign that is interrupted, gently or not, goes on where it was: by running the command line and stopping it."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.dataset as ds
import pytest
from pyspark.sql import SparkSession

from roamcast.analysis.analyse import Precision
from roamcast.campaign.conduct import Conductor
from roamcast.campaign.store import Store

SOURCE = Path(__file__).parents[2] / "src"
PATIENCE_S = 180
CAMPAIGN = """
protocols = ["flooding"]
seeds = 400
[scenario]
nodes = 30
area_m = 600
duration_s = 20
"""


def started(file: Path, out: Path) -> subprocess.Popen[str]:
    command = [
        sys.executable,
        "-m",
        "roamcast",
        "campaign",
        "run",
        str(file),
        "--out",
        str(out),
        "--master",
        "local[1]",
    ]
    environment = os.environ | {"PYTHONPATH": str(SOURCE)}
    return subprocess.Popen(
        [*command, "--no-report"],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def wait_for_first_batches(process: subprocess.Popen[str], store: Store) -> None:
    give_up = time.monotonic() + PATIENCE_S
    while time.monotonic() < give_up and process.poll() is None:
        if len(store.directory.files("commits")) >= 2:
            return
        time.sleep(0.05)
    process.kill()
    pytest.fail(f"nothing was committed: {process.communicate()[1]}")


@pytest.mark.slow("kills campaigns at several moments and resumes them")
@pytest.mark.parametrize(
    ("signal_number", "to_all"),
    [(signal.SIGKILL, False), (signal.SIGTERM, False), (signal.SIGTERM, True)],  # SIGINT ends in the same lines
)
def test_nothing_is_lost_and_nothing_done_twice(
    spark: SparkSession, tmp_path: Path, signal_number: signal.Signals, to_all: bool
) -> None:
    file, store = tmp_path / "campaign.toml", Store(tmp_path / "out")
    file.write_text(CAMPAIGN, encoding="utf-8")
    process = started(file, store.directory.path)
    wait_for_first_batches(process, store)
    if to_all:
        os.killpg(process.pid, signal_number)  # as timeout and batch systems do
    else:
        process.send_signal(signal_number)
    said = process.communicate(timeout=PATIENCE_S)[1]
    if signal_number != signal.SIGKILL:
        assert process.returncode == 128 + signal_number, said
        assert f"roamcast campaign run {file} --out {store.directory}" in said  # how to resume
        assert "Traceback" not in said
        shown = [int(line.split(": ")[2].split()[0]) for line in said.splitlines() if " done, " in line]
        assert shown[-1] <= len(store.outcomes())  # what was shown as done is kept
    before = store.outcomes()
    committed = {
        file: file.stat().st_mtime_ns
        for commit in store.commits()
        for file in (store.trace.path / each.path for each in commit.files)
    }
    assert 0 < len(before) < 400

    # The rest is cut short, so that the test is: the same campaign with fewer seeds has the same runs.
    fewer = len(before) + 10
    file.write_text(CAMPAIGN.replace("400", str(fewer)), encoding="utf-8")
    conductor = Conductor(file, store.directory, master="local[2]")
    ending = conductor.conduct(spark, precise=Precision(spark, store))
    planned = set(store.plan()["run_id"].to_pylist())
    assert (ending.planned, ending.failed) == (fewer, [])
    assert ending.skipped == len(before.keys() & planned) > 0
    assert {path: path.stat().st_mtime_ns for path in committed} == committed
    for kind in ("run", "end"):
        files = [str(path) for path in store.trace.path.glob(f"batch=*/kind={kind}/*.parquet")]
        names = ds.dataset(files, format="parquet").to_table(columns=["run_id"])["run_id"].to_pylist()
        assert len(names) == len(set(names))
        assert set(names) == before.keys() | planned
