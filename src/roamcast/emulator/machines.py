"""Machines on one computer: a network namespace for each node, and one for the air between them.

No namespace has a name. Each lives as long as a process in it, and every process here dies with the emulator, however
that ends. So nothing is left behind. Without root, the emulator first makes itself root of a user namespace of its own.
"""

import contextlib
import ctypes
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence

from roamcast.errors import ConfigurationError
from roamcast.live.endpoints import PORT

CLONE_NEWNET = 0x4000_0000
PR_SET_PDEATHSIG = 1
ETH_P_ALL = 3
GROUP = f"10.77.255.255:{PORT}"
"""Every node's neighbourhood: the broadcast address of the network in which all machines are."""

NO_PRIORITY, NODE_PRIORITY, AIR_PRIORITY = (
    0,
    1,
    2,
)  # of the real-time class: before other work on this machine, the air first

_LIBC = ctypes.CDLL(None, use_errno=True)


def enter_own_network() -> None:
    """From here on this process, and what it starts, is in a network of its own: the air. It has no way back.

    Without root the program starts over, as root of a user namespace: only a process without threads can enter one.
    """
    for program in ("ip", "nsenter", "sleep", "unshare"):
        if shutil.which(program) is None:
            raise ConfigurationError(f"emulate: needs the program {program!r}, which is not there")
    if _LIBC.unshare(CLONE_NEWNET) == 0:
        return
    own = ["unshare", "--user", "--map-root-user", "--net"]
    tried = subprocess.run([*own, "true"], capture_output=True, text=True, check=False)
    if tried.returncode:
        reason = " ".join(tried.stderr.split())
        raise ConfigurationError(f"emulate: this system allows no network namespaces ({reason}); try it as root")
    sys.stdout.flush()
    os.execvp(own[0], [*own, sys.executable, *sys.orig_argv[1:]])


class Machines:
    """Machines 0, 1, 2, …; what each sends leaves through a port on which the air listens."""

    def __init__(self, count: int) -> None:
        self._holders: list[subprocess.Popen[bytes]] = []  # each keeps a namespace alive
        self.ports: list[socket.socket] = []
        try:
            self._make(count)
        except BaseException:
            self.close()
            raise

    def start(self, machine: int, words: Sequence[str], pass_fds: Sequence[int] = ()) -> subprocess.Popen[bytes]:
        """A `roamcast` command in the machine, such as `node …`; its standard input and output are pipes."""
        command = ["nsenter", "-t", str(self._holders[machine].pid), "-n", sys.executable, "-m", "roamcast"]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        return subprocess.Popen(
            [*command, *words],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            preexec_fn=_begin,
            pass_fds=pass_fds,
        )

    def close(self) -> None:
        for port in self.ports:
            port.close()
        for holder in self._holders:
            holder.kill()
            holder.wait()
        self.ports.clear()
        self._holders.clear()

    def _make(self, count: int) -> None:
        for _ in range(count):
            self._holders.append(subprocess.Popen(["sleep", "infinity"], preexec_fn=_in_new_network))
        made = []
        for machine, holder in enumerate(self._holders):
            made += [
                f"link add port{machine} type veth peer name eth0 netns {holder.pid}",
                f"link set port{machine} addrgenmode none up",
            ]
        _ip([], made)
        for machine, holder in enumerate(self._holders):
            others = [each for each in range(count) if each != machine]
            settings = [
                "link set lo up",
                f"link set eth0 address {hardware_address(machine)} addrgenmode none up",
                f"addr add {address(machine)}/16 brd 10.77.255.255 dev eth0",
                *(f"neigh add {address(each)} lladdr {hardware_address(each)} dev eth0" for each in others),
            ]
            _ip(["nsenter", "-t", str(holder.pid), "-n"], settings)
            port = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
            port.bind((f"port{machine}", 0))
            port.setblocking(False)
            self.ports.append(port)


def prefer(process: int, priority: int) -> None:
    """Puts a process before other work on this machine, which would make the emulation late. Only root may.

    Niceness would not do: where the kernel groups processes by session, it counts only within a session.
    """
    with contextlib.suppress(OSError):  # not root, or the process has just gone
        for thread in os.listdir(f"/proc/{process}/task"):  # all: a thread that waits for its turn may hold a lock
            os.sched_setscheduler(int(thread), os.SCHED_RR if priority else os.SCHED_OTHER, os.sched_param(priority))


def address(machine: int) -> str:
    return f"10.77.{machine + 1 >> 8}.{machine + 1 & 255}"


def hardware_address(machine: int) -> str:
    return f"02:00:00:00:{machine >> 8:02x}:{machine & 255:02x}"


def _ip(prefix: list[str], lines: list[str]) -> None:
    done = subprocess.run(
        [*prefix, "ip", "-batch", "-"], input="\n".join(lines), text=True, capture_output=True, check=False
    )
    if done.returncode:
        raise ConfigurationError(f"emulate: the network could not be made: {done.stderr.strip().splitlines()[0]}")


def _die_with_parent() -> None:
    _LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _begin() -> None:
    """A program that loads has no claim to be first, although the air that starts it has."""
    _die_with_parent()
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(NO_PRIORITY))


def _in_new_network() -> None:
    _die_with_parent()
    if _LIBC.unshare(CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "unshare")
