"""The link layer over UDP: broadcasts that nobody acknowledges, unicasts that are acknowledged and retried.

It gives a protocol over UDP what the 802.11 link gives it in the simulator.

- A broadcast goes to the neighbourhood once.
- A unicast goes to the endpoint from which its receiver was last heard. If that is unknown, or not its alone, it goes
  to the neighbourhood, and only the receiver named in the header takes it. It is repeated, at doubling intervals, until
  its acknowledgement comes; after `ATTEMPTS_MAX` attempts the link gives up and says so.
- Repetitions, and acknowledgements of repetitions, go to the neighbourhood as well: what we know of the endpoint may be
  out of date, or its port may be shared with a node that we have not heard yet.
- A receiver acknowledges every copy and passes on the first. Sequence numbers start at the clock's nanoseconds, so that
  a node that returns is not taken for a repetition of its former life.
"""

import asyncio
from collections.abc import Callable, Sequence

from roamcast.live.codec import DATAGRAM_BYTES_MAX, Codec, Datagram, Drop, Frame
from roamcast.live.endpoints import Endpoint, Neighbours
from roamcast.live.journal import Journal
from roamcast.protocols.api import Message
from roamcast.protocols.seen import SeenCache

ATTEMPTS_MAX = 4
ACKNOWLEDGEMENT_TIMEOUT_S = 0.04  # for the first attempt; doubles with each: a link gives up after 0.6 s


class _Unicast:
    """A unicast that waits for its acknowledgement."""

    def __init__(self, neighbour: int, message: Message, data: bytes) -> None:
        self.neighbour = neighbour
        self.message = message
        self.data = data
        self.attempts = 0
        self.retry: asyncio.TimerHandle | None = None


class Link:
    def __init__(
        self,
        address: int,
        codec: Codec,
        journal: Journal,
        neighbourhood: Sequence[Endpoint],
        *,
        first_sequence: int,
        transmit: Callable[[bytes, Endpoint], None],
        on_message: Callable[[int, Message], None],
        on_send_failed: Callable[[int, Message], None],
    ) -> None:
        self.neighbours = Neighbours()
        self._address = address
        self._codec = codec
        self._journal = journal
        self._neighbourhood = tuple(neighbourhood)
        self._sequence = first_sequence
        self._transmit = transmit
        self._on_message = on_message
        self._on_send_failed = on_send_failed
        self._loop = asyncio.get_running_loop()
        self.waiting: dict[int, _Unicast] = {}  # by sequence: sent, not yet acknowledged
        self._received = SeenCache()

    def broadcast(self, message: Message) -> None:
        data = self._codec.encode(Datagram(Frame.BROADCAST, self._address, message=message))
        if len(data) > DATAGRAM_BYTES_MAX:
            self._journal.frame_lost(Drop.OVERSIZED)
            return
        self._journal.frame_sent(message, len(data))
        self._to_neighbourhood(data)

    def send(self, neighbour: int, message: Message) -> None:
        sequence = self._sequence
        self._sequence += 1
        data = self._codec.encode(Datagram(Frame.UNICAST, self._address, neighbour, sequence, message))
        if len(data) > DATAGRAM_BYTES_MAX:
            self._journal.frame_lost(Drop.OVERSIZED)  # which says nothing about the neighbour
            return
        self.waiting[sequence] = _Unicast(neighbour, message, data)
        self._attempt(sequence)

    def close(self) -> None:
        for unicast in self.waiting.values():
            if unicast.retry is not None:
                unicast.retry.cancel()
        self.waiting.clear()

    def receive(self, data: bytes, source: Endpoint) -> None:
        datagram = self._codec.decode(data)
        if isinstance(datagram, Drop):
            self._journal.frame_lost(datagram)
            return
        self.neighbours.learn(datagram.sender, source)
        if datagram.sender == self._address:
            self._journal.frame_lost(Drop.OWN_ADDRESS)
        elif datagram.message is None:
            self._acknowledged(datagram)
        elif datagram.kind == Frame.BROADCAST:
            self._pass_on(datagram.sender, datagram.message)
        elif datagram.receiver != self._address:
            self._journal.frame_lost(Drop.OVERHEARD)
        else:
            is_new = self._received.add(datagram.sender << 64 | datagram.sequence)
            acknowledgement = Datagram(Frame.ACKNOWLEDGEMENT, self._address, datagram.sender, datagram.sequence)
            self._to_neighbour(datagram.sender, self._codec.encode(acknowledgement), is_repeated=not is_new)
            if is_new:
                self._pass_on(datagram.sender, datagram.message)
            else:
                self._journal.frame_lost(Drop.DUPLICATE)

    def _pass_on(self, sender: int, message: Message) -> None:
        self._journal.frame_received()
        self._on_message(sender, message)

    def _acknowledged(self, datagram: Datagram) -> None:
        unicast = self.waiting.get(datagram.sequence)
        if datagram.receiver == self._address and unicast is not None and unicast.neighbour == datagram.sender:
            del self.waiting[datagram.sequence]
            if unicast.retry is not None:
                unicast.retry.cancel()

    def _attempt(self, sequence: int) -> None:
        unicast = self.waiting[sequence]
        if unicast.attempts == ATTEMPTS_MAX:
            del self.waiting[sequence]
            self._fail(unicast.neighbour, unicast.message)
            return
        timeout_s = ACKNOWLEDGEMENT_TIMEOUT_S * 2**unicast.attempts
        unicast.attempts += 1
        unicast.retry = self._loop.call_later(timeout_s, self._attempt, sequence)
        self._journal.frame_sent(unicast.message, len(unicast.data))
        self._to_neighbour(unicast.neighbour, unicast.data, is_repeated=unicast.attempts > 1)

    def _fail(self, neighbour: int, message: Message) -> None:
        self._journal.send_failed()
        self._on_send_failed(neighbour, message)

    def _to_neighbour(self, neighbour: int, data: bytes, *, is_repeated: bool) -> None:
        endpoint = self.neighbours.endpoint(neighbour)
        if endpoint is not None:
            self._transmit(data, endpoint)
        if endpoint is None or is_repeated:
            self._to_neighbourhood(data, but=endpoint)

    def _to_neighbourhood(self, data: bytes, but: Endpoint | None = None) -> None:
        for endpoint in self._neighbourhood:
            if endpoint != but:
                self._transmit(data, endpoint)
