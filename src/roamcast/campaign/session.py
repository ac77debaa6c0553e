"""The Spark session: embedded unless another master is named, quiet, and sized by the machine and the data.

`start_session` is the only place that knows Spark's settings. Yours win over them: `--conf key=value` on the command
line, what `spark-submit` was given, and `PYSPARK_PYTHON`. For example:

    --conf spark.ui.enabled=true                                     Spark's web pages while it runs
    --conf spark.eventLog.enabled=true --conf spark.eventLog.dir=D   the same afterwards, with Spark's history server
    --conf spark.archives=env.tar.gz#env --conf spark.pyspark.python=env/bin/python    an environment for executors

The executors of a cluster run the driver's Python unless told otherwise, and `preflight` sees to it that they have
Roamcast. The workers of an embedded session inherit the driver's import path.
"""

import logging
import os
import re
import signal
import socket
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from math import ceil
from pathlib import Path

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

import roamcast
from roamcast.campaign.interruption import deferred_signals
from roamcast.campaign.java import java_home
from roamcast.campaign.reasons import reason
from roamcast.errors import ConfigurationError

LOCAL = "local[*]"
TASK_ATTEMPTS = 4  # embedded sessions do not repeat a failed task unless told
CONNECT_S = 10.0  # for a master to answer
SLEEP_MAX = "36000s"  # an embedded session survives that its machine sleeps as long
GIB = 2**30
MEMORY_LEAST = 2 * GIB
MEMORY_SHARE = 0.5  # of the machine, at most: the workers that simulate are processes of their own

# Queries over tiny traces run once: with the fast compiler alone they take less time. Its code cache is small by
# default, and Spark generates a lot of code.
_BRISK = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m"
_THOROUGH = "-XX:+UseParallelGC"
TINY_TRACE_BYTES = 16 * 2**20
PARTITION_BYTES = 64 * 2**20  # of a shuffle, in memory
INFLATION = 8  # bytes in memory per byte of Parquet
PARTITIONS_LEAST = 16
_LOG_SETTINGS = Path(__file__).with_name("log4j2.properties")


def start_session(
    master: str = LOCAL,
    *,
    trace_bytes: int = 0,
    settings: dict[str, str] | None = None,
) -> SparkSession:
    """The running session if there is one, else a new one, made for traces of about `trace_bytes`.

    `settings` are Spark's own and win over ours, and so do those of `spark-submit`.
    """
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    master, wanted = _wanted(master, trace_bytes, _submitted(), settings or {})
    _require_master(master)
    os.environ["JAVA_HOME"] = str(java_home())
    os.environ["PYSPARK_PYTHON"] = executors_python(wanted)
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    if is_local(master):
        _share_import_path()
    builder = SparkSession.builder.master(_with_attempts(master)).appName("roamcast")
    for name, value in wanted.items():
        builder = builder.config(name, value)
    logging.getLogger("py4j").setLevel(logging.ERROR)
    logging.getLogger().addFilter(_is_not_of_py4j)
    on_interrupt = signal.getsignal(signal.SIGINT)
    launch = SparkConf().setMaster(_with_attempts(master)).setAppName("roamcast").setAll(list(wanted.items()))
    try:
        with deferred_signals():  # a Java whose driver goes before it is connected never ends
            SparkContext._ensure_initialized(conf=launch)
        session = builder.getOrCreate()
    except Exception as error:
        raise ConfigurationError(f"master: {master!r} gave no Spark session: {reason(error)}") from error
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, on_interrupt)  # Spark's handler talks to the JVM while somebody else does
    return session


def _is_not_of_py4j(record: logging.LogRecord) -> bool:
    """What Py4J logs without a logger of its own, it raises, too: at a Ctrl-C it was three tracebacks."""
    return "py4j" not in record.pathname


@contextmanager
def spark_session(
    master: str = LOCAL, *, trace_bytes: int = 0, settings: dict[str, str] | None = None
) -> Iterator[SparkSession]:
    """A session while it lasts; one that ran before stays."""
    began = SparkSession.getActiveSession() is None
    session = start_session(master, trace_bytes=trace_bytes, settings=settings)
    try:
        yield session
    finally:
        if began:
            with suppress(Py4JError, ConnectionError):  # its Java process has ended already
                session.stop()


def is_local(master: str) -> bool:
    """Whether the executors are threads of the driver's own JVM."""
    return master == "local" or master.startswith("local[")


def parsed_settings(words: Iterable[str]) -> dict[str, str]:
    """Spark's settings from `key=value` words."""
    settings = {}
    for word in words:
        name, separator, value = word.partition("=")
        if not separator or not name.startswith("spark."):
            raise ConfigurationError(f"conf: {word!r} must be spark.NAME=VALUE")
        settings[name] = value
    return settings


def executors_python(settings: dict[str, str]) -> str:
    """The user's choice, else the driver's. Spark itself reads the setting only in spark-submit."""
    return settings.get("spark.pyspark.python") or os.environ.get("PYSPARK_PYTHON") or sys.executable


def _wanted(
    master: str, trace_bytes: int, submitted: dict[str, str], settings: dict[str, str]
) -> tuple[str, dict[str, str]]:
    """The master and the settings. A driver of `spark-submit --master` must not listen on loopback only."""
    master = submitted.get("spark.master", master)
    return master, _settings(master, trace_bytes) | submitted | settings


def _require_master(master: str) -> None:
    """Refuses what Spark would refuse after a page of Java, or after a minute."""
    if not re.fullmatch(r"local|local(-cluster)?\[.+\]|yarn|(spark|k8s)://.+", master):
        raise ConfigurationError(f"master: {master!r}; allowed: local[N], spark://HOST:PORT, yarn, k8s://URL")
    heads = [head.rpartition(":") for head in master.removeprefix("spark://").split(",")]
    if not master.startswith("spark://") or not all(port.isdigit() for _, _, port in heads):
        return
    for host, _, port in heads:
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT_S).close()
        except OSError as error:
            refusal = error
        else:
            return
    raise ConfigurationError(f"master: nothing answers at {master}: {refusal}")


def _submitted() -> dict[str, str]:
    """What `spark-submit` was told. Without it there is no Java process yet, and nothing to ask."""
    if "PYSPARK_GATEWAY_PORT" not in os.environ:
        return {}
    return {name: value for name, value in SparkConf().getAll() if name != "spark.app.name"}


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


def driver_memory(trace_bytes: int, machine_bytes: int) -> int:
    """Bytes for the driver's Java: enough for the data, and at most a share of the machine."""
    return max(GIB, min(MEMORY_LEAST + INFLATION * trace_bytes, int(MEMORY_SHARE * machine_bytes)))


def shuffle_partitions(trace_bytes: int, cores: int) -> int:
    return max(PARTITIONS_LEAST, 2 * cores, ceil(INFLATION * trace_bytes / PARTITION_BYTES))


def machine_bytes() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _settings(master: str, trace_bytes: int) -> dict[str, str]:
    compiler = _BRISK if trace_bytes < TINY_TRACE_BYTES else _THOROUGH
    settings = {
        "spark.driver.memory": f"{driver_memory(trace_bytes, machine_bytes()) // 2**20}m",
        "spark.driver.defaultJavaOptions": compiler,
        "spark.executor.defaultJavaOptions": compiler,
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile=file:{_LOG_SETTINGS}",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.structuredLogging.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.adaptive.enabled": "true",
        "spark.sql.adaptive.coalescePartitions.parallelismFirst": "false",
        "spark.sql.shuffle.partitions": str(shuffle_partitions(trace_bytes, os.cpu_count() or 1)),
        "spark.sql.files.openCostInBytes": str(256 * 1024),  # traces of small runs are small files: read many at a time
        "spark.sql.maxConcurrentOutputFileWriters": "32",  # more than there are kinds: rows need no sorting by kind
        "spark.sql.parquet.compression.codec": "zstd",
        "spark.sql.objectHashAggregate.sortBased.fallbackThreshold": "4096",  # runs, whose percentiles need no sorting
        "spark.sql.parquet.filterPushdown": "true",
        "spark.python.worker.reuse": "true",
        "spark.sql.sources.parallelPartitionDiscovery.threshold": "100000",  # a job would find the files no faster
        "spark.hadoop.mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
        "spark.hadoop.parquet.summary.metadata.level": "NONE",
    }
    if is_local(master):
        settings |= {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
        # Driver and executor are one process, and a machine that sleeps stops both: no reason to give the executor up.
        settings |= {"spark.network.timeout": SLEEP_MAX, "spark.executor.heartbeatInterval": "600s"}
    return settings
