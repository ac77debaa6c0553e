"""What is between the machines: a switch that passes a frame on to those that are in range of its sender.

A frame arrives after a fixed delay, unless it is lost at random. Links may have a rate: then the frames of a link
follow each other at that rate. Or the medium is shared: a frame occupies it for its sender and all nodes in the
sender's range, and waits until it is free for all of them.

A machine's card hands checksums to its hardware, which does not exist here. So a UDP checksum is set to 0, which means
in IPv4 that there is none.
"""

import asyncio
import socket
from random import Random

from roamcast.emulator.disturbance import Disturbances

PACKET_OUTGOING = 4
FRAME_BYTES_MAX = 65_536
FRAMES_AT_ONCE = 64
ETHERNET_BYTES = 14
UDP = 17


class Air:
    """Frames between `ports`, one per machine."""

    def __init__(
        self,
        ports: list[socket.socket],
        *,
        delay_s: float,
        loss: float,
        random: Random,
        rate_bps: float | None = None,
        shared_bps: float | None = None,
    ) -> None:
        self._ports = ports
        self._hear: list[set[int]] = [set() for _ in ports]
        self._on = [False] * len(ports)
        self._delay_s = delay_s
        self._loss = loss
        self._random = random
        self._rate_bps = rate_bps
        self._shared_bps = shared_bps
        self.disturbances = Disturbances(random)
        self._deaf: set[tuple[int, int]] = set()  # who does not hear whom, although in range
        self._link_free_s: dict[tuple[int, int], float] = {}
        self._free_s = [0.0] * len(ports)  # when the medium is free around each machine
        self._loop = asyncio.get_running_loop()
        self.frames = 0
        self.bytes = 0
        self.behind_s = 0.0  # the most by which a frame arrived too late
        for machine, port in enumerate(ports):
            self._loop.add_reader(port, self._read, machine)

    def connect(self, a: int, b: int, *, in_range: bool) -> None:
        if in_range:
            self._hear[a].add(b)
            self._hear[b].add(a)
        else:
            self._hear[a].discard(b)
            self._hear[b].discard(a)

    def listen(self, hearers: list[list[int]]) -> None:
        """Who hears each machine, from now on; links may work in one direction only."""
        self._hear = [set(each) for each in hearers]

    def switch(self, machine: int, *, on: bool) -> None:
        """A machine that is off neither sends nor hears."""
        self._on[machine] = on

    def deafen(self, machine: int, to: int, *, deaf: bool) -> None:
        """Whether a machine hears another one that is in range."""
        (self._deaf.add if deaf else self._deaf.discard)((machine, to))

    def hops_from(self, machine: int) -> list[int]:
        """Length of the shortest path to every machine at this instant, -1 where there is none."""
        hops = [-1] * len(self._ports)
        hops[machine] = 0
        reached = [machine]
        for near in reached:
            for far in sorted(self._hear[near]):
                if hops[far] < 0 and self._on[far]:
                    hops[far] = hops[near] + 1
                    reached.append(far)
        return hops

    def close(self) -> None:
        for port in self._ports:
            self._loop.remove_reader(port)

    def _read(self, machine: int) -> None:
        for _ in range(FRAMES_AT_ONCE):
            try:
                frame, origin = self._ports[machine].recvfrom(FRAME_BYTES_MAX)
            except (BlockingIOError, OSError):
                return
            if origin[2] != PACKET_OUTGOING and self._on[machine]:
                self._send(machine, frame)

    def _send(self, sender: int, frame: bytes) -> None:
        if not self.disturbances.leaves(sender):
            return
        self.frames += 1
        self.bytes += len(frame)
        hearers = sorted(self._hear[sender])
        sent_s = self._loop.time()
        if self._shared_bps is not None:
            sent_s = self._occupy(sender, hearers, len(frame), self._shared_bps)
        if not frame[0] & 1:  # to one machine, which its hardware address names
            addressed = frame[4] << 8 | frame[5]
            hearers = [addressed] if addressed in self._hear[sender] else []
        hearers = [each for each in hearers if (each, sender) not in self._deaf]
        receivers = [each for each in hearers if self._random.random() >= self._loss]
        if not receivers:
            return
        plain = without_checksum(frame)
        if self._rate_bps is None:
            self._pass(sent_s + self._delay_s, receivers, plain)
            return
        for each in receivers:
            through_s = max(sent_s, self._link_free_s.get((sender, each), 0.0)) + 8 * len(frame) / self._rate_bps
            self._link_free_s[sender, each] = through_s
            self._pass(through_s + self._delay_s, [each], plain)

    def _occupy(self, sender: int, hearers: list[int], size_bytes: int, rate_bps: float) -> float:
        """Takes the medium around the sender for as long as a frame needs; when that is over."""
        around = (sender, *hearers)
        end_s = max(self._loop.time(), *(self._free_s[each] for each in around)) + 8 * size_bytes / rate_bps
        for each in around:
            self._free_s[each] = end_s
        return end_s

    def _pass(self, due_s: float, receivers: list[int], frame: bytes) -> None:
        for struck in filter(self.disturbances.strikes, receivers):
            for late_s in self.disturbances.arrivals(struck):
                self._loop.call_at(due_s + late_s, self._arrive, due_s + late_s, [struck], frame)
        receivers = [each for each in receivers if not self.disturbances.strikes(each)]
        self._loop.call_at(due_s, self._arrive, due_s, receivers, frame)

    def _arrive(self, due_s: float, receivers: list[int], frame: bytes) -> None:
        self.behind_s = max(self.behind_s, self._loop.time() - due_s)
        for receiver in receivers:
            if self._on[receiver]:
                try:
                    self._ports[receiver].send(frame)
                except OSError:  # its queue is full, or the machine has just gone
                    continue


def without_checksum(frame: bytes) -> bytes:
    """The frame with the checksum of its UDP datagram, if it is one, set to "none"."""
    if len(frame) < ETHERNET_BYTES + 28 or frame[12:14] != b"\x08\x00" or frame[ETHERNET_BYTES + 9] != UDP:
        return frame
    at = ETHERNET_BYTES + 4 * (frame[ETHERNET_BYTES] & 15) + 6
    return frame[:at] + b"\0\0" + frame[at + 2 :]
