"""The link layer over UDP: broadcasts without acknowledgement, unicasts that are acknowledged and retransmitted.

It gives a protocol over UDP what the 802.11 link gives it in the simulator.

- A broadcast goes to the neighbourhood once. The first one in a round of the event loop leaves at once; further small
  ones are collected and leave together at the end of the round, in as few datagrams as hold them. A node that has sent
  `DATAGRAMS_PER_WINDOW` datagrams within `WINDOW_S` collects until that time is over, or a datagram is full: at high
  rates a millisecond of patience saves most of the cost of an event, at both ends.
- A unicast goes to the endpoint from which its receiver was last heard. If that is unknown, or shared with other nodes,
  it goes to the neighbourhood, and only the receiver named in the header takes it. It is retransmitted, at doubling
  intervals, until its acknowledgement comes; after `ATTEMPTS_MAX` attempts the link gives up and says so. The first
  interval is twice what acknowledgements take: where nodes are slow, retransmissions would make them slower.
- To each neighbour, at most `UNICASTS_UNDER_WAY` wait for their acknowledgements at a time; others wait their turn. So
  acknowledgements of a busy neighbour are not so late that the link takes it for lost, and sends everything again. At
  most `QUEUE_MAX` wait their turn; further ones are dropped.
- From the third attempt on, a unicast goes to the neighbourhood as well, and so does the acknowledgement of a copy that
  came that way: the known endpoint may be out of date, or its port may be shared with a node that was not heard yet.
- A receiver acknowledges every copy and passes on the first. Sequence numbers start at the clock's nanoseconds, so a
  node that returns is not taken for a retransmission of its former life.
- A message larger than a frame travels in fragments (`protocols/fragments.py`). At most `FRAGMENTS_UNDER_WAY` of them
  wait for an acknowledgement at a time; broadcast fragments leave in bursts of as many, `BURST_PAUSE_S` apart, so that
  they do not overflow the receivers' sockets.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence

from roamcast.live.codec import (
    FRAME_BYTES_MAX,
    HEADER_BYTES,
    LENGTH_BYTES,
    Codec,
    Datagram,
    DatagramKind,
    DropReason,
    as_batch,
)
from roamcast.live.endpoints import Endpoint, HeardEndpoints
from roamcast.live.journal import Journal
from roamcast.protocols.api import NOBODY, Message
from roamcast.protocols.fragment import Fragment
from roamcast.protocols.fragments import MESSAGE_BYTES_MAX, Outbox, Reassembly
from roamcast.protocols.seen import SeenCache

ATTEMPTS_MAX = 4
ACKNOWLEDGEMENT_TIMEOUT_S = 0.04  # for the first attempt at least; doubles with each: a link gives up after 0.6 s,
ACKNOWLEDGEMENT_TIMEOUT_MAX_S = 0.4  # or where acknowledgements take long after 6 s
ANSWER_WEIGHT = 0.25  # of the newest acknowledgement in the mean of what they take
UNICASTS_UNDER_WAY = 64  # to one neighbour
QUEUE_MAX = 1024  # unicasts to all neighbours that wait their turn
FRAGMENTS_UNDER_WAY = 8
BURST_PAUSE_S = 0.001
WINDOW_S = 0.001
DATAGRAMS_PER_WINDOW = 2  # of broadcasts; full ones leave in any case


class _Unicast:
    """A unicast that waits for its acknowledgement."""

    def __init__(self, neighbour: int, message: Message, data: bytes) -> None:
        self.neighbour = neighbour
        self.message = message
        self.data = data
        self.attempts = 0
        self.sent_s = 0.0
        self.retry: asyncio.TimerHandle | None = None


class _Turns:
    """Unicasts to one neighbour: how many wait for their acknowledgement, and those that wait their turn."""

    def __init__(self) -> None:
        self.under_way = 0
        self.next: deque[tuple[int, _Unicast]] = deque()  # with their sequence numbers


class UdpLink:
    def __init__(
        self,
        address: int,
        codec: Codec,
        journal: Journal,
        neighbourhood: Sequence[Endpoint],
        *,
        life: int,
        first_sequence: int,
        transmit: Callable[[bytes, Sequence[Endpoint]], None],
        on_message: Callable[[int, Message], None],
        on_send_failed: Callable[[int, Message], None],
        prepare: Callable[[Message], Message] | None = None,  # makes what is encoded in place of a message
    ) -> None:
        self._prepare = prepare
        self.neighbours = HeardEndpoints()
        self._address = address
        self._codec = codec
        self._encode = codec.encode_message
        self._journal = journal
        self.neighbourhood = tuple(neighbourhood)  # where a broadcast goes
        self.everywhere: tuple[Endpoint, ...] = ()  # where nodes may be that were not heard yet, if that is more
        self.frame_bytes_max = FRAME_BYTES_MAX
        self._sequence = first_sequence
        self._transmit = transmit
        self._on_message = on_message
        self._on_send_failed = on_send_failed
        self._loop = asyncio.get_running_loop()
        self.waiting: dict[int, _Unicast] = {}  # by sequence: sent, not yet acknowledged
        self._turns: dict[int, _Turns] = {}  # by neighbour, as long as there is anything for it
        self._queued = 0  # unicasts that wait their turn
        self._received = SeenCache()
        self._answers_s = 0.0  # what acknowledgements have taken lately
        self._outbox = Outbox(life, FRAME_BYTES_MAX)
        self._fragments_under_way = 0
        self._batch: list[bytes] = []  # broadcasts that leave at the end of this round of the loop
        self._batch_bytes = 0
        self._is_collecting = False
        self._window_ends_s = 0.0
        self._left_in_window = 0  # datagrams
        self._single = codec.encode(Datagram(DatagramKind.BROADCAST, address))  # how broadcasts begin,
        self._several = codec.encode(Datagram(DatagramKind.BATCH, address))  # and batches
        self._pause: asyncio.TimerHandle | None = None  # after a burst of broadcast fragments
        self._reassembly = Reassembly(lambda reason: journal.frame_lost(DropReason(reason)))

    @property
    def backlog(self) -> int:
        """Unicasts that wait for their turn or their acknowledgement, and fragments that have not been sent."""
        return len(self.waiting) + self._queued + len(self._outbox)

    def broadcast(self, message: Message) -> None:
        self._transfer(NOBODY, message)

    def send(self, neighbour: int, message: Message) -> None:
        if neighbour != NOBODY:  # which would be a broadcast
            self._transfer(neighbour, message)

    def announce(self, data: bytes) -> None:
        """To all neighbours: a datagram that is none of the protocol's."""
        self._transmit(data, self.everywhere or self.neighbourhood)

    def close(self) -> None:
        self._flush_batch()
        for unicast in self.waiting.values():
            if unicast.retry is not None:
                unicast.retry.cancel()
        self.waiting.clear()
        self._turns.clear()
        self._queued = 0
        if self._pause is not None:
            self._pause.cancel()

    @property
    def broadcast_s(self) -> float:
        """When a broadcast last left, on the monotonic clock, to within `WINDOW_S`."""
        return self._window_ends_s - WINDOW_S

    def beacon(self, endpoints: Sequence[Endpoint]) -> None:
        """Tells those who hear one of these endpoints that this node is here."""
        self._transmit(self._codec.encode(Datagram(DatagramKind.BEACON, self._address)), endpoints)

    def limit_frames(self, frame_bytes_max: int) -> None:
        """From now on larger messages travel in fragments."""
        self.frame_bytes_max = frame_bytes_max
        self._outbox.limit_frames(frame_bytes_max)

    def receive(
        self,
        data: bytes,
        source: Endpoint,
        group: Endpoint | None,
        sealed_by: int | None,
        on_heard: Callable[[int, Endpoint, Endpoint | None], None],
    ) -> tuple[int, Sequence[Message]]:
        """Takes a datagram that was sent to `group`, or to this node alone; `sealed_by` is the member whose seal was
        on it, if the network has a key. `on_heard` is told who sent it, if it is of this network. Returns the sender,
        and its messages, which the host passes to `pass_on` one by one, so that a bad one does not take the others
        with it."""
        datagram = self._codec.decode(data)
        if not isinstance(datagram, Datagram):
            self._journal.frame_lost(datagram)
            return NOBODY, ()
        sender = datagram.sender
        if sealed_by is not None and sealed_by != sender:
            self._journal.frame_lost(DropReason.FORGED)
            return NOBODY, ()
        if not self.neighbours.is_at(sender, source, group):
            on_heard(sender, source, group)
            if sender == self._address:
                self._journal.frame_lost(DropReason.OWN_ADDRESS)
                return NOBODY, ()
            self.neighbours.learn(sender, source, group)
        if datagram.message is not None and datagram.kind == DatagramKind.BROADCAST:
            return sender, (datagram.message,)
        if datagram.batch:
            return sender, datagram.batch
        if datagram.message is None:
            if datagram.kind == DatagramKind.ANNOUNCEMENT:
                self._journal.frames_received += 1
            elif datagram.kind == DatagramKind.ACKNOWLEDGEMENT:
                self._acknowledged(datagram)
        elif datagram.receiver != self._address:
            self._journal.frame_lost(DropReason.OVERHEARD)
        else:
            is_new = self._received.add(sender << 64 | datagram.sequence)
            acknowledgement = Datagram(DatagramKind.ACKNOWLEDGEMENT, self._address, sender, datagram.sequence)
            is_in_doubt = not is_new and (group is not None or "%" not in source[0])
            self._to_neighbour(sender, self._codec.encode(acknowledgement), is_in_doubt=is_in_doubt)
            if is_new:
                return sender, (datagram.message,)
            self._journal.frame_lost(DropReason.DUPLICATE)
        return sender, ()

    def pass_on(self, sender: int, message: Message) -> None:
        """Hands a message that `receive` returned to the host, once it is whole."""
        self._journal.frames_received += 1
        if type(message) is not Fragment:
            self._on_message(sender, message)
            return
        body = self._reassembly.add(sender, message, self._loop.time())
        if body is None:
            return
        whole = self._codec.decode_message(body)
        if whole is None or type(whole) is Fragment:
            self._journal.frame_lost(DropReason.MALFORMED_BODY)
        else:
            self._on_message(sender, whole)

    def _transfer(self, receiver: int, message: Message) -> None:
        body = self._encode(message if self._prepare is None else self._prepare(message))
        if len(body) <= self.frame_bytes_max:
            self._transfer_frame(receiver, message, body)
        elif len(body) > MESSAGE_BYTES_MAX:
            self._journal.frame_lost(DropReason.OVERSIZED)  # which says nothing about the neighbour
        elif self._outbox.add(receiver, message, body):
            self._feed()
        else:
            self._journal.frame_lost(DropReason.QUEUE)

    def _transfer_frame(self, receiver: int, message: Message, body: bytes) -> None:
        if receiver == NOBODY:
            self._broadcast_frame(body)
            self._journal.frame_sent(message, HEADER_BYTES + len(body))
            return
        if self._queued >= QUEUE_MAX and type(message) is not Fragment:  # of which few are under way
            self._journal.frame_lost(DropReason.QUEUE)
            return
        self._flush_batch()  # what was broadcast before arrives before
        sequence = self._sequence
        self._sequence += 1
        data = self._codec.encode(Datagram(DatagramKind.UNICAST, self._address, receiver, sequence), body)
        unicast = _Unicast(receiver, message, data)
        turns = self._turns.get(receiver)
        if turns is None:
            turns = self._turns[receiver] = _Turns()
        if turns.under_way < UNICASTS_UNDER_WAY:
            turns.under_way += 1
            self.waiting[sequence] = unicast
            self._attempt(sequence)
        else:
            turns.next.append((sequence, unicast))
            self._queued += 1

    def _settled(self, sequence: int) -> None:
        """A unicast is acknowledged or given up: the next one to that neighbour leaves."""
        neighbour = self.waiting.pop(sequence).neighbour
        turns = self._turns[neighbour]
        if turns.next:
            following, unicast = turns.next.popleft()
            self._queued -= 1
            self.waiting[following] = unicast
            self._attempt(following)
        else:
            turns.under_way -= 1
            if not turns.under_way:
                del self._turns[neighbour]

    def _broadcast_frame(self, body: bytes) -> None:
        if self._is_collecting:
            self._collect(body)
            return
        self._is_collecting = True
        wait_s = self._wait_s()
        if wait_s == 0.0:
            self._transmit(self._single + body, self.neighbourhood)
            self._loop.call_soon(self._end_round)
        else:
            self._loop.call_later(wait_s, self._end_round)
            self._collect(body)

    def _collect(self, body: bytes) -> None:
        size_bytes = LENGTH_BYTES + len(body)
        if self._batch_bytes + size_bytes > self.frame_bytes_max:
            self._flush_batch()
        self._batch.append(body)
        self._batch_bytes += size_bytes

    def _wait_s(self) -> float:
        """How long a datagram that is not full must wait; 0: it leaves now, and counts."""
        now_s = time.monotonic()
        if now_s >= self._window_ends_s:
            self._window_ends_s = now_s + WINDOW_S
            self._left_in_window = 0
        elif self._left_in_window >= DATAGRAMS_PER_WINDOW:
            return self._window_ends_s - now_s
        self._left_in_window += 1
        return 0.0

    def _end_round(self) -> None:
        """Sends what was collected. While there is something in every round, all of it is collected."""
        if not self._batch:
            self._is_collecting = False
            return
        wait_s = self._wait_s()
        if wait_s == 0.0:
            self._flush_batch()
            self._loop.call_soon(self._end_round)
        else:
            self._loop.call_later(wait_s, self._end_round)

    def _flush_batch(self) -> None:
        bodies, self._batch, self._batch_bytes = self._batch, [], 0
        if len(bodies) == 1:
            self._transmit(self._single + bodies[0], self.neighbourhood)
        elif bodies:
            self._transmit(self._several + as_batch(bodies), self.neighbourhood)

    def _feed(self) -> None:
        """Sends the fragments that may leave now."""
        burst = 0
        while self._pause is None and self._fragments_under_way < FRAGMENTS_UNDER_WAY:
            following = self._outbox.next()
            if following is None:
                return
            receiver, fragment = following
            if receiver != NOBODY:
                self._fragments_under_way += 1
            elif (burst := burst + 1) == FRAGMENTS_UNDER_WAY:
                self._pause = self._loop.call_later(BURST_PAUSE_S, self._end_pause)
            self._transfer_frame(receiver, fragment, self._codec.encode_message(fragment))

    def _end_pause(self) -> None:
        self._pause = None
        self._feed()

    def _acknowledged(self, datagram: Datagram) -> None:
        unicast = self.waiting.get(datagram.sequence)
        if datagram.receiver == self._address and unicast is not None and unicast.neighbour == datagram.sender:
            self._settled(datagram.sequence)
            if unicast.retry is not None:
                unicast.retry.cancel()
            took_s = self._loop.time() - unicast.sent_s  # since the first attempt: longer than needed, if it was lost
            self._answers_s += ANSWER_WEIGHT * (min(took_s, ACKNOWLEDGEMENT_TIMEOUT_MAX_S) - self._answers_s)
            if type(unicast.message) is Fragment:
                self._fragments_under_way -= 1
                self._feed()

    def _attempt(self, sequence: int) -> None:
        unicast = self.waiting[sequence]
        if unicast.attempts == ATTEMPTS_MAX:
            self._settled(sequence)
            self._fail(unicast.neighbour, unicast.message)
            return
        first_s = min(max(ACKNOWLEDGEMENT_TIMEOUT_S, 2 * self._answers_s), ACKNOWLEDGEMENT_TIMEOUT_MAX_S)
        timeout_s = first_s * 2**unicast.attempts
        unicast.sent_s = unicast.sent_s or self._loop.time()
        unicast.attempts += 1
        unicast.retry = self._loop.call_later(timeout_s, self._attempt, sequence)
        self._journal.frame_sent(unicast.message, len(unicast.data))
        self._to_neighbour(unicast.neighbour, unicast.data, is_in_doubt=unicast.attempts > 2)

    def _fail(self, neighbour: int, message: Message) -> None:
        whole: Message | None = message
        if type(message) is Fragment:
            self._fragments_under_way -= 1
            whole = self._outbox.failed(message)
            self._feed()
        if whole is not None:
            self._journal.send_failed()
            self._on_send_failed(neighbour, whole)

    def _to_neighbour(self, neighbour: int, data: bytes, *, is_in_doubt: bool) -> None:
        endpoint = self.neighbours.endpoint(neighbour)
        if endpoint is None:
            self._transmit(data, self.neighbourhood)
        elif is_in_doubt:
            self._transmit(data, (endpoint, *(each for each in self.neighbourhood if each != endpoint)))
        else:
            self._transmit(data, (endpoint,))
