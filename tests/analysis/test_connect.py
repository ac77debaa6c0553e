"""Views through Spark Connect, where there is no `sparkContext`. Its server takes some ten seconds to start."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from roamcast.campaign.java import java_home
from roamcast.trace.files import write_trace
from roamcast.trace.summary import summarise
from roamcast.world.scenario import Run, Scenario
from roamcast.world.simulator import simulate

pytest.importorskip("grpc", reason="the extra 'connect' is not installed")

CLIENT = """
import json, os, sys
from pyspark.sql import SparkSession
session = SparkSession.builder.remote("local[1]").getOrCreate()
assert "connect" in type(session).__module__
from roamcast.analysis.views import register_views
register_views(session, sys.argv[1], ["measures", "events", "deliveries"])
query = "select value from measures where measure = 'delivery_ratio'"
events = "select count(*) as n from events join deliveries using (run_id, event_id)"
answer = [session.sql(text).toArrow().to_pylist() for text in (query, events)]
print("ANSWER " + json.dumps(answer), flush=True)
session.stop()
"""


@pytest.mark.slow("starts a Spark Connect server")
def test_views_work_without_a_spark_context(tmp_path: Path) -> None:
    result = simulate(Run(scenario=Scenario(nodes=10, area_m=(400, 400), duration_s=12)))
    write_trace(tmp_path / "trace", result.recorder.batches())
    summary = summarise(result.recorder.table())
    settings = {"JAVA_HOME": str(java_home()), "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    done = subprocess.run(
        [sys.executable, "-c", CLIENT, str(tmp_path / "trace")],
        env=os.environ | settings | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    answers = [line for line in done.stdout.splitlines() if line.startswith("ANSWER ")]
    assert answers, done.stderr[-2000:]
    rows = summary["delivered"] + summary["duplicates"] + summary["unexpected"]
    assert json.loads(answers[0].removeprefix("ANSWER ")) == [[{"value": summary["delivery_ratio"]}], [{"n": rows}]]
