"""The Spark session: embedded unless another master is named, quiet, and with the driver's Python on every executor.

`start_session` is the only place that knows Spark's settings. They are for many small runs and for traces of up to
some ten million rows on one machine: few shuffle partitions that adaptive execution merges further, Arrow between the
JVM and Python, and no web server.

On a cluster the executors may lack Roamcast: its sources travel as one archive (their Python must bring `lxml`,
`msgspec`, `mypy-extensions`, `numpy` and `pyarrow`) and run interpreted. An embedded session needs no archive, since
its workers inherit the driver's import path.
"""

import logging
import os
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

import roamcast
from roamcast.campaign.java import java_home
from roamcast.errors import ConfigurationError

LOCAL = "local[*]"
TASK_ATTEMPTS = 4  # embedded sessions do not repeat a failed task unless told
DRIVER_MEMORY = "2g"

# Most of a campaign's queries run once, over little data: with the fast compiler alone they take a half to a third of
# the time. Its code cache is small by default, and Spark generates a lot of code. Big traces repay the better compiler.
_BRISK = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m"
_THOROUGH = "-XX:+UseParallelGC"
BIG_TRACE_BYTES = 256 * 2**20
_LOG_SETTINGS = Path(__file__).with_name("log4j2.properties")


def start_session(
    master: str = LOCAL,
    *,
    trace_bytes: int = 0,
    memory: str = DRIVER_MEMORY,
    settings: dict[str, str] | None = None,
) -> SparkSession:
    """The running session if there is one, else a new one, made for traces of about `trace_bytes`.

    `settings` are Spark's own and win over ours.
    """
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    os.environ["JAVA_HOME"] = str(java_home())
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    if is_local(master):
        _share_import_path()
    builder = SparkSession.builder.master(_with_attempts(master)).appName("roamcast")
    for name, value in (_settings(master, memory, trace_bytes) | (settings or {})).items():
        builder = builder.config(name, value)
    logging.getLogger("py4j").setLevel(logging.ERROR)
    try:
        session = builder.getOrCreate()
    except Exception as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise ConfigurationError(f"master: {master!r} gave no Spark session: {lines[0]}") from error
    if not is_local(master):
        ship_package(session)
    return session


@contextmanager
def spark_session(master: str = LOCAL, *, trace_bytes: int = 0) -> Iterator[SparkSession]:
    """A session while it lasts; one that ran before stays."""
    began = SparkSession.getActiveSession() is None
    session = start_session(master, trace_bytes=trace_bytes)
    try:
        yield session
    finally:
        if began:
            session.stop()


def is_local(master: str) -> bool:
    """Whether the executors are threads of the driver's own JVM."""
    return master == "local" or master.startswith("local[")


def ship_package(session: SparkSession) -> None:
    """Puts Roamcast's sources on the import path of every executor."""
    archive = Path(tempfile.mkdtemp(prefix="roamcast-")) / "roamcast.zip"
    package = Path(roamcast.__file__).parent
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        for path in sorted(package.rglob("*")):
            if path.is_file() and path.suffix not in {".pyc", ".so"}:
                file.write(path, path.relative_to(package.parent))
    session.sparkContext.addPyFile(str(archive))


def _share_import_path() -> None:
    """Spark's Python workers import Roamcast from where the driver did, installed or not."""
    source = str(Path(roamcast.__file__).parent.parent)
    known = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if source not in known:
        os.environ["PYTHONPATH"] = os.pathsep.join([source, *filter(None, known)])


def _with_attempts(master: str) -> str:
    if master == "local":
        return f"local[1,{TASK_ATTEMPTS}]"
    if is_local(master) and "," not in master:
        return f"{master[:-1]},{TASK_ATTEMPTS}]"
    return master


def _settings(master: str, memory: str, trace_bytes: int) -> dict[str, str]:
    settings = {
        "spark.driver.memory": memory,
        "spark.driver.defaultJavaOptions": _BRISK if trace_bytes < BIG_TRACE_BYTES else _THOROUGH,
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile=file:{_LOG_SETTINGS}",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.structuredLogging.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.adaptive.enabled": "true",
        "spark.sql.adaptive.coalescePartitions.parallelismFirst": "false",
        "spark.sql.shuffle.partitions": "16",
        "spark.sql.files.openCostInBytes": str(256 * 1024),  # traces of small runs are small files: read many at a time
        "spark.sql.maxConcurrentOutputFileWriters": "32",  # more than there are kinds: rows need no sorting by kind
        "spark.sql.parquet.compression.codec": "zstd",
        "spark.sql.objectHashAggregate.sortBased.fallbackThreshold": "4096",  # runs, whose percentiles need no sorting
        "spark.sql.parquet.filterPushdown": "true",
        "spark.python.worker.reuse": "true",
        "spark.sql.sources.parallelPartitionDiscovery.threshold": "512",
        "spark.hadoop.mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
        "spark.hadoop.parquet.summary.metadata.level": "NONE",
    }
    if is_local(master):
        settings |= {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
    return settings
