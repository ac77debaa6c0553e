"""The Host of a live node: one protocol, one UDP socket, one asyncio loop.

Everything happens on the loop's thread, and a protocol is only ever called from a callback of the loop: a datagram that
arrived, a timer that ran out, a command of the application. What the protocol does in such a call (a frame, a timer, a
delivery) takes effect through the socket or a later callback, so the host never calls back into a running call.

No peer can end a node. An exception out of the handling of one message drops that message; it is counted, and reported
to the application with the datagram that caused it. `PeerError` means that the message made no sense, which is a peer's
fault and only counted. A protocol that fails `FAILURES_MAX` times within `FAILURES_WITHIN_S`, or once in a timer or a
command of the application, is in a state that it cannot leave by itself: it is replaced by a new one, with a new life.

Beacons are in no hurry, and most of what a node hears that has nothing to do. They wait for each other, because to
handle several in a row costs a third of handling each by itself. A beacon is as long as an acknowledgement, so nothing
waits while one is expected.
"""

import asyncio
import socket
import time
import traceback
from collections import deque
from collections.abc import Callable, Sequence

import msgspec
import psutil

from roamcast.delivery.inboxes import Handed
from roamcast.delivery.layer import DeliveryLayer
from roamcast.delivery.messages import KINDS as DELIVERY_KINDS
from roamcast.errors import PeerError
from roamcast.events import NO_EVENT, Event
from roamcast.live.activity import Activity
from roamcast.live.codec import FRAME_BYTES_MAX, HEADER_BYTES, Codec, DropReason
from roamcast.live.endpoints import Endpoint
from roamcast.live.guard import Guard
from roamcast.live.journal import Journal
from roamcast.live.link import UdpLink
from roamcast.live.reading import DatagramReader
from roamcast.protocols.api import NOBODY, PLAIN_CHANNEL, Host, Message, Point, Protocol, Site, Timer
from roamcast.protocols.contents import Contents
from roamcast.protocols.fragments import MESSAGE_BYTES_MAX
from roamcast.seeds import Random

BEACONS_WAIT_S = 0.2
BEACONS_MAX = 64
FAILURES_MAX = 5
FAILURES_WITHIN_S = 10.0


class Failure(msgspec.Struct, frozen=True):
    """A bug that a protocol's call ran into."""

    error: str  # the exception, with the place where it was raised
    datagram: bytes  # what was being handled; empty for a timer or a command
    restarts: bool  # whether the protocol is replaced by a new one


class Clock:
    """Unix time that never goes back: what the system said at the start, and the monotonic time since then."""

    def __init__(self) -> None:
        self._offset_s = time.time() - time.monotonic()

    def now(self) -> float:
        return self._offset_s + time.monotonic()

    def calendar(self) -> float:
        """The same for certificates and keys: it follows the system's clock if that was behind and has been set, as on
        machines that have none of their own and ask the network for the time."""
        return max(self.now(), time.time())


class UdpHost(Host):
    """What arrives goes to the link, and from there to the protocol."""

    protocol: Protocol  # set right after construction: a protocol needs its host first

    def __init__(
        self,
        address: int,
        codec: Codec,
        journal: Journal,
        neighbourhood: Sequence[Endpoint],
        *,
        life: int,
        clock: Clock,
        random: Random,
        on_delivery: Callable[[Handed, float], None],
        on_failure: Callable[[Failure], None],
        on_refused: Callable[[int, str], None] = lambda channel, reason: None,
        guard: Guard | None = None,
        position: Point | None = None,
        site: Site | None = None,
        cpu_share: float = 1.0,
        contents: Contents | None = None,
        on_activity: Callable[[Activity], None] = lambda activity: None,
    ) -> None:
        self.address = address
        self.life = life
        self.frame_bytes_max = FRAME_BYTES_MAX
        self.message_bytes_max = MESSAGE_BYTES_MAX
        self.random = random
        self.site = site
        self._cpu_share = cpu_share
        self.oracle = None
        self._loop = asyncio.get_running_loop()
        self._clock = clock
        self._position = position
        self._velocity = None if position is None else (0.0, 0.0)
        self._moved_s = clock.now()
        self._journal = journal
        self._on_delivery = on_delivery
        self._on_refused = on_refused
        self._on_failure = on_failure
        self._contents = contents  # finds events in messages; None: no program watches
        self._on_activity = on_activity
        self._guard = guard  # None: datagrams are plain, and nothing is checked
        self._checks_events = guard is not None and guard.checks_events
        self._seal = None if guard is None else guard.seal
        self._beacon_bytes = HEADER_BYTES + (0 if guard is None else guard.bytes_added)
        self._beacons: list[tuple[bytes, Endpoint, Endpoint | None]] = []  # that wait, as they arrived
        self._beacons_due: asyncio.TimerHandle | None = None
        self._failed_s: deque[float] = deque(maxlen=FAILURES_MAX)  # when the protocol failed last
        self._is_closed = False
        self._is_receiving = False  # a datagram is being handled; then deliveries are handed out
        self._deliveries: deque[tuple[Handed, float]] = deque()  # for the application, once the protocol's call is over
        self._timers: dict[Timer, asyncio.TimerHandle] = {}
        self._socket: socket.socket | None = None  # for static links
        self.linked: frozenset[Endpoint] | None = None  # peers that may use that socket; None: all
        self.send_on_interface: Callable[[bytes, Endpoint], None] = lambda data, endpoint: None
        self.on_heard: Callable[[int, Endpoint, Endpoint | None], None] = lambda sender, source, group: None
        self.link = UdpLink(
            address,
            codec,
            journal,
            neighbourhood,
            life=life,
            first_sequence=time.time_ns(),
            transmit=self._transmit,
            on_message=self._on_message,
            on_send_failed=self._on_send_failed,
            prepare=guard.outgoing if guard is not None and guard.checks_events else None,
        )

    def now(self) -> float:
        return self._clock.now()

    def position(self) -> Point | None:
        return self._position

    def velocity(self) -> Point | None:
        return self._velocity

    def move(self, to: Point) -> None:
        """The node is here now. Its velocity is that between the last two places."""
        now = self._clock.now()
        elapsed_s = now - self._moved_s
        if self._position is None:
            self._velocity = (0.0, 0.0)
        elif elapsed_s > 0:
            self._velocity = (to[0] - self._position[0]) / elapsed_s, (to[1] - self._position[1]) / elapsed_s
        self._position = to
        self._moved_s = now

    def broadcast(self, message: Message) -> None:
        self.link.broadcast(message)

    def send(self, neighbour: int, message: Message) -> None:
        self.link.send(neighbour, message)

    def backlog(self) -> int:
        return self.link.backlog

    def set_timer(self, delay_s: float, timer: Timer) -> None:
        self.cancel_timer(timer)
        self._timers[timer] = self._loop.call_later(delay_s, self._on_timer, timer)

    def cancel_timer(self, timer: Timer) -> None:
        pending = self._timers.pop(timer, None)
        if pending is not None:
            pending.cancel()

    def deliver(self, event: Event, hops: int, channel: int = PLAIN_CHANNEL) -> None:
        self.hand_over(Handed(event, hops, channel=channel))

    def hand_over(self, handed: Handed) -> bool:
        """Hands an event to the application; false if this node may not have it."""
        if self._checks_events:
            assert self._guard is not None
            event = handed.event
            proved = self._guard.delivered(event)
            if proved is None:
                return False
            if proved is not event:
                handed = msgspec.structs.replace(handed, event=proved)
        latency_s = self._journal.delivered(handed.event, handed.hops)
        if not self._is_receiving and not self._deliveries:
            self._loop.call_soon(self._hand_out)
        self._deliveries.append((handed, latency_s))
        return True

    def refused(self, channel: int, reason: str) -> None:
        self._loop.call_soon(self._on_refused, channel, reason)

    def cpu_s(self) -> float:
        return time.thread_time() / self._cpu_share

    def machine_load(self) -> float:
        return max(psutil.cpu_percent(interval=None), psutil.virtual_memory().percent) / 100

    def dropped(self, reason: str, event_id: int = NO_EVENT) -> None:
        self._journal.dropped(reason, event_id)
        if self._contents is not None:
            self._tell(Activity("dropped", self.now(), reason, event_id=event_id or None))

    def structure(self, aspect: str, peer: int = NOBODY, value: float = 0.0, detail: str = "") -> None:
        self._journal.structure(aspect, peer, value, detail)
        if self._contents is not None:
            self._tell(Activity("structure", self.now(), aspect, None if peer == NOBODY else peer, value=value))

    def listen(self, endpoint: socket.socket) -> None:
        """Takes over the socket for static links."""
        self._socket = endpoint
        self._loop.add_reader(endpoint, DatagramReader(endpoint, self._linked, self._journal.system_refused).read)

    def _linked(self, data: bytes, source: Endpoint) -> None:
        """Takes a datagram that came over a static link."""
        source = source[:2]  # in IPv6 there is more
        if self.linked is None or source in self.linked:
            self.receive(data, source)
        else:
            self._journal.frame_lost(DropReason.UNLINKED)

    def receive(self, data: bytes, source: Endpoint, group: Endpoint | None = None) -> None:
        """Takes a datagram that was sent to `group`, or to this node alone."""
        if len(data) == self._beacon_bytes and not self.link.waiting and len(self._beacons) < BEACONS_MAX:
            self._beacons.append((data, source, group))
            if self._beacons_due is None:
                self._beacons_due = self._loop.call_later(BEACONS_WAIT_S, self._take_beacons)
        else:
            self._take(data, source, group)

    def _take_beacons(self) -> None:
        self._beacons_due = None
        beacons, self._beacons = self._beacons, []
        for beacon in beacons:
            if not self._is_closed:
                self._take(*beacon)

    def _take(self, data: bytes, source: Endpoint, group: Endpoint | None) -> None:
        sealed_by: int | None = None
        if self._guard is not None:
            opened = self._guard.open(data, self._take, source, group)
            if opened is None or self._is_closed:
                return
            sealed_by, data = opened
        self._is_receiving = True
        link = self.link
        try:
            sender, messages = link.receive(data, source, group, sealed_by, self.on_heard)
            for message in messages:
                try:
                    link.pass_on(sender, message)
                except Exception as error:
                    self._mishandled(error, data)
        except Exception as error:
            self._mishandled(error, data)
        self._is_receiving = False
        if self._deliveries:
            self._hand_out()

    def _mishandled(self, error: Exception, data: bytes) -> None:
        """Something went wrong with what a datagram asks for; the node goes on."""
        if isinstance(error, PeerError):
            self._journal.frame_lost(DropReason.REFUSED)
            return
        self._journal.frame_lost(DropReason.FAILED)
        self._failed_s.append(self._clock.now())
        many = len(self._failed_s) == FAILURES_MAX
        self._fail(error, data, many and self._clock.now() - self._failed_s[0] < FAILURES_WITHIN_S)

    def _hand_out(self) -> None:
        """Tells the application of deliveries, now that no call of the protocol is under way: it may publish."""
        while self._deliveries and not self._is_closed:
            handed, latency_s = self._deliveries.popleft()
            try:
                self._on_delivery(handed, latency_s)
            except Exception as error:  # the application's, which is told in the way of asyncio
                self._loop.call_exception_handler({"message": "an application failed", "exception": error})

    def publish(self, event: Event) -> None:
        try:
            self.protocol.publish(event)
        except Exception as error:
            self._fail(error, b"", True)

    def command(self, call: Callable[[], None]) -> None:
        """Has the protocol obey the application."""
        try:
            call()
        except Exception as error:
            self._fail(error, b"", True)

    def begin_life(self, life: int, protocol: Protocol) -> None:
        """A protocol takes over, with nothing of the one before."""
        for timer in list(self._timers):
            self.cancel_timer(timer)
        self._failed_s.clear()
        self.life = life
        self.protocol = protocol

    def close(self) -> None:
        """Nothing is called from here on."""
        self.link.close()
        self._is_closed = True
        if self._beacons_due is not None:
            self._beacons_due.cancel()
        for timer in list(self._timers):
            self.cancel_timer(timer)
        if self._socket is not None:
            self._loop.remove_reader(self._socket)
            self._socket.close()
            self._socket = None

    def limit_frames(self, frame_bytes_max: int) -> None:
        """The interfaces carry datagrams of another size than before."""
        self.frame_bytes_max = frame_bytes_max
        self.link.limit_frames(frame_bytes_max)
        if isinstance(self.protocol, DeliveryLayer):
            self.protocol.limit_frames(frame_bytes_max)

    def _transmit(self, data: bytes, endpoints: Sequence[Endpoint]) -> None:
        """Sealed once for all of them: a node that hears it twice accepts it once."""
        if self._is_closed or not endpoints:
            return
        sealed = data if self._seal is None else self._seal(data)
        for endpoint in endpoints:
            try:
                if "%" in endpoint[0]:
                    self.send_on_interface(sealed, endpoint)
                elif self._socket is not None:
                    self._socket.sendto(sealed, endpoint)
            except OSError:
                self._journal.system_refused()

    def _on_message(self, sender: int, message: Message) -> None:
        if type(message) in DELIVERY_KINDS and not isinstance(self.protocol, DeliveryLayer):
            self._journal.frame_lost(DropReason.NO_LAYER)
            return
        guard = self._guard
        if guard is None or not self._checks_events:
            if guard is None or guard.understands(message):
                if self._contents is not None:
                    self._tell_of_events(sender, message)
                self.protocol.on_message(sender, message)
            return

        def again() -> None:  # what the message waited for is here
            if not self._is_closed:
                try:
                    self._on_message(sender, message)
                except Exception as error:
                    self._mishandled(error, b"")

        admitted = guard.admitted(message, again)
        if admitted is not None:
            if self._contents is not None:
                self._tell_of_events(sender, admitted)
            self.protocol.on_message(sender, admitted)

    def _tell_of_events(self, sender: int, message: Message) -> None:
        assert self._contents is not None
        for event in self._contents.events(message):
            self._tell(Activity("heard", self.now(), message.label, sender, event.id))

    def _tell(self, activity: Activity) -> None:
        """Later, so that whatever the program does about it is no part of the protocol's call."""
        self._loop.call_soon(self._on_activity, activity)

    def _on_timer(self, timer: Timer) -> None:
        del self._timers[timer]
        self.command(lambda: self.protocol.on_timer(timer))

    def _on_send_failed(self, neighbour: int, message: Message) -> None:
        self.command(lambda: self.protocol.on_send_failed(neighbour, message))

    def _fail(self, error: Exception, datagram: bytes, restarts: bool) -> None:
        if not self._is_closed:
            where = traceback.extract_tb(error.__traceback__)[-1]
            text = f"{type(error).__name__}: {error} ({where.name}, line {where.lineno})"
            self._loop.call_soon(self._on_failure, Failure(text, datagram, restarts))
