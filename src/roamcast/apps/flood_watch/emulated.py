"""The demonstration in the emulator: every part is the program that runs on separate machines, with keys.

The station, the vehicles and the teams are `roamcast app flood-watch --role …` processes, each in a network namespace
of its own. They find each other by themselves on a network that follows where they are. Datagrams are sealed, events
signed; a node's address follows from its identity. As on a real vehicle, a process reads where it is from its standard
input (`--position -`).

Two processes make the network. The one that a user starts stays where browsers are. It opens the sockets of the pages,
which the teams inherit, and records what the first team's page is told. The other one is this module's `main`: it makes
the machines and moves them, and ends with the first.
"""

import asyncio
import contextlib
import ctypes
import math
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import aiohttp
import msgspec

from roamcast.apps.flood_watch.demo import PLACES, RANGE_M, TEAMS, recorded_page
from roamcast.apps.flood_watch.network import STATION_ADDRESS, TEAM_ADDRESSES, VEHICLE_ADDRESSES
from roamcast.emulator.air import Air
from roamcast.emulator.machines import Machines, enter_own_network
from roamcast.errors import ConfigurationError
from roamcast.live.authority import new_authority
from roamcast.live.identity import Certificate, new_identity
from roamcast.live.keys import new_ring, write_ring
from roamcast.live.secret_files import write_secret

DELAY_S = 0.002  # of a hop
PATIENCE_S = 180.0  # until the first page answers
MOVE_PERIOD_S = 0.5
NETWORK = "flood-watch"
PR_SET_PDEATHSIG = 1


async def demonstrate(seed: int, pages: list[str], seconds: float, out: Path, tell: Callable[[str], None]) -> None:
    """The whole demonstration; its recording goes to `out`."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(_listening(page)) for page in pages]
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        urls = ["http://{}:{}/".format(*each.getsockname()[:2]) for each in sockets]
        fds = [each.fileno() for each in sockets]
        command = [sys.executable, "-m", __name__, folder, str(seed), *map(str, fds)]
        network = subprocess.Popen(
            command, pass_fds=fds, preexec_fn=_die_with_parent, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL
        )
        try:
            for (name, _), url in zip(TEAMS, urls, strict=True):
                tell(f"{name}: {url}")
            recording = await _recorded(f"{urls[0]}news", network, seconds)
        finally:
            network.terminate()
            network.wait()
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(recorded_page(recording), encoding="utf-8")


async def _recorded(url: str, network: "subprocess.Popen[bytes]", seconds: float) -> list[tuple[float, dict[str, Any]]]:
    """What a page is told, for so long, by reading its feed as a browser does."""
    recording: list[tuple[float, dict[str, Any]]] = []
    give_up_s = time.monotonic() + PATIENCE_S
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None)) as session:
        while network.poll() is None:
            with contextlib.suppress(aiohttp.ClientError, TimeoutError):
                async with asyncio.timeout(None if recording else 5.0) as patience, session.get(url) as answer:
                    began_s = time.monotonic()
                    patience.reschedule(asyncio.get_running_loop().time() + min(seconds, 1e9))
                    async for line in _lines(answer.content):
                        if line.startswith(b"data: "):
                            recording.append((round(time.monotonic() - began_s, 2), msgspec.json.decode(line[6:])))
            if recording:
                return recording
            if time.monotonic() > give_up_s:
                raise ConfigurationError(f"demo: the first page did not answer within {PATIENCE_S:g} s")
            await asyncio.sleep(0.2)
    assert network.stderr is not None
    last = network.stderr.read().decode(errors="replace").strip().splitlines()[-1:] or ["it ended by itself"]
    raise ConfigurationError(f"demo: {last[0].removeprefix('roamcast: ')}")


async def _lines(content: aiohttp.StreamReader) -> Any:
    """Lines of any length."""
    pending = b""
    async for chunk in content.iter_any():
        *lines, pending = (pending + chunk).split(b"\n")
        for line in lines:
            yield line


def _listening(page: str) -> socket.socket:
    host, _, port = page.rpartition(":")
    try:
        return socket.create_server((host, int(port)))
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"page: cannot listen on {page}: {error}") from None


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


# -- The network ---------------------------------------------------------------------------------------------------


async def _network(folder: Path, seed: int, pages: list[int]) -> None:
    identify(folder)
    machines = Machines(len(PLACES))
    try:
        processes = [
            machines.start(number, _words(folder, address, seed, pages), pass_fds=pages)
            for number, address in enumerate(PLACES)
        ]
        air = Air(machines.ports, delay_s=DELAY_S, loss=0.0, random=Random(seed))
        for number in range(len(PLACES)):
            air.switch(number, on=True)
        began_s = time.monotonic()
        while True:
            places = [place(time.monotonic() - began_s) for place in PLACES.values()]
            for a, here in enumerate(places):
                for b in range(a):
                    air.connect(a, b, in_range=math.dist(here, places[b]) <= RANGE_M)
                process = processes[a]
                if process.poll() is not None:
                    raise ConfigurationError(f"demo: a program ended, with exit code {process.returncode}")
                assert process.stdin is not None
                process.stdin.write("{:.1f},{:.1f}\n".format(*here).encode())
                process.stdin.flush()
            await asyncio.sleep(MOVE_PERIOD_S)
    finally:
        machines.close()


def _words(folder: Path, address: int, seed: int, pages: list[int]) -> list[str]:
    words = ["app", "flood-watch", "--seed", str(seed), "--position", "-", "--interface", "eth0"]
    words += ["--key", str(folder / "network.key"), "--identity", str(folder / f"{address}.node"), "--one-computer"]
    if address == STATION_ADDRESS:
        return [*words, "--role", "station"]
    if address in VEHICLE_ADDRESSES:
        return [*words, "--role", "vehicle", "--name", f"vehicle {address}"]
    number = TEAM_ADDRESSES.index(address)
    name, box = TEAMS[number]
    page = f"fd:{pages[number]}"
    return [*words, "--role", "team", "--name", name, "--box", ",".join(map(str, box)), "--page", page]


def identify(folder: Path) -> None:
    """Makes the network's key, and a certified identity for everybody; only vehicles may change events."""
    authority = new_authority(NETWORK)
    write_ring(folder / "network.key", new_ring(NETWORK, time.time(), authority.public))
    for address in PLACES:
        identity = new_identity()
        now_s = int(time.time())
        certificate = Certificate(
            NETWORK, identity.public, str(address), now_s, now_s + 86_400, modulates=address in VEHICLE_ADDRESSES
        )
        authority, statement = authority.certified(certificate)
        identity = msgspec.structs.replace(identity, certificate=statement)
        write_secret(folder / f"{address}.node", identity, "identity")


def main(folder: str, seed: str, *pages: str) -> None:
    try:
        enter_own_network()
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        asyncio.run(_network(Path(folder), int(seed), [int(page) for page in pages]))
    except ConfigurationError as error:
        sys.exit(f"roamcast: {error}")


if __name__ == "__main__":
    main(*sys.argv[1:])
