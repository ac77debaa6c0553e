"""A standalone Spark cluster on loopback, from the installed PySpark, for benchmarks and tests.

A master and its workers are processes of their own. They end with the `with` block, each by its own process id.
"""

import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep

import pyspark

from roamcast.campaign.java import java_home
from roamcast.errors import RoamcastError

HOST = "127.0.0.1"
PATIENCE_S = 120.0
QUICK_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # for processes of Java's that do little
_DAEMONS = {"SPARK_DAEMON_MEMORY": "256m", "SPARK_DAEMON_JAVA_OPTS": QUICK_START}


@contextmanager
def standalone_cluster(
    directory: Path, workers: int, cores: int, *, environment: dict[str, str] | None = None
) -> Iterator[str]:
    """The URL of a master with `workers` workers, each with its files and its working directory below `directory`.

    The workers see no import path of the driver's; `environment` is added to theirs.
    """
    command = [str(Path(pyspark.__file__).parent / "bin" / "spark-class")]
    environment = _environment() | (environment or {})
    started: list[subprocess.Popen[bytes]] = []

    def start(name: str, *options: str) -> None:
        program = [*command, f"org.apache.spark.deploy.{name.lower()}.{name}", "--host", HOST, "--webui-port", "0"]
        with (directory / f"{name}{len(started)}.log").open("wb") as log:
            running = subprocess.Popen([*program, *options], env=environment, stdout=log, stderr=log, cwd=directory)
        started.append(running)

    try:
        start("Master", "--port", "0")
        master = _url_of_master(directory / "Master0.log", started[0])
        for number in range(workers):
            own = directory / f"worker{number}"
            start("Worker", "--cores", str(cores), "--memory", "1g", "--work-dir", str(own), master)
        yield master
    finally:
        for process in reversed(started):
            process.terminate()
        for process in started:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()


def _environment() -> dict[str, str]:
    own = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "SPARK_HOME")}
    return own | {"JAVA_HOME": str(java_home()), "SPARK_LOCAL_IP": HOST} | _DAEMONS


def _url_of_master(log: Path, process: "subprocess.Popen[bytes]") -> str:
    """Its own word: a port that looked free may be another's by the time it starts."""
    give_up = monotonic() + PATIENCE_S
    while process.poll() is None and monotonic() < give_up:
        said = re.search(rf"Starting Spark master at (spark://{HOST}:\d+)\n", log.read_text(encoding="utf-8"))
        if said:
            return said.group(1)
        sleep(0.1)
    raise RoamcastError("the master of the standalone cluster did not start")
