"""802.11 DCF: how nodes share one channel without a coordinator.

Theory of operation
-------------------
A node that has a frame listens. If the medium is idle and stays so for DIFS, it sends; otherwise it draws a number of
slots and counts them down while the medium is idle, freezing while it is busy. After every transmission it counts down
once more before the next (post-backoff). A receiver locks on the first frame it hears in silence; what overlaps it may
destroy it (`interference`). While sending, a node hears nothing. Broadcasts are sent once. A unicast is acknowledged
after SIFS; without acknowledgement the contention window doubles and the frame is tried again, up to a limit; large
ones ask first (RTS/CTS). Bystanders who decode a frame stay silent for the time it reserves (NAV).

How it is computed
------------------
Cost must not depend on the number of slots, and little on the number of neighbours. Three observations make it so:

1. Per node it suffices to know until when its medium is busy (`busy_until`), the silence required after that (`defer`)
   and the slots left (`backoff`). The time of access follows: `busy_until + defer + backoff slots`, but not before
   the node has listened for DIFS itself (`listened`). Slots are accounted for only when an idle medium becomes busy:
   one subtraction, and only at neighbours with a backoff to freeze.
2. Activity of others only ever postpones an access. So a node keeps one entry in the event queue; when it fires early,
   it is put back at the time that now follows.
3. A transmission is sensed only after `SENSE_S`. A neighbour whose access falls into that time is committed to sending,
   and the two collide.

So a frame costs two events (start, end) and one short loop over its hearers at each.
"""

from collections.abc import Callable
from typing import Final

from roamcast.protocols.api import NOBODY, Listener, Message
from roamcast.seeds import Random
from roamcast.world.radio.dcf_settings import (
    ACK_BYTES,
    CTS_BYTES,
    RTS_BYTES,
    SENSE_S,
    TRIES_LONG,
    TRIES_SHORT,
    DcfSettings,
)
from roamcast.world.radio.interference import Interference
from roamcast.world.radio.medium import Medium
from roamcast.world.radio.station import DcfFrame, Station
from roamcast.world.scheduler import Scheduler
from roamcast.world.topology import Topology

ROUNDING_S: Final = 1e-9  # float error allowed when two instants should be the same


class DcfMedium(Medium):
    def __init__(
        self,
        scheduler: Scheduler,
        topology: Topology,
        random: Random,
        loss: float,
        frame_bytes_max: int,
        settings: DcfSettings,
        interference: Interference,
    ) -> None:
        super().__init__(scheduler, topology, random, loss, frame_bytes_max)
        self._interference = interference
        self._queue_frames = settings.queue_frames
        self._overhead_bytes = settings.overhead_bytes
        self._rts_threshold_bytes = settings.rts_threshold_bytes
        self._queue_lifetime_s = settings.queue_lifetime_s
        self._slot_s = settings.phy.slot_s
        self._sifs_s = settings.phy.sifs_s
        self._difs_s = settings.phy.difs_s
        self._window_min = settings.phy.window_min
        self._window_max = settings.phy.window_max
        self._broadcast_rate = settings.broadcast_rate
        self._data_rate = settings.data_rate
        self._control_rate = settings.control_rate
        self._backoff_after_timeout = settings.backoff_after_timeout
        # Where answers are awaited as 802.11 says, until their preamble should have arrived; else until their end.
        exact = settings.backoff_after_timeout
        self._ack_wait_s = settings.control_rate.preamble_s if exact else settings.control_rate.duration_s(ACK_BYTES)
        self._cts_wait_s = settings.control_rate.preamble_s if exact else settings.control_rate.duration_s(CTS_BYTES)
        self._window_extra = 1 if settings.window_inclusive else 0
        self._eifs_s = settings.extended_ifs_s
        self._ack_s = settings.control_rate.duration_s(ACK_BYTES)
        self._cts_s = settings.control_rate.duration_s(CTS_BYTES)
        rts_s = settings.control_rate.duration_s(RTS_BYTES)
        self._controls = {
            "RTS": (RTS_BYTES, rts_s),
            "CTS": (CTS_BYTES, self._cts_s),
            "ACK": (ACK_BYTES, self._ack_s),
        }  # size and airtime
        self._stations = [Station(self, node, self._difs_s, self._window_min) for node in range(topology.nodes)]

    # -- from the protocol ---------------------------------------------------------------------------------------

    def attach(self, node: int, listener: Listener | None) -> None:
        self._stations[node].listener = listener

    def transmit(self, sender: int, receiver: int, message: Message, size: int) -> None:
        station = self._stations[sender]
        if station.head is not None and len(station.queue) + 1 >= self._queue_frames:
            self._fail("queue")  # silently, as in ns-2: it says nothing about the neighbour
            return
        rate, nav_s = self._broadcast_rate, 0.0
        if receiver != NOBODY:
            rate, nav_s = self._data_rate, self._sifs_s + self._ack_s
        size += self._overhead_bytes
        airtime_s = rate.duration_s(size)
        frame = DcfFrame(
            medium=self,
            sender=sender,
            receiver=receiver,
            message=message,
            label=self.label_of(message),
            size=size,
            airtime_s=airtime_s,
            rate=rate,
            nav_s=nav_s,
        )
        if station.head is None:
            station.head = frame
            self._request_access(station)
        else:
            frame.queued_s = self.scheduler.now
            station.queue.append(frame)

    def silence(self, node: int) -> None:
        self._stations[node].silence(self._window_min)

    def receive_s(self, node: int) -> float:
        station = self._stations[node]
        now = self.scheduler.now
        return station.receive_s - (station.lock.end - now if station.lock is not None else 0.0)

    def backlog(self, node: int) -> int:
        station = self._stations[node]
        return 0 if station.head is None else 1 + len(station.queue)

    def when_idle(self, node: int, call: Callable[[], None]) -> None:
        self._stations[node].on_idle = call

    # -- access to the medium ------------------------------------------------------------------------------------

    def _request_access(self, station: Station) -> None:
        """The head of the station's queue wants the air."""
        if station.waiting:
            return
        now = self.scheduler.now
        if station.busy_until > now and not station.backoff:
            self._draw_backoff(station)
        station.waiting = station.counts = True
        due = station.busy_until + station.defer + station.backoff * self._slot_s
        listened = station.listened = now + self._difs_s
        self.scheduler.put(due if due > listened else listened, station)

    def _draw_backoff(self, station: Station) -> None:
        # int(random() * n) rather than randrange(n): several times faster, and the bias is below 1e-13.
        station.backoff = int(self.draw() * (station.window + self._window_extra))
        if station.backoff:
            station.counts = True

    def access(self, station: Station) -> None:
        if station.committed:
            station.committed = False
        else:
            due = station.busy_until + station.defer + station.backoff * self._slot_s
            if due > self.scheduler.now + ROUNDING_S:
                self.scheduler.put(due, station)
                return
        station.waiting = station.counts = False
        station.backoff = 0
        frame = station.head
        if frame is None or station.exchange is not None:
            return
        if frame.receiver == NOBODY:
            self._start(frame)
        elif frame.bytes >= self._rts_threshold_bytes:
            station.exchange = frame
            self._send_rts(frame)
        else:
            station.exchange = frame
            self._send_data(frame)

    def _freeze(self, station: Station, now: float) -> None:
        """An idle medium becomes busy at `station`: account for the slots that passed."""
        since = station.busy_until + station.defer
        due = since + station.backoff * self._slot_s
        if due < station.listened:
            due = station.listened
        if station.waiting and due <= now + SENSE_S:
            station.committed = True
        elif station.waiting and not station.backoff:
            self._draw_backoff(station)  # it was about to send after DIFS, and another station was first
        elif now > since:
            passed = int((now - since) / self._slot_s + 1e-6)
            if station.backoff > passed:
                station.backoff -= passed
            else:
                station.backoff = 0
                station.counts = station.waiting

    # -- on the air ----------------------------------------------------------------------------------------------

    def _begin(self, frame: DcfFrame) -> Station:
        """What the beginning of a frame means for itself and its sender, however its hearers receive."""
        now = self.scheduler.now
        end = now + frame.airtime_s
        frame.start = now
        frame.end = end
        frame.is_on_air = True
        self.scheduler.put(end, frame)
        sender = self._stations[frame.sender]
        if sender.topology_version != self.topology.version:
            self._look_around(sender)
        frame.hearers = sender.heard_by
        frame.stations = sender.hearers
        if sender.lock is not None:
            sender.receive_s -= sender.lock.end - now
            sender.lock = None
            self._half_duplex += 1
        sender.sending_until = end
        sender.defer = self._difs_s
        if end > sender.busy_until:
            sender.busy_until = end
        return sender

    def _start(self, frame: DcfFrame) -> None:
        """The hot path: a frame begins, and every station in range notices."""
        sender = self._begin(frame)
        now, end = frame.start, frame.end
        if end > sender.air_until:
            sender.air_until = end
        eifs_s, airtime_s = self._eifs_s, frame.airtime_s
        collisions = halved = 0
        for station in sender.hearers:
            if station.air_until <= now:
                station.lock = frame
                station.receive_s += airtime_s
                station.noise = None
                station.air_until = end
                if station.busy_until <= now:
                    if station.counts:
                        self._freeze(station, now)
                    station.busy_until = end
                elif end > station.busy_until:
                    station.busy_until = end
            else:
                _disturb(station, frame)
                if station.sending_until > now:
                    halved += 1
                else:
                    collisions += 1
        for station in sender.sensers:
            if station.air_until <= now:
                station.air_until = end
                if station.busy_until <= now:
                    if station.counts:
                        self._freeze(station, now)
                    station.busy_until = end
                elif end > station.busy_until:
                    station.busy_until = end
                station.defer = eifs_s  # it will not understand what it senses
            else:
                _disturb(station, frame)
        self._collisions += collisions
        self._half_duplex += halved
        self._count(frame)

    def _look_around(self, station: Station) -> None:
        """Something has changed in the network, perhaps here."""
        station.topology_version = self.topology.version
        heard_by, sensed_by = self.topology.hear[station.node], self.topology.sense[station.node]
        if station.heard_by is not heard_by:  # the topology replaces its lists when they change
            station.heard_by = heard_by
            station.hearers = [self._stations[node] for node in heard_by]
        if station.sensed_by is not sensed_by:
            station.sensed_by = sensed_by
            station.sensers = [self._stations[node] for node in sensed_by]

    def _understood(self, frame: DcfFrame, station: Station) -> bool:
        """Whether `station`, which had locked on `frame`, got it whole; sets the silence it must keep now."""
        if station.noise is not None and not self._interference.survives(frame, station.node, station.noise):
            self._collisions += 1
        elif self.loss and self.draw() < self.loss:
            self._fail("loss")
        else:
            station.defer = self._difs_s
            return True
        station.defer = self._eifs_s
        return False

    def end_broadcast(self, frame: DcfFrame) -> None:
        frame.is_on_air = False
        sender = frame.sender
        message = frame.message
        assert message is not None
        self._finish(self._stations[sender])
        lossy = self.loss > 0
        difs_s = self._difs_s
        receptions = 0
        for station in frame.stations:
            if station.lock is frame:
                station.lock = None
                if not lossy and station.noise is None:
                    station.defer = difs_s
                elif not self._understood(frame, station):
                    continue
                receptions += 1
                listener = station.listener
                if listener is not None:
                    listener.on_message(sender, message)
        self.receptions += receptions

    def _finish(self, station: Station) -> None:
        """The station's head-of-queue frame is dealt with: post-backoff, then the next."""
        station.head = self._next_frame(station) if station.queue else None
        station.exchange = None
        station.window = self._window_min
        self._draw_backoff(station)
        if station.head is not None:
            self._request_access(station)
        elif station.on_idle is not None:
            call = station.on_idle
            station.on_idle = None
            call()

    def _next_frame(self, station: Station) -> DcfFrame | None:
        """The oldest frame of the queue that has not waited too long."""
        queue = station.queue
        queued_since = self.scheduler.now - self._queue_lifetime_s
        while queue:
            frame = queue.pop(0)
            if frame.queued_s >= queued_since:
                return frame
            self._fail("queue-lifetime")
        return None

    # -- unicast: RTS, CTS, data, ACK ----------------------------------------------------------------------------

    def _send_rts(self, data: DcfFrame) -> None:
        data.tries_short += 1
        nav_s = self._sifs_s + self._cts_s + self._sifs_s + data.airtime_s + data.nav_s
        rts = self._control(data.sender, data.receiver, "RTS", nav_s)
        self._start(rts)
        self._stations[data.sender].answer_by = rts.end + self._sifs_s + self._cts_wait_s + self._slot_s

    def _send_data(self, data: DcfFrame) -> None:
        if data.bytes >= self._rts_threshold_bytes:
            data.tries_long += 1
        else:
            data.tries_short += 1
        self._start(data)
        self._stations[data.sender].answer_by = data.end + self._sifs_s + self._ack_wait_s + self._slot_s

    def end_unicast(self, frame: DcfFrame) -> None:
        frame.is_on_air = False
        receiver = self._stations[frame.receiver]
        reserved_until = self.scheduler.now + frame.nav_s
        lossy = self.loss > 0
        difs_s = self._difs_s
        goes_on = False
        for station in frame.stations:
            if station.lock is frame:
                station.lock = None
                if not lossy and station.noise is None:
                    station.defer = difs_s
                elif not self._understood(frame, station):
                    continue
                if station is receiver:
                    goes_on = self._answer(station, frame)
                elif reserved_until > station.busy_until:
                    station.busy_until = reserved_until
        if not goes_on:
            self._break_off(frame)

    def _answer(self, station: Station, frame: DcfFrame) -> bool:
        """`station` is the receiver of `frame` and understood it; returns whether the exchange goes on."""
        now = self.scheduler.now
        node = station.node
        if frame.message is not None:
            ack = self._control(node, frame.sender, "ACK", 0.0)
            self.scheduler.put(now + self._sifs_s, ack)
            if frame.taken_by_life != station.life:  # else it is a repetition: our ACK was lost
                frame.taken_by_life = station.life
                listener = station.listener
                if listener is not None:
                    listener.on_message(frame.sender, frame.message)
        elif frame.label == "RTS":
            if station.busy_until > now + ROUNDING_S:
                return False  # another station has reserved the channel
            nav_s = frame.nav_s - self._sifs_s - self._cts_s
            cts = self._control(node, frame.sender, "CTS", nav_s)
            self.scheduler.put(now + self._sifs_s, cts)
        elif (data := station.exchange) is not None and data.receiver == frame.sender:
            if frame.label == "CTS":
                self.scheduler.put(now + self._sifs_s, data)
            else:
                self._finish(station)
        return True

    def _control(self, sender: int, receiver: int, label: str, nav_s: float) -> DcfFrame:
        """An RTS, a CTS or an acknowledgement."""
        size, airtime_s = self._controls[label]
        return DcfFrame(
            medium=self,
            sender=sender,
            receiver=receiver,
            message=None,
            label=label,
            size=size,
            airtime_s=airtime_s,
            rate=self._control_rate,
            nav_s=nav_s,
        )

    def go_on(self, frame: DcfFrame) -> None:
        """SIFS has passed since the frame that `frame` answers."""
        station = self._stations[frame.sender]
        if frame.message is not None:
            if station.exchange is frame:
                self._send_data(frame)
        elif station.sending_until <= self.scheduler.now and self.topology.is_up(frame.sender):
            self._start(frame)
        else:
            self._break_off(frame)

    def _break_off(self, frame: DcfFrame) -> None:
        """`frame` was lost or not sent, so its exchange failed: the station that began it will time out."""
        asked = frame.message is not None or frame.label == "RTS"
        station = self._stations[frame.sender if asked else frame.receiver]
        data = station.exchange
        if data is not None and data.receiver == (frame.receiver if asked else frame.sender):
            now = self.scheduler.now  # an answer that has begun is awaited to its end
            self.scheduler.at(station.answer_by if station.answer_by > now else now, self._no_answer, data)

    def _no_answer(self, data: DcfFrame) -> None:
        station = self._stations[data.sender]
        if station.exchange is not data:
            return  # the node went down meanwhile
        now = self.scheduler.now
        if self._backoff_after_timeout and station.busy_until + station.defer < now + self._difs_s:
            station.busy_until = now
            station.defer = self._difs_s
        if data.tries_short >= TRIES_SHORT or data.tries_long >= TRIES_LONG:
            self._fail("retries")
            self._finish(station)
            assert data.message is not None
            listener = station.listener
            if listener is not None:
                listener.on_send_failed(data.receiver, data.message)
            return
        station.exchange = None
        station.window = min(2 * station.window + 1, self._window_max)
        self._draw_backoff(station)
        self._request_access(station)


def _disturb(station: Station, frame: DcfFrame) -> None:
    """`frame` begins where the air is full already."""
    if station.lock is not None:
        if station.noise is None:
            station.noise = [frame]
        else:
            station.noise.append(frame)
    if frame.end > station.air_until:
        station.air_until = frame.end
    if frame.end > station.busy_until:
        station.busy_until = frame.end
