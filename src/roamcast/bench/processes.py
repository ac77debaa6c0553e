"""Programs that answer with one line of JSON, each in a process of its own, and the machine that ran them."""

import contextlib
import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import Any

import msgspec
import psutil

from roamcast.errors import ConfigurationError
from roamcast.form import COMPILED

WORKER = (sys.executable, "-m", "roamcast.bench.worker")
FORMS = ("compiled", "interpreted")


class Machine(msgspec.Struct, frozen=True):
    processor: str
    cores: int
    memory_gib: float
    system: str
    python: str
    date: str  # UTC, when measuring began
    load_average: float  # of the minute before; above about 0.5 the machine was busy with other work


def this_machine() -> Machine:
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return Machine(
        processor=_processor(),
        cores=os.cpu_count() or 1,
        memory_gib=pages / 2**30,
        system=f"{platform.system()} {platform.machine()}",
        python=f"{platform.python_implementation()} {platform.python_version()}",
        date=datetime.now(UTC).strftime("%Y-%m-%d"),
        load_average=os.getloadavg()[0],
    )


class Stopwatch:
    """Time that has passed, and CPU time of this process and of all that it started, directly or not.

    On a busy machine a comparison of wall-clock times is rough. CPU times of two methods can still be compared.
    """

    def __init__(self) -> None:
        self._wall_s, self._cpu_s = perf_counter(), _family_cpu_s()

    def stop(self) -> tuple[float, float]:
        return perf_counter() - self._wall_s, _family_cpu_s() - self._cpu_s


def _family_cpu_s() -> float:
    me = psutil.Process()
    total_s = 0.0
    for process in (me, *me.children(recursive=True)):
        with contextlib.suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            total_s += times.user + times.system + times.children_user + times.children_system  # children: that ended
    return total_s


def _processor() -> str:
    information = Path("/proc/cpuinfo")
    if information.is_file():
        for line in information.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def ask(name: str, command: Sequence[str], *, form: str = "", given: bytes = b"") -> dict[str, Any]:
    """The answer of a program; `form` chooses that of Roamcast, and it is refused if another one ran."""
    environment = dict(os.environ)
    environment.pop("ROAMCAST_PURE", None)
    if form == "interpreted":
        environment["ROAMCAST_PURE"] = "1"
    try:
        ended = subprocess.run(list(command), input=given, capture_output=True, env=environment, check=False)
    except OSError as error:
        raise ConfigurationError(f"{name}: {command[0]!r} cannot be run: {error.strerror}") from None
    if ended.returncode:
        said = ended.stderr.decode(errors="replace").strip().splitlines() or ["nothing said why"]
        raise ConfigurationError(f"{name}: ended with {ended.returncode}: {said[-1]}")
    try:
        answer = msgspec.json.decode(ended.stdout, type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise ConfigurationError(f"{name}: its answer is no JSON: {error}") from None
    if form and (answer["form"] == COMPILED) != (form == "compiled"):
        raise ConfigurationError(f"{name}: {form} was to be measured, but it ran {answer['form']}; make compiles")
    return answer
