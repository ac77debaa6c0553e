"""How runs are dealt out to tasks, what a task costs beside its runs, and how Spark is set up."""

import gc
import socket
import subprocess
import sys
import zipfile
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from roamcast.bench.spark_cluster import execute
from roamcast.campaign import preflight
from roamcast.campaign.commits import DONE, FAILED, RunOutcome
from roamcast.campaign.conduct import _lengths
from roamcast.campaign.execute import Lengths, PlannedRun, deal
from roamcast.campaign.preflight import ProbeAnswer, _judge
from roamcast.campaign.reasons import reason, worker_died
from roamcast.campaign.session import (
    GIB,
    _require_master,
    _settings,
    _wanted,
    driver_memory,
    executors_python,
    parsed_settings,
    shuffle_partitions,
)
from roamcast.campaign.shipping import _archive
from roamcast.campaign.store import Store
from roamcast.errors import ConfigurationError


@given(st.lists(st.floats(0.0, 100.0), min_size=1, max_size=60), st.integers(1, 20))
def test_every_run_is_dealt_once_and_no_task_is_empty(lengths: list[float], tasks: int) -> None:
    runs = [PlannedRun(f"{number:03}", "", number) for number in range(len(lengths))]
    tasks = min(tasks, len(runs))
    dealt = deal(runs, tasks, lambda run: lengths[run.point])
    assert len(dealt) == tasks
    assert all(dealt)
    assert sorted(run for task in dealt for run in task) == runs
    sums = [sum(lengths[run.point] for run in task) for task in dealt]
    assert sums == sorted(sums, reverse=True) or sums == pytest.approx(sorted(sums, reverse=True))
    # Graham's bound for the longest-first rule
    assert max(sums) <= max(max(lengths), 4 / 3 * sum(lengths) / tasks + max(lengths)) + 1e-6


def test_long_runs_are_alone_and_start_first() -> None:
    runs = [PlannedRun(f"{number:03}", "", number) for number in range(9)]
    dealt = deal(runs, 3, lambda run: 10.0 if run.point == 4 else 1.0)
    assert [[run.point for run in task] for task in dealt] == [[4], [0, 2, 5, 7], [1, 3, 6, 8]]


def test_a_run_is_expected_to_take_what_its_point_took() -> None:
    lengths = Lengths()
    assert not lengths.known
    for point, wall_s in ((0, 1.0), (0, 3.0), (1, 10.0)):
        lengths.add(point, wall_s)
    assert lengths.expected_s(PlannedRun("y", "", 0)) == 2.0
    assert lengths.expected_s(PlannedRun("y", "", 1)) == 10.0
    assert lengths.expected_s(PlannedRun("y", "", 7)) == lengths.mean_s  # nothing is known about it


def test_a_campaign_that_goes_on_knows_how_long_its_runs_took() -> None:
    plan = pa.table({"run_id": ["a", "b", "c", "d"], "point": [0, 0, 1, 2]})
    over = {
        "a": RunOutcome("a", DONE, "", 4.0, 1),
        "c": RunOutcome("c", DONE, "", 1.0, 1),
        "d": RunOutcome("d", FAILED, "", 9.0, 0),
        "other": RunOutcome("other", DONE, "", 50.0, 1),
    }
    lengths = _lengths(plan, over)
    assert [lengths.expected_s(PlannedRun("x", "", point)) for point in (0, 1)] == [4.0, 1.0]
    assert lengths.expected_s(PlannedRun("x", "", 2)) == lengths.mean_s < 5
    assert not _lengths(plan, {}).known


def test_memory_and_partitions_follow_machine_and_data() -> None:
    assert driver_memory(0, 24 * GIB) == 2 * GIB
    assert driver_memory(GIB, 64 * GIB) == 10 * GIB
    assert driver_memory(100 * GIB, 64 * GIB) == 32 * GIB  # half of the machine
    assert driver_memory(0, GIB) == GIB
    assert shuffle_partitions(0, 2) == 16
    assert shuffle_partitions(0, 64) == 128
    assert shuffle_partitions(8 * GIB, 2) == 1024


def test_java_compiles_thoroughly_unless_the_trace_is_tiny() -> None:
    for java in ("spark.driver.defaultJavaOptions", "spark.executor.defaultJavaOptions"):
        assert "TieredStopAtLevel=1" in _settings("local[2]", 0)[java]
        assert "Tiered" not in _settings("local[2]", 16 * 2**20)[java]


class SlowCluster:
    """A context whose executors register one by one, and a clock that each look at them moves on."""

    master = "spark://head:7077"

    def __init__(self, registered_s: list[float], wanted: str = "") -> None:
        self._registered_s, self._wanted, self.now_s = registered_s, wanted, 0.0
        self._jsc = self

    def sc(self) -> "SlowCluster":
        return self

    def getExecutorMemoryStatus(self) -> list[None]:  # noqa: N802 - Spark's name
        return _Sized([None, *(None for at in self._registered_s if at <= self.now_s)])

    def getConf(self) -> dict[str, str]:  # noqa: N802 - Spark's name
        return {"spark.executor.instances": self._wanted}

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds


class _Sized(list[None]):
    def size(self) -> int:
        return len(self)


@pytest.mark.parametrize(
    ("registered_s", "wanted", "begins_s", "warns"),
    [
        ([1.0, 1.5, 3.0], "", 5.0, False),  # two seconds after the last
        ([1.0, 1.5, 1.7], "3", 1.7, False),  # as many as were asked for
        ([25.0], "", 27.0, True),
    ],
)
def test_a_campaign_begins_when_the_executors_are_there(
    registered_s: list[float], wanted: str, begins_s: float, warns: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster, said = SlowCluster(registered_s, wanted), list[str]()
    monkeypatch.setattr(preflight, "sleep", cluster.sleep)
    preflight.wait_for_executors(cluster, said.append, lambda: cluster.now_s)  # type: ignore[arg-type]
    assert cluster.now_s == pytest.approx(begins_s, abs=0.2)
    assert [line for line in said if "no executors from spark://head:7077 after 20 s" in line] == said
    assert bool(said) == warns


def test_binaries_travel_with_their_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So executors of the driver's kind run the compiled form."""
    (tmp_path / "shipped").mkdir()
    for name in ("shipped/__init__.py", "shipped/fast.py", "shipped/fast.so", "shipped__mypyc.so"):
        (tmp_path / name).write_text(name, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    with zipfile.ZipFile(_archive("shipped", "shipped-1")) as archive:
        assert sorted(archive.namelist()) == [
            "shipped/__init__.py",
            "shipped/fast.py",
            "shipped/fast.so",
            "shipped__mypyc.so",
        ]


def test_settings_of_spark_are_read_from_words() -> None:
    assert parsed_settings(["spark.ui.enabled=true", "spark.x=a=b"]) == {"spark.ui.enabled": "true", "spark.x": "a=b"}
    for wrong in ("spark.ui.enabled", "ui=true"):
        with pytest.raises(ConfigurationError, match=r"conf: '.*' must be spark\.NAME=VALUE"):
            parsed_settings([wrong])


def answer(**changes: object) -> ProbeAnswer:
    whole = {"host": "h", "python": "3.11", "missing": [], "sources": "", "form": "", "memory": GIB, "read": "key"}
    return ProbeAnswer(**(whole | {"wrote": "name"} | changes))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "arrived", "said"),
    [
        ({"missing": ["numpy"]}, True, r"executor on h \(Python 3\.11\) lacks numpy"),
        ({"read": "No such file"}, True, r"cannot read it \(No such file\)"),
        ({}, False, "wrote there and the driver does not see it"),
        ({"memory": 2**20}, True, "has only 1 MiB of memory for 1 slots"),
    ],
)
def test_an_executor_that_cannot_do_its_part_is_one_line(changes: dict[str, object], arrived: bool, said: str) -> None:
    store = Store("somewhere")
    _judge(answer(), store, "key", True)
    with pytest.raises(ConfigurationError, match=rf"^[^\n]*{said}[^\n]*$"):
        _judge(answer(**changes), store, "key", arrived)


FROM_PYTHON = """An error occurred while calling o1.collect.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 failed 4 times, most recent failure:
org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "worker.py", line 1, in main
    process()
OSError: [Errno 28] No space left on device

\tat org.apache.spark.api.python.BasePythonRunner(PythonRunner.scala:1)
Caused by: org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "worker.py", line 1, in main
    process()
OSError: [Errno 28] No space left on device
\tat java.base/java.lang.Thread.run(Thread.java:1)
"""
FROM_JAVA = """An error occurred while calling o1.collect.
: org.apache.spark.SparkException: Job aborted.
\tat org.apache.spark(X.scala:1)
Caused by: java.lang.OutOfMemoryError: Java heap space
\tat java.base/java.lang.Thread.run(Thread.java:1)
"""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (FROM_PYTHON, "OSError: [Errno 28] No space left on device"),
        (FROM_JAVA, "java.lang.OutOfMemoryError: Java heap space"),
        (
            "An error occurred while calling None.Context.\n: java.io.FileNotFoundException: /logs\n\tat X(X:1)",
            "java.io.FileNotFoundException: /logs",
        ),
        ("[JAVA_GATEWAY_EXITED] Java gateway process exited", "Java did not start; its own message is above"),
        ("just this\nand that", "just this"),
    ],
)
def test_the_root_cause_is_one_line(text: str, said: str) -> None:
    assert reason(RuntimeError(text)) == said
    assert not worker_died(RuntimeError(text))


def test_the_master_of_spark_submit_decides_where_the_driver_listens() -> None:
    assert _wanted("local[*]", 0, {}, {})[1]["spark.driver.host"] == "127.0.0.1"
    submitted = {"spark.master": "yarn", "spark.driver.memory": "3g", "spark.ui.enabled": "true"}
    master, wanted = _wanted("local[*]", 0, submitted, {"spark.ui.enabled": "false"})
    assert master == wanted["spark.master"] == "yarn"
    assert "spark.driver.host" not in wanted  # executors on other machines could not reach it
    assert (wanted["spark.driver.memory"], wanted["spark.ui.enabled"]) == ("3g", "false")


def test_masters_that_spark_would_refuse_late_are_refused_at_once() -> None:
    for master in ("local", "local[2]", "local[*,4]", "yarn", "k8s://https://api:6443", "spark://a:no-number"):
        _require_master(master)
    for master in ("bogus", "sc://head:15002", "spark://", "localhost"):
        with pytest.raises(ConfigurationError, match="allowed: local"):
            _require_master(master)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        _require_master(f"spark://127.0.0.1:{port}")
        _require_master(f"spark://127.0.0.1:1,127.0.0.1:{port}")
    with pytest.raises(ConfigurationError, match=rf"nothing answers at spark://127\.0\.0\.1:{port}: .*refused"):
        _require_master(f"spark://127.0.0.1:{port}")


def test_a_lost_executor_is_told_from_an_error() -> None:
    assert worker_died(RuntimeError("... Python worker exited unexpectedly (crashed)"))


def test_runs_that_sleep_are_all_committed(spark: SparkSession, tmp_path: Path) -> None:
    """What `roamcast bench spark` measures on a cluster, small."""
    store = Store(tmp_path / "campaign")
    execute(spark, store, [], range(1, 41), 0.001)
    assert len(store.outcomes()) == 40


def test_a_few_runs_that_are_left_make_no_batch_of_their_own(spark: SparkSession, tmp_path: Path) -> None:
    store = Store(tmp_path / "campaign")
    execute(spark, store, [], range(1, 26), 0.001)
    assert sorted(len(commit.runs) for commit in store.commits()) == [4, 4, 17]  # not 16 and 1


def test_a_task_leaves_nothing_for_the_garbage_collection_after_it(spark: SparkSession, tmp_path: Path) -> None:
    """Spark collects garbage after each task, which costs more than all else if it walks all modules."""
    execute(spark, Store(tmp_path / "campaign"), [], range(1, 9), 0.001)
    frozen = spark.sparkContext.parallelize([0], 1).map(lambda _: gc.get_freeze_count()).collect()
    assert frozen[0] > 10_000


def test_a_worker_does_not_load_pandas() -> None:
    """It takes as long to load as everything else together, once per slot."""
    asked = "import sys, roamcast.campaign.worker; print('pandas' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True).stdout == "False\n"


def test_the_users_python_for_executors_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    assert executors_python({}) == sys.executable
    monkeypatch.setenv("PYSPARK_PYTHON", "./environment/bin/python")
    assert executors_python({}) == "./environment/bin/python"
    assert executors_python({"spark.pyspark.python": "env/bin/python"}) == "env/bin/python"
