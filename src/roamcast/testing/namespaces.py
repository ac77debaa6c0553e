"""Machines for tests: network namespaces on virtual switches, and live nodes that run in them.

Linux only, and only for root: `why_impossible` says why a test has to be skipped.
"""

import ctypes
import itertools
import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from roamcast.errors import CallerError

CLONE_NEWNET = 0x4000_0000
NAMESPACES = Path("/run/netns")
_names = itertools.count()


def why_impossible() -> str | None:
    """Why there can be no namespaces here; None if there can be."""
    if shutil.which("ip") is None:
        return "no command `ip`"
    name = f"roamcast-{os.getpid()}-probe"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True, check=False)
    if made.returncode:
        return f"no network namespaces: {made.stderr.strip()}"
    try:
        link = ["ip", "-n", name, "link", "add", "end1", "type", "veth", "peer", "name", "end2"]
        made = subprocess.run(link, capture_output=True, text=True, check=False)
        return f"no virtual Ethernet: {made.stderr.strip()}" if made.returncode else None
    finally:
        subprocess.run(["ip", "netns", "del", name], check=True)


class NamespaceMachines:
    """Machines 1 to `count`. Each can be connected to the local networks 0 and 1, by `eth0` and `eth1`."""

    def __init__(self, count: int) -> None:
        self._prefix = f"roamcast-{os.getpid()}-{next(_names)}"
        self._switch = f"{self._prefix}-switch"
        self._made: list[str] = []
        self.machines = range(1, count + 1)
        try:
            bridges = [(f"link add br{lan} type bridge mcast_snooping 0", f"link set br{lan} up") for lan in (0, 1)]
            self._add(self._switch, *itertools.chain(*bridges))
            for machine in self.machines:
                self._add(self.name(machine), "link set lo up")
        except BaseException:
            self.close()
            raise

    def name(self, machine: int) -> str:
        """Of its namespace."""
        return f"{self._prefix}-{machine}"

    def connect(
        self, machine: int, lan: int = 0, *, ipv4: bool = True, ipv6: bool = True, mtu_bytes: int = 1500
    ) -> None:
        """Gives the machine an interface with addresses that can be used at once."""
        name, interface, port = self.name(machine), f"eth{lan}", _port(machine, lan)
        self._ip(
            self._switch,
            f"link add {port} mtu {mtu_bytes} type veth peer name {interface} netns {name} mtu {mtu_bytes}",
            f"link set {port} addrgenmode none master br{lan} up",
        )
        addresses = [f"link set {interface} addrgenmode none up"]
        if ipv4:
            addresses.append(f"addr add 10.77.{lan}.{machine}/24 brd 10.77.{lan}.255 dev {interface}")
        if ipv6:
            addresses.append(f"addr add fe80::{lan}:{machine:x}/64 dev {interface} nodad")
        self._ip(name, *addresses)

    def disconnect(self, machine: int, lan: int = 0) -> None:
        """Takes the interface away."""
        self._ip(self._switch, f"link del {_port(machine, lan)}")

    def unplug(self, machine: int, lan: int = 0) -> None:
        self._ip(self._switch, f"link set {_port(machine, lan)} down")

    def plug_in(self, machine: int, lan: int = 0) -> None:
        self._ip(self._switch, f"link set {_port(machine, lan)} up")

    def close(self) -> None:
        for name in self._made:
            subprocess.run(["ip", "netns", "del", name], check=False)
        self._made.clear()

    def _add(self, name: str, *commands: str) -> None:
        subprocess.run(["ip", "netns", "add", name], check=True)
        self._made.append(name)
        self._ip(name, *commands)

    def _ip(self, name: str, *commands: str) -> None:
        subprocess.run(["ip", "-n", name, "-batch", "-"], input="\n".join(commands), text=True, check=True)


def _port(machine: int, lan: int) -> str:
    return f"port{lan}-{machine}"


class NamespaceNode:
    """A `roamcast node` in a machine; its output and its log are read line by line."""

    def __init__(self, stdin: int, stdout: int, stderr: int) -> None:
        self._stdin = stdin
        self._lines: queue.Queue[dict[str, Any]] = queue.Queue()
        for descriptor in (stdout, stderr):
            threading.Thread(target=self._read, args=(descriptor,), daemon=True).start()
        self._unread: list[dict[str, Any]] = []

    def close(self) -> None:
        os.close(self._stdin)

    def say(self, command: str) -> None:
        os.write(self._stdin, f"{command}\n".encode())

    def next(self, kind: str, patience_s: float = 15.0, **fields: Any) -> dict[str, Any]:
        """The next line of this kind and with these fields; lines of other kinds stay for later."""
        deadline_s = time.monotonic() + patience_s
        wanted = {"kind": kind, **fields}.items()
        while True:
            for index, line in enumerate(self._unread):
                if wanted <= {name: value for name, value in line.items() if name in dict(wanted)}.items():
                    return self._unread.pop(index)
            try:
                self._unread.append(self._lines.get(timeout=max(0.0, deadline_s - time.monotonic())))
            except queue.Empty:
                raise AssertionError(f"no line {dict(wanted)}; there were {self._unread}") from None

    def _read(self, descriptor: int) -> None:
        with os.fdopen(descriptor, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                try:
                    self._lines.put(json.loads(line))
                except ValueError:
                    self._lines.put({"kind": "text", "text": line.rstrip()})


class Fleet:
    """Live nodes, one per machine. They come from one process that has imported everything, so they start at once."""

    def __init__(self, arguments: dict[str, list[str]]) -> None:
        """`arguments` of `roamcast node`, by namespace."""
        self.nodes: list[NamespaceNode] = []
        plans: list[tuple[str, list[str], list[int]]] = []
        theirs: list[int] = []
        for name, words in arguments.items():
            stdin, stdout, stderr = os.pipe(), os.pipe(), os.pipe()
            plans.append((name, words, [stdin[0], stdout[1], stderr[1]]))
            theirs += [stdin[0], stdout[1], stderr[1]]
            self.nodes.append(NamespaceNode(stdin[1], stdout[0], stderr[0]))
        command = [sys.executable, "-m", "roamcast.testing.namespaces", json.dumps(plans)]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        self._process = subprocess.Popen(command, pass_fds=theirs, env=environment, start_new_session=True)
        for descriptor in theirs:
            os.close(descriptor)

    def close(self) -> None:
        """Kills all nodes."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for node in self.nodes:
            node.close()


def enter(name: str) -> None:
    """From here on this thread is in the namespace."""
    descriptor = os.open(NAMESPACES / name, os.O_RDONLY)
    if ctypes.CDLL(None, use_errno=True).setns(descriptor, CLONE_NEWNET):
        raise CallerError(f"cannot enter the namespace {name}: {os.strerror(ctypes.get_errno())}")
    os.close(descriptor)


def _launch(plans: list[tuple[str, list[str], list[int]]]) -> None:
    """Starts every node in a process of its own and waits for their ends."""
    from importlib import import_module

    command_line = import_module("roamcast.cli")  # by name: this package is below the command line
    import_module("roamcast.cli.node")
    for name, words, descriptors in plans:
        if os.fork():
            continue
        enter(name)
        for number, descriptor in enumerate(descriptors):
            os.dup2(descriptor, number)
        os.closerange(3, 3 + 8 * len(plans) + 64)
        command_line.main(["node", *words])
    os.closerange(3, 3 + 8 * len(plans) + 64)
    for _ in plans:
        os.wait()


if __name__ == "__main__":
    _launch(json.loads(sys.argv[1]))
