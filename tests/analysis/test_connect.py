"""Views through Spark Connect, where there is no `sparkContext`. Its server takes some ten seconds to start.

The campaign is simulated here, without Spark.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from roamcast.campaign.file import load_campaign
from roamcast.campaign.java import java_home
from roamcast.campaign.plan import decode_run, plan_table, points, replicates
from roamcast.campaign.store import Manifest, Store, Written
from roamcast.campaign.worker import TaskWriter, simulate_runs
from roamcast.trace.summary import summarise
from roamcast.world.simulator import simulate

pytest.importorskip("grpc", reason="the extra 'connect' is not installed")

CAMPAIGN = """
protocols = ["flooding"]
seeds = 2
[scenario]
nodes = 10
area_m = 400
duration_s = 12
"""
QUERIES = [
    "select mean, n from summaries where measure = 'delivery_ratio'",
    "select count(*) as n from events join deliveries using (run_id, event_id) join runs using (run_id)",
]
CLIENT = """
import json, sys
from pyspark.sql import SparkSession
session = SparkSession.builder.remote("local[1]").getOrCreate()
assert "connect" in type(session).__module__
from roamcast.analysis.views import register_views
register_views(session, sys.argv[1], ["summaries", "events", "deliveries", "runs"])
answer = [session.sql(text).toArrow().to_pylist() for text in sys.argv[2:]]
print("ANSWER " + json.dumps(answer), flush=True)
session.stop()
"""


def simulated(directory: Path) -> Store:
    file = directory / "campaign.toml"
    file.write_text(CAMPAIGN, encoding="utf-8")
    campaign, store = load_campaign(file), Store(directory / "out")
    plan = plan_table(campaign, replicates(points(campaign), campaign.seeds))
    with store.opened(Manifest(campaign, CAMPAIGN, "roamcast campaign run", {})):
        store.write_plan(plan)
        writer = TaskWriter(store.trace, store.next_batch(), "task-0-0")
        for rows in simulate_runs(plan.to_batches()):
            if rows["kind"][0].as_py() != "measure" or rows["run_id"][0].as_py() == plan["run_id"][0].as_py():
                writer.add(rows)  # one run has no stored measures: they are computed from its files
        writer.flush()
        store.commit(0, [Written(writer.files, writer.runs)])
    return store


@pytest.mark.slow("starts a Spark Connect server")
def test_views_work_without_a_spark_context(tmp_path: Path) -> None:
    store = simulated(tmp_path)
    runs = [decode_run(str(text)) for text in store.plan()["run"].to_pylist()]
    summaries = [summarise(simulate(run).recorder.table()) for run in runs]
    settings = {"JAVA_HOME": str(java_home()), "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    done = subprocess.run(
        [sys.executable, "-c", CLIENT, str(store.directory), *QUERIES],
        env=os.environ | settings | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    answers = [line for line in done.stdout.splitlines() if line.startswith("ANSWER ")]
    assert answers, done.stderr[-2000:]
    [mean], [rows] = json.loads(answers[0].removeprefix("ANSWER "))
    assert mean == {"mean": pytest.approx(sum(each["delivery_ratio"] for each in summaries) / 2), "n": 2}
    assert rows == {"n": sum(each["delivered"] + each["duplicates"] + each["unexpected"] for each in summaries)}
