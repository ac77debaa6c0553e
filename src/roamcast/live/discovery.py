"""How nodes find each other without a list of peers.

A node sends a beacon over every group of every interface: three soon after it starts or an interface comes up, then one
every `FULL_PERIOD_S`. In between it is heard over the groups that reach its neighbours at least every
`BEACON_PERIOD_S`: if it has not broadcast anything for so long, it sends a beacon over these. A beacon is a bare
datagram, sealed like all others. A node that hears a neighbour for the first time answers with its own beacons within
`ANSWER_S`, at most one answer per `ANSWER_PERIOD_S`, so two nodes know each other after one exchange. A neighbour that
was not heard for `EXPIRY_S` is forgotten.

The same object opens and closes ports as interfaces come and go, tells the link where a broadcast has to go
(`paths.py`), limits frames to what the smallest interface carries, and reports what happens as notices. Static links
get beacons too, so their ends are noticed in the same way.
"""

import asyncio
import time
from collections.abc import Callable
from random import Random

import msgspec

from roamcast.live.codec import DATAGRAM_BYTES_MAX, FRAME_BYTES_MAX
from roamcast.live.diagnosis import Diagnosis
from roamcast.live.endpoints import Endpoint
from roamcast.live.host import UdpHost
from roamcast.live.interfaces import InterfaceWatch, exists, present
from roamcast.live.journal import Journal
from roamcast.live.notices import Level, Notice
from roamcast.live.paths import Novelty, Paths
from roamcast.live.ports import Ports

BEACON_PERIOD_S = 2.0
SHORTEST_S, LONGEST_S = 0.9 * BEACON_PERIOD_S, 1.1 * BEACON_PERIOD_S
FULL_PERIOD_S = 9.0  # at most
BURST_S = (0.2, 0.4, 0.8)  # between the first beacons
ANSWER_S = 0.1
ANSWER_PERIOD_S = 0.5
EXPIRY_S = 7.0  # three beacons may be lost
GROUP_EXPIRY_S = 28.0  # of a group over which a neighbour was heard: three full rounds of beacons may be lost
NOT_READY_S = 0.25  # until an address is tried again that could not be used
ADDRESS_IN_USE_PERIOD_S = 60.0
MENTIONS_MAX = 50  # neighbours that are mentioned at once when they come or go,
MENTIONS_PER_S = 1.0  # and in the long run: a peer that forges senders does not fill the log
IP_UDP_BYTES = 48  # headers of IPv6 and UDP
DATAGRAM_BYTES_MIN = 512  # on a link that carries less, IP fragments

CHECK_PEERS = "check that the nodes named by --peer or --broadcast run, and that they have this one as a peer"
CHECK_NETWORK = (
    "check that another node runs on this link, with the same --network and --protocol; that a firewall lets in UDP "
    "port {port}; that the right --interface is named; that the access point does not isolate its clients"
)


class NeighbourDiscovery:
    """Of one node, from its start to its end."""

    def __init__(
        self,
        host: UdpHost,
        journal: Journal,
        static: tuple[Endpoint, ...],
        notify: Callable[[Notice], None],
        ports: Ports | None = None,
        wanted: tuple[str, ...] = (),
    ) -> None:
        self.paths = Paths()
        self._host = host
        self._journal = journal
        self._static = static
        self._notify = notify
        self._ports = ports  # None: there are static links only
        self._wanted = wanted
        self._interfaces: list[str] = []
        self._loop = asyncio.get_running_loop()
        self._random = Random()
        self._frame_overhead_bytes = DATAGRAM_BYTES_MAX - FRAME_BYTES_MAX
        check = CHECK_PEERS if ports is None else CHECK_NETWORK.format(port=ports.number)
        self._diagnosis = Diagnosis(check)
        self._beacon: asyncio.Handle | None = None
        self._answer: asyncio.TimerHandle | None = None
        self._answered_s = 0.0
        self._burst: list[float] = []
        self._full_s = 0.0  # when the next beacon over all groups is due
        self._mentions = float(MENTIONS_MAX)
        self._mentioned_s = self._loop.time()
        self._warned_s: dict[str, float] = {}
        self._watch: InterfaceWatch | None = None
        host.on_heard = self._heard
        if ports is not None:
            host.send_on_interface = ports.send
            self._watch = InterfaceWatch(self._look)
            self._look()
            self._mention_missing(ports)
        self._route()
        self._start_burst()

    @property
    def interfaces(self) -> list[str]:
        """Names of those that are in use; of a node that is closed, that were."""
        return self._interfaces

    def set_interfaces(self, wanted: tuple[str, ...]) -> None:
        """These are the interfaces to use from now on, if any are used."""
        self._wanted = wanted
        if self._ports is not None:
            self._look()
            self._mention_missing(self._ports)

    def set_static(self, static: tuple[Endpoint, ...]) -> None:
        """These are the static links from now on. Neighbours at the end of a link that is no more are forgotten."""
        before, self._static = self._static, static
        for node in self._host.link.neighbours.at(set(before) - set(static)):
            self._host.link.neighbours.forget(node)
            self.paths.forget(node)
        self._route()
        if not set(static) <= set(before):
            self._start_burst()

    def close(self) -> None:
        for timer in (self._beacon, self._answer):
            if timer is not None:
                timer.cancel()
        if self._watch is not None:
            self._watch.close()
        if self._ports is not None:
            self._ports.close()

    def _look(self) -> None:
        """The interfaces may have changed."""
        assert self._ports is not None
        groups_before = [group for groups in self._ports.groups() for group in groups]
        changes = self._ports.update(present(self._wanted))
        if not changes.is_ready and self._watch is not None:
            self._watch.look_after(NOT_READY_S)
        for name in changes.closed:
            self._host.link.neighbours.forget_interface(name)
            self._notify(Notice(Level.INFO, "interface-gone", f"interface {name} is down or gone", {"interface": name}))
        for interface in changes.opened:
            fields = msgspec.structs.asdict(interface)
            self._notify(Notice(Level.INFO, "interface", f"uses interface {interface}", fields))
        self._interfaces = [interface.name for interface in self._ports.interfaces]
        groups = [group for groups in self._ports.groups() for group in groups]
        if groups != groups_before:
            self.paths.forget_groups(set(groups_before) - set(groups))
            self._start_burst()
        self._route()

    def _mention_missing(self, ports: Ports) -> None:
        for name in self._wanted:
            if not exists(name):
                text = f"there is no interface {name} yet; it is used as soon as it appears"
                self._notify(Notice(Level.WARNING, "no-interface", text, {"interface": name}))
        if not self._wanted and not ports.interfaces:
            text = "no interface is up that can multicast; one is used as soon as it is up"
            self._notify(Notice(Level.WARNING, "no-interface", text))

    def _route(self) -> None:
        """Decides where broadcasts go and how large frames may be."""
        ports = self._ports
        if ports is None:
            self._host.link.neighbourhood = self._host.link.everywhere = self._static
            return
        groups = ports.groups()
        self._host.link.neighbourhood = (*self._static, *self.paths.choose(groups))
        self._host.link.everywhere = (*self._static, *(group for of_interface in groups for group in of_interface))
        smallest = min(
            (interface.mtu_bytes for interface in ports.interfaces), default=DATAGRAM_BYTES_MAX + IP_UDP_BYTES
        )
        datagram_bytes = min(max(smallest - IP_UDP_BYTES, DATAGRAM_BYTES_MIN), DATAGRAM_BYTES_MAX)
        if datagram_bytes - self._frame_overhead_bytes != self._host.frame_bytes_max:
            self._host.limit_frames(datagram_bytes - self._frame_overhead_bytes)

    def _heard(self, node: int, source: Endpoint, group: Endpoint | None) -> None:
        now_s = self._host.now()
        if node == self._host.address:
            if "%" in source[0]:  # our own echoes do not come so far
                self._warn_of_namesake(source, now_s)
            return
        novelty = self.paths.heard(node, group, now_s)
        if novelty is None:
            return
        if novelty is Novelty.NODE:
            where = f"{source[0]} port {source[1]}"
            fields = {"node": node, "host": source[0], "port": source[1]}
            self._mention(Notice(Level.INFO, "neighbour", f"neighbour {node} is here, at {where}", fields))
            self._answer_soon()
        self._route()

    def _mention(self, notice: Notice) -> None:
        now_s = self._loop.time()
        self._mentions = min(MENTIONS_MAX, self._mentions + (now_s - self._mentioned_s) * MENTIONS_PER_S)
        self._mentioned_s = now_s
        if self._mentions >= 1.0:
            self._mentions -= 1.0
            self._notify(notice)

    def _warn_of_namesake(self, source: Endpoint, now_s: float) -> None:
        if now_s - self._warned_s.get("address", -ADDRESS_IN_USE_PERIOD_S) < ADDRESS_IN_USE_PERIOD_S:
            return
        self._warned_s["address"] = now_s
        text = f"another node, at {source[0]}, has the address {self._host.address} too: change one with --address"
        self._notify(Notice(Level.ERROR, "address-in-use", text, {"host": source[0]}))

    def _answer_soon(self) -> None:
        if self._answer is None:
            wait_s = max(0.0, self._answered_s + ANSWER_PERIOD_S - self._loop.time())
            self._answer = self._loop.call_later(wait_s + self._random.uniform(0.0, ANSWER_S), self._send_answer)

    def _send_answer(self) -> None:
        self._answer = None
        self._answered_s = self._loop.time()
        self._send_beacons(everywhere=True)

    def _start_burst(self) -> None:
        self._burst = list(reversed(BURST_S))
        if self._beacon is not None:
            self._beacon.cancel()
        self._beacon = self._loop.call_soon(self._tick)

    def _tick(self) -> None:
        now_s = time.monotonic()
        period_s = self._random.uniform(SHORTEST_S, LONGEST_S)
        silent_s = now_s - self._host.link.broadcast_s
        if self._burst or now_s + LONGEST_S > self._full_s:  # before the next beacon is due
            self._send_beacons(everywhere=True)
            self._full_s = now_s + FULL_PERIOD_S
        elif silent_s >= SHORTEST_S:
            self._send_beacons(everywhere=False)
        else:
            period_s -= silent_s
        if self._burst:
            period_s = self._burst.pop()
        self._expire()
        notice = self._diagnosis.examine(self._host.now(), len(self.paths), self._journal.lost)
        if notice is not None:
            self._notify(notice)
        self._beacon = self._loop.call_later(period_s, self._tick)

    def _send_beacons(self, *, everywhere: bool) -> None:
        """One for each group, each sealed for itself, so that others learn all groups over which they hear us."""
        link = self._host.link
        for endpoint in link.everywhere if everywhere else link.neighbourhood:
            link.beacon((endpoint,))

    def _expire(self) -> None:
        gone = self.paths.expire(self._host.now() - EXPIRY_S, self._host.now() - GROUP_EXPIRY_S)
        for node in gone:
            self._host.link.neighbours.forget(node)
            text = f"neighbour {node} is gone: not heard for {EXPIRY_S:.0f} s"
            self._mention(Notice(Level.INFO, "neighbour-gone", text, {"node": node}))
        self._route()
