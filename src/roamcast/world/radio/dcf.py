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

1. Per node it suffices to know until when its medium is busy (`busy_until`), the silence required after that (`_defer`)
   and the slots left (`_backoff`). The time of access follows: `busy_until + defer + backoff slots`, but not before
   the node has listened for DIFS itself (`_listened`). Slots are accounted for only when an idle medium becomes busy:
   one subtraction, and only at neighbours with a backoff to freeze.
2. Activity of others only ever postpones an access. So a node keeps one entry in the event queue; when it fires early,
   it is put back at the time that now follows.
3. A transmission is sensed only after `SENSE_S`. A neighbour whose access falls into that time is committed to sending,
   and the two collide.

So a frame costs two events (start, end) and one short loop over its hearers at each.
"""

from collections import deque
from typing import Final

from roamcast.protocols.api import NOBODY, Message
from roamcast.seeds import Random
from roamcast.world.radio.dcf_settings import (
    ACK_BYTES,
    CTS_BYTES,
    DIFS_S,
    PREAMBLE_S,
    RTS_BYTES,
    SENSE_S,
    SIFS_S,
    SLOT_S,
    TRIES_LONG,
    TRIES_SHORT,
    WINDOW_MAX,
    WINDOW_MIN,
    DcfSettings,
)
from roamcast.world.radio.interference import Interference
from roamcast.world.radio.medium import Frame, Medium
from roamcast.world.scheduler import Scheduler
from roamcast.world.topology import Topology

ROUNDING_S: Final = 1e-9  # float error allowed when two instants should be the same
_NO_OVERLAPS: Final[dict[int, list[Frame]]] = {}


class DcfMedium(Medium):
    def __init__(
        self,
        scheduler: Scheduler,
        topology: Topology,
        random: Random,
        loss: float,
        settings: DcfSettings,
        interference: Interference,
    ) -> None:
        super().__init__(scheduler, topology, random, loss)
        self._interference = interference
        self._queue_frames = settings.queue_frames
        self._overhead_bytes = settings.overhead_bytes
        self._rts_threshold_bytes = settings.rts_threshold_bytes
        self._broadcast_rate_bps = settings.broadcast_rate_bps
        self._data_rate_bps = settings.data_rate_bps
        self._control_rate_bps = settings.control_rate_bps
        self._window_extra = 1 if settings.window_inclusive else 0
        self._eifs_s = settings.extended_ifs_s
        self._ack_s = PREAMBLE_S + ACK_BYTES * 8 / settings.control_rate_bps
        self._cts_s = PREAMBLE_S + CTS_BYTES * 8 / settings.control_rate_bps
        nodes = topology.nodes
        self._air_until = [0.0] * nodes  # a signal, or the node's own, fills its air until then
        self._busy_until = [-1.0] * nodes  # the same, or a reservation heard
        self._defer = [DIFS_S] * nodes  # silence required after busy_until
        self._sending_until = [0.0] * nodes
        self._backoff = [0] * nodes  # slots left to count down
        self._window = [WINDOW_MIN] * nodes
        self._lock: list[Frame | None] = [None] * nodes  # the frame this node is receiving
        self._queue: list[deque[Frame]] = [deque() for _ in range(nodes)]
        self._waiting = [False] * nodes  # an access entry is in the event queue
        self._listened = [0.0] * nodes  # with no backoff to count, it has listened for DIFS by then
        self._committed = [False] * nodes  # too late to sense what has just started
        self._exchange: list[Frame | None] = [None] * nodes  # unicast that waits for its CTS or ACK
        self._awaited = [0] * nodes  # counts answers waited for, so that a late timeout is recognised
        self._last_heard: list[dict[int, Frame]] = [{} for _ in range(nodes)]  # sender -> last unicast handed up

    # -- from the protocol ---------------------------------------------------------------------------------------

    def transmit(self, sender: int, receiver: int, message: Message, size: int) -> None:
        queue = self._queue[sender]
        if len(queue) >= self._queue_frames:
            self._fail("queue")
            if receiver != NOBODY:
                self.scheduler.at(self.scheduler.now, self._report_failure, (sender, receiver, message))
            return
        frame = Frame(sender, receiver, message, message.label, size + self._overhead_bytes)
        rate = self._broadcast_rate_bps if receiver == NOBODY else self._data_rate_bps
        frame.rate_bps = rate
        frame.airtime_s = PREAMBLE_S + frame.bytes * 8 / rate
        if receiver != NOBODY:
            frame.nav_s = SIFS_S + self._ack_s
        queue.append(frame)
        if len(queue) == 1:
            self._request_access(sender)

    def silence(self, node: int) -> None:
        self._queue[node].clear()
        self._exchange[node] = None
        self._awaited[node] += 1
        self._lock[node] = None
        self._backoff[node] = 0
        self._window[node] = WINDOW_MIN
        self._last_heard[node].clear()

    def _report_failure(self, failure: tuple[int, int, Message]) -> None:
        sender, receiver, message = failure
        listener = self.listeners[sender]
        if listener is not None:
            listener.on_send_failed(receiver, message)

    # -- access to the medium ------------------------------------------------------------------------------------

    def _request_access(self, node: int) -> None:
        """The head of the node's queue wants the air."""
        if self._waiting[node]:
            return
        now = self.scheduler.now
        busy_until = self._busy_until[node]
        if busy_until > now and not self._backoff[node]:
            self._draw_backoff(node)
        self._waiting[node] = True
        due = busy_until + self._defer[node] + self._backoff[node] * SLOT_S
        listened = self._listened[node] = now + DIFS_S
        self.scheduler.at(due if due > listened else listened, self._access, node)

    def _draw_backoff(self, node: int) -> None:
        # int(random() * n) rather than randrange(n): several times faster, and the bias is below 1e-13.
        self._backoff[node] = int(self.random.random() * (self._window[node] + self._window_extra))

    def _access(self, node: int) -> None:
        if self._committed[node]:
            self._committed[node] = False
        else:
            due = self._busy_until[node] + self._defer[node] + self._backoff[node] * SLOT_S
            if due > self.scheduler.now + ROUNDING_S:
                self.scheduler.at(due, self._access, node)
                return
        self._waiting[node] = False
        self._backoff[node] = 0
        queue = self._queue[node]
        if not queue or self._exchange[node] is not None:
            return
        frame = queue[0]
        if frame.receiver == NOBODY:
            self._start(frame)
            self.scheduler.at(frame.end, self._end_broadcast, frame)
        elif frame.bytes >= self._rts_threshold_bytes:
            self._exchange[node] = frame
            self._send_rts(frame)
        else:
            self._exchange[node] = frame
            self._send_data(frame)

    def _freeze(self, node: int, now: float) -> None:
        """An idle medium becomes busy at `node`: account for the slots that passed."""
        since = self._busy_until[node] + self._defer[node]
        due = since + self._backoff[node] * SLOT_S
        if due < self._listened[node]:
            due = self._listened[node]
        if self._waiting[node] and due <= now + SENSE_S:
            self._committed[node] = True
        elif self._waiting[node] and not self._backoff[node]:
            self._draw_backoff(node)  # it was about to send after DIFS, and somebody else was first
        elif now > since:
            passed = int((now - since) / SLOT_S + 1e-6)
            self._backoff[node] = max(0, self._backoff[node] - passed)

    # -- on the air ----------------------------------------------------------------------------------------------

    def _start(self, frame: Frame) -> None:
        """The hot path: a frame begins, and everybody in range notices."""
        now = self.scheduler.now
        sender = frame.sender
        end = now + frame.airtime_s
        frame.start = now
        frame.end = end
        frame.overlaps = None
        hearers = frame.hearers = self.topology.hear[sender]
        air_until, busy_until, lock = self._air_until, self._busy_until, self._lock
        backoff, waiting = self._backoff, self._waiting
        if lock[sender] is not None:
            lock[sender] = None
            self._fail("half-duplex")
        self._sending_until[sender] = end
        self._defer[sender] = DIFS_S
        if end > air_until[sender]:
            air_until[sender] = end
        if end > busy_until[sender]:
            busy_until[sender] = end
        for node in hearers:
            if air_until[node] <= now:
                if busy_until[node] <= now and (backoff[node] or waiting[node]):
                    self._freeze(node, now)
                lock[node] = frame
                air_until[node] = end
                if end > busy_until[node]:
                    busy_until[node] = end
            else:
                self._disturb(node, frame)
                self._fail("half-duplex" if self._sending_until[node] > now else "collision")
        for node in self.topology.sense[sender]:
            if air_until[node] <= now:
                if busy_until[node] <= now and (backoff[node] or waiting[node]):
                    self._freeze(node, now)
                self._defer[node] = self._eifs_s  # it will not understand what it senses
                air_until[node] = end
                if end > busy_until[node]:
                    busy_until[node] = end
            else:
                self._disturb(node, frame)
        self._count(frame)

    def _disturb(self, node: int, frame: Frame) -> None:
        """`frame` begins where the air is full already."""
        locked = self._lock[node]
        if locked is not None:
            if locked.overlaps is None:
                locked.overlaps = {}
            locked.overlaps.setdefault(node, []).append(frame)
        if frame.end > self._air_until[node]:
            self._air_until[node] = frame.end
        if frame.end > self._busy_until[node]:
            self._busy_until[node] = frame.end

    def _understood(self, frame: Frame, node: int) -> bool:
        """Whether `node`, which had locked on `frame`, got it whole; sets the silence it must keep now."""
        reason = ""
        if frame.overlaps is not None:
            others = frame.overlaps.get(node)
            if others is not None and not self._interference.survives(frame, node, others):
                reason = "collision"
        if not reason and self.loss and self.random.random() < self.loss:
            reason = "loss"
        if reason:
            self._fail(reason)
            self._defer[node] = self._eifs_s
            return False
        self._defer[node] = DIFS_S
        return True

    def _end_broadcast(self, frame: Frame) -> None:
        sender = frame.sender
        message = frame.message
        assert message is not None
        self._finish(sender)
        lock, listeners, defer = self._lock, self.listeners, self._defer
        overlaps = frame.overlaps or _NO_OVERLAPS
        lossy = self.loss > 0
        receptions = 0
        for node in frame.hearers:
            if lock[node] is frame:
                lock[node] = None
                if lossy or node in overlaps:
                    if not self._understood(frame, node):
                        continue
                else:
                    defer[node] = DIFS_S
                receptions += 1
                listener = listeners[node]
                if listener is not None:
                    listener.on_message(sender, message)
        self.receptions += receptions

    def _finish(self, node: int) -> None:
        """The node's head-of-queue frame is dealt with: post-backoff, then the next."""
        queue = self._queue[node]
        if queue:
            queue.popleft()
        self._exchange[node] = None
        self._window[node] = WINDOW_MIN
        self._draw_backoff(node)
        if queue:
            self._request_access(node)

    # -- unicast: RTS, CTS, data, ACK ----------------------------------------------------------------------------

    def _send_rts(self, data: Frame) -> None:
        data.tries_short += 1
        rts = self._control(data.sender, data.receiver, "RTS", RTS_BYTES)
        rts.nav_s = SIFS_S + self._cts_s + SIFS_S + data.airtime_s + data.nav_s
        self._start(rts)
        self.scheduler.at(rts.end, self._end_unicast, rts)
        self._await_answer(data.sender, rts.end + SIFS_S + self._cts_s + SLOT_S)

    def _send_data(self, data: Frame) -> None:
        if data.bytes >= self._rts_threshold_bytes:
            data.tries_long += 1
        else:
            data.tries_short += 1
        self._start(data)
        self.scheduler.at(data.end, self._end_unicast, data)
        self._await_answer(data.sender, data.end + SIFS_S + self._ack_s + SLOT_S)

    def _control(self, sender: int, receiver: int, label: str, size: int) -> Frame:
        frame = Frame(sender, receiver, None, label, size)
        frame.rate_bps = self._control_rate_bps
        frame.airtime_s = PREAMBLE_S + size * 8 / frame.rate_bps
        return frame

    def _await_answer(self, node: int, until: float) -> None:
        self._awaited[node] += 1
        self.scheduler.at(until, self._no_answer, (node, self._awaited[node]))

    def _end_unicast(self, frame: Frame) -> None:
        now = self.scheduler.now
        lock = self._lock
        for node in frame.hearers:
            if lock[node] is frame:
                lock[node] = None
                if not self._understood(frame, node):
                    continue
                if node == frame.receiver:
                    self._answer(node, frame)
                elif now + frame.nav_s > self._busy_until[node]:
                    self._busy_until[node] = now + frame.nav_s

    def _answer(self, node: int, frame: Frame) -> None:
        """`node` is the receiver of `frame` and understood it."""
        now = self.scheduler.now
        if frame.message is not None:
            ack = self._control(node, frame.sender, "ACK", ACK_BYTES)
            self.scheduler.at(now + SIFS_S, self._send_control, ack)
            if self._last_heard[node].get(frame.sender) is not frame:  # a repetition means that our ACK was lost
                self._last_heard[node][frame.sender] = frame
                listener = self.listeners[node]
                if listener is not None:
                    listener.on_message(frame.sender, frame.message)
        elif frame.label == "RTS":
            if self._busy_until[node] <= now + ROUNDING_S:  # else somebody has reserved the air
                cts = self._control(node, frame.sender, "CTS", CTS_BYTES)
                cts.nav_s = frame.nav_s - SIFS_S - self._cts_s
                self.scheduler.at(now + SIFS_S, self._send_control, cts)
        elif (data := self._exchange[node]) is not None and data.receiver == frame.sender:
            self._awaited[node] += 1
            if frame.label == "CTS":
                self.scheduler.at(now + SIFS_S, self._send_after_cts, data)
            else:
                self._finish(node)

    def _send_control(self, frame: Frame) -> None:
        if self._sending_until[frame.sender] <= self.scheduler.now and self.topology.is_up(frame.sender):
            self._start(frame)
            self.scheduler.at(frame.end, self._end_unicast, frame)

    def _send_after_cts(self, data: Frame) -> None:
        if self._exchange[data.sender] is data:
            self._send_data(data)

    def _no_answer(self, awaited: tuple[int, int]) -> None:
        node, number = awaited
        data = self._exchange[node]
        if number != self._awaited[node] or data is None:
            return
        if data.tries_short >= TRIES_SHORT or data.tries_long >= TRIES_LONG:
            self._fail("retries")
            self._finish(node)
            assert data.message is not None
            listener = self.listeners[node]
            if listener is not None:
                listener.on_send_failed(data.receiver, data.message)
            return
        self._exchange[node] = None
        self._window[node] = min(2 * self._window[node] + 1, WINDOW_MAX)
        self._draw_backoff(node)
        self._request_access(node)
