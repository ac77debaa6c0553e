"""Messages larger than a frame: cut into fragments by the sender's link, put together by the receiver's.

The link of every host uses the two classes here; protocols never see a fragment. They are pure, like protocols.

`Outbox` is the sender's side. It keeps the messages that are being sent and hands out one fragment at a time, the
oldest message first. A link asks for the next fragment when it has room. If the link gives up on a fragment, the rest
of its message is dropped, and the message counts as failed.

`Reassembly` is the receiver's side. It keeps the pieces of unfinished messages, within bounds: of each sender
`MESSAGES_PER_SENDER`, because retransmissions of one message may overlap the next; of all senders together
`REASSEMBLY_BYTES_MAX`, beyond which the message that has waited longest for a piece is given up. A message that gets
no piece for `REASSEMBLY_TIMEOUT_S` is given up too.
"""

from collections.abc import Callable
from typing import Final

from roamcast.protocols.fragment import FRAGMENT_OVERHEAD_BYTES, Fragment
from roamcast.protocols.lives import first_number
from roamcast.protocols.message import Message

MESSAGE_BYTES_MAX: Final = 256 * 1024
"""The largest message that a link carries, encoded."""

OUTBOX_BYTES_MAX: Final = 8 * MESSAGE_BYTES_MAX
REASSEMBLY_BYTES_MAX: Final = 16 * MESSAGE_BYTES_MAX
REASSEMBLY_TIMEOUT_S: Final = 5.0
MESSAGES_PER_SENDER: Final = 4
UNDER_WAY_MAX: Final = 64  # unicasts whose failure is still reported
PIECE_OVERHEAD_BYTES: Final = 128  # of memory that a piece takes beside its own bytes, so that tiny pieces count too

TIMEOUT: Final = "fragment-timeout"
"""Reason: the pieces stopped coming before the message was whole."""

SUPERSEDED: Final = "fragment-superseded"
"""Reason: the sender began too many other messages before this one was whole."""

MEMORY: Final = "fragment-memory"
"""Reason: too many unfinished messages."""

INCONSISTENT: Final = "fragment-inconsistent"
"""Reason: a piece that cannot belong to a message that was sent."""


class Outgoing:
    """A message on its way, fragment by fragment."""

    def __init__(self, receiver: int, message: Message, fragments: list[Fragment]) -> None:
        self.receiver = receiver
        self.message = message
        self.fragments = fragments  # not handed out yet, the next one last


class Outbox:
    def __init__(self, life: int, frame_bytes_max: int) -> None:
        self._number = first_number(life)
        self._piece_bytes = frame_bytes_max - FRAGMENT_OVERHEAD_BYTES
        self._waiting: list[Outgoing] = []
        self._under_way: dict[int, Outgoing] = {}  # by number: unicasts of which a fragment may still fail
        self._bytes = 0

    def __len__(self) -> int:
        """Fragments that have not been handed out."""
        return sum(len(outgoing.fragments) for outgoing in self._waiting)

    def limit_frames(self, frame_bytes_max: int) -> None:
        """From now on messages are cut into smaller or larger fragments."""
        self._piece_bytes = frame_bytes_max - FRAGMENT_OVERHEAD_BYTES

    def add(self, receiver: int, message: Message, data: bytes) -> bool:
        """Takes a message, encoded as `data`; false if too much is waiting already."""
        if self._bytes + len(data) > OUTBOX_BYTES_MAX:
            return False
        self._number += 1
        size = self._piece_bytes
        pieces = [data[start : start + size] for start in range(0, len(data), size)]
        publishes = message.category == "publish_subscribe"
        number, count = self._number, len(pieces)
        fragments = [Fragment(number, index, count, publishes, piece) for index, piece in enumerate(pieces)]
        fragments.reverse()
        self._waiting.append(Outgoing(receiver, message, fragments))
        self._bytes += len(data)
        return True

    def next(self) -> tuple[int, Fragment] | None:
        """The receiver and the fragment to send now, or None if there is none."""
        if not self._waiting:
            return None
        outgoing = self._waiting[0]
        fragment = outgoing.fragments.pop()
        self._bytes -= len(fragment.piece)
        self._under_way[fragment.number] = outgoing
        if not outgoing.fragments:
            self._waiting.pop(0)
            self._forget_oldest()
        return outgoing.receiver, fragment

    def failed(self, fragment: Fragment) -> Message | None:
        """The link gave up on a fragment. Returns its message, once; the rest of it will not be sent."""
        outgoing = self._under_way.pop(fragment.number, None)
        if outgoing is None:
            return None
        if outgoing in self._waiting:
            self._waiting.remove(outgoing)
            self._bytes -= sum(len(rest.piece) for rest in outgoing.fragments)
        return outgoing.message

    def _forget_oldest(self) -> None:
        """A link has few fragments under way at a time, so the failure of an old message's is not to be expected."""
        while len(self._under_way) > UNDER_WAY_MAX:
            del self._under_way[next(iter(self._under_way))]


class Incoming:
    """A message of which some pieces are here."""

    def __init__(self, sender: int, fragment: Fragment) -> None:
        self.key = (sender, fragment.number)
        self.count = fragment.count
        self.pieces: dict[int, bytes] = {}
        self.bytes = 0  # of the message
        self.memory_bytes = 0
        self.heard_s = 0.0

    def add(self, fragment: Fragment) -> None:
        size = len(fragment.piece)
        self.pieces[fragment.index] = fragment.piece
        self.bytes += size
        self.memory_bytes += size + PIECE_OVERHEAD_BYTES


class Reassembly:
    def __init__(self, on_lost: Callable[[str], None]) -> None:
        self._on_lost = on_lost
        self._incoming: dict[tuple[int, int], Incoming] = {}  # the one that has waited longest for a piece first
        self._numbers: dict[int, list[int]] = {}  # by sender: of its unfinished messages, oldest first
        self._memory_bytes = 0

    def __len__(self) -> int:
        """Messages that are unfinished."""
        return len(self._incoming)

    def add(self, sender: int, fragment: Fragment, now_s: float) -> bytes | None:
        """Takes a piece; returns the encoded message if it was the last one that was missing."""
        self._expire(now_s)
        incoming = self._incoming.get((sender, fragment.number))
        if incoming is None:
            incoming = Incoming(sender, fragment)
        else:
            self._remove(incoming)
        is_consistent = fragment.count == incoming.count and fragment.index < fragment.count
        if not is_consistent or incoming.bytes + len(fragment.piece) > MESSAGE_BYTES_MAX:
            self._on_lost(INCONSISTENT)
            return None
        if fragment.index not in incoming.pieces:
            incoming.add(fragment)
        if len(incoming.pieces) == incoming.count:
            return b"".join([incoming.pieces[index] for index in range(incoming.count)])
        incoming.heard_s = now_s
        self._keep(incoming)
        return None

    def _keep(self, incoming: Incoming) -> None:
        sender, number = incoming.key
        numbers = self._numbers.setdefault(sender, [])
        numbers.append(number)
        self._incoming[incoming.key] = incoming
        self._memory_bytes += incoming.memory_bytes
        if len(numbers) > MESSAGES_PER_SENDER:
            self._give_up(self._incoming[sender, numbers[0]], SUPERSEDED)
        while self._memory_bytes > REASSEMBLY_BYTES_MAX:
            self._give_up(next(iter(self._incoming.values())), MEMORY)

    def _expire(self, now_s: float) -> None:
        while self._incoming:
            oldest = next(iter(self._incoming.values()))
            if now_s - oldest.heard_s <= REASSEMBLY_TIMEOUT_S:
                return
            self._give_up(oldest, TIMEOUT)

    def _give_up(self, incoming: Incoming, reason: str) -> None:
        self._remove(incoming)
        self._on_lost(reason)

    def _remove(self, incoming: Incoming) -> None:
        sender, number = incoming.key
        del self._incoming[incoming.key]
        self._memory_bytes -= incoming.memory_bytes
        numbers = self._numbers[sender]
        numbers.remove(number)
        if not numbers:
            del self._numbers[sender]
