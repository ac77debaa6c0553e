"""Live publish/subscribe between two processes over loopback: Roamcast beside what others use.

Two figures each, of events with 64 bytes of payload: the latency at a low rate, and the highest rate of those tried at
which nothing is lost. All contenders are measured in one run, in turn, because machines differ.
"""

import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

import msgspec

from roamcast.live.authority import new_authority
from roamcast.live.endpoints import open_socket
from roamcast.live.identity import Certificate, new_identity
from roamcast.live.keys import new_ring, write_ring
from roamcast.live.secret_files import write_secret
from roamcast.live.settings import LISTEN

CONTENDERS = (
    "roamcast-plain",
    "roamcast",
    "roamcast-signed",
    "roamcast-repair",
    "roamcast-overlays",
    "udp",
    "zenoh",
    "mosquitto",
)
RATES = (1_000, 2_000, 5_000, 10_000, 20_000, 30_000, 40_000, 50_000)
LATENCY_RATE = 200
LATENCY_S = 3.0
PATIENCE_S = 60.0


class Figures(msgspec.Struct, frozen=True):
    contender: str
    p50_us: float
    p99_us: float
    rate_per_s: int  # the highest without loss; 0: the lowest rate already lost some
    reached_per_s: float  # events per second that arrived at that rate: less, if the publisher could not keep up
    sending_us: float  # CPU time of the publisher per event at that rate, of all its threads
    receiving_us: float  # the same of the subscriber


def available(contender: str) -> bool:
    if contender == "zenoh":
        return find_spec("zenoh") is not None
    if contender == "mosquitto":
        return _mosquitto() is not None and find_spec("paho") is not None
    return True


def measure(
    contenders: Sequence[str], seconds: float, rounds: int, tell: Callable[[str], None] = lambda text: None
) -> list[Figures]:
    """Latencies are the medians of several rounds, in each of which all contenders are measured in turn: whatever else
    the machine does then concerns all of them."""
    with tempfile.TemporaryDirectory() as name:
        folders = {contender: Path(name, contender) for contender in contenders}
        for contender, folder in folders.items():
            folder.mkdir()
            if contender == "roamcast-signed":
                _certify(folder)
            elif contender.startswith("roamcast"):
                write_ring(folder / "bench.key", new_ring("bench", 0.0))
        calm: dict[str, list[dict[str, Any]]] = {contender: [] for contender in contenders}
        for number in range(rounds):
            for contender, folder in folders.items():
                tell(f"measures the latency of {contender}, round {number + 1} of {rounds}")
                calm[contender].append(_once(contender, folder, LATENCY_RATE, int(LATENCY_RATE * LATENCY_S)))
        found = []
        for contender, folder in folders.items():
            tell(f"measures the rate of {contender}")
            found.append(_figures(contender, folder, seconds, calm[contender]))
        return found


def _figures(contender: str, folder: Path, seconds: float, calm: list[dict[str, Any]]) -> Figures:
    best, reached = 0, 0.0
    cpu_us = (0.0, 0.0)
    for rate in RATES:
        count = int(rate * seconds)
        found = _once(contender, folder, rate, count)
        if found["received"] < count:
            break
        arrived = count / max(found["seconds"], 1e-9)
        cpu_us = (1e6 * found["sending_s"] / count, 1e6 * found["receiving_s"] / count)
        if arrived < 0.9 * rate:  # the publisher or the subscriber cannot keep up, and nothing is lost
            best, reached = max(best, int(arrived)), max(reached, arrived)
            break
        best, reached = rate, arrived
    return Figures(
        contender=contender,
        p50_us=median(each["p50_us"] for each in calm),
        p99_us=median(each["p99_us"] for each in calm),
        rate_per_s=best,
        reached_per_s=reached,
        sending_us=cpu_us[0],
        receiving_us=cpu_us[1],
    )


def _once(contender: str, folder: Path, rate: float, count: int) -> dict[str, Any]:
    """One publisher and one subscriber, each a process of its own."""
    socket = open_socket(LISTEN, None)
    port: int = socket.getsockname()[1]
    socket.close()
    worker = [sys.executable, "-m", "roamcast.bench.live_worker"]
    place = [contender, str(port), str(folder)]
    with _broker(contender, port, folder):
        subscriber = subprocess.Popen([*worker, "subscribe", *place], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        try:
            assert subscriber.stdout is not None
            subscriber.stdout.readline()
            command = [*worker, "publish", *place, str(rate), str(count)]
            publisher = subprocess.run(command, check=True, timeout=PATIENCE_S + count / rate, stdout=subprocess.PIPE)
            time.sleep(0.3)
            answer, _ = subscriber.communicate(b"end\n", PATIENCE_S)
            found: dict[str, Any] = json.loads(answer) | json.loads(publisher.stdout)
            return found
        finally:
            subscriber.kill()


def _certify(folder: Path) -> None:
    authority = new_authority("bench")
    for name in ("1", "2"):
        identity = new_identity()
        now_s = int(time.time())
        authority, statement = authority.certified(Certificate("bench", identity.public, name, now_s, now_s + 3600))
        write_secret(folder / f"{name}.node", msgspec.structs.replace(identity, certificate=statement), "identity")
    write_ring(folder / "bench.key", new_ring("bench", 0.0, authority.public))


@contextmanager
def _broker(contender: str, port: int, folder: Path) -> Iterator[None]:
    program = _mosquitto()
    if contender != "mosquitto" or program is None:
        yield
        return
    settings = folder / "mosquitto.conf"
    settings.write_text(f"listener {port} 127.0.0.1\nallow_anonymous true\nmax_queued_messages 0\n", encoding="utf-8")
    broker = subprocess.Popen([program, "-c", str(settings)], stderr=subprocess.DEVNULL)
    time.sleep(0.5)
    try:
        yield
    finally:
        broker.kill()
        broker.wait()


def _mosquitto() -> str | None:
    return shutil.which("mosquitto", path="/usr/local/sbin:/usr/sbin:/usr/local/bin:/usr/bin")
