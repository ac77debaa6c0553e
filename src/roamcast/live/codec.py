"""What a datagram looks like. Pure: bytes in, a datagram or the reason to drop it out; nothing here ever raises.

A datagram is a fixed header and, unless it is an acknowledgement or a beacon, one message of the network's protocol:

| bytes | field | |
|---|---|---|
| 1 | magic | `MAGIC`: not a stray datagram of another application |
| 1 | version | `VERSION`: of this layout and of the messages |
| 4 | network | hash of the network's and the protocol's name: strangers on the same port stay strangers |
| 1 | kind | broadcast, unicast, acknowledgement, announcement, beacon or batch |
| 4 | sender | its address |
| 4 | receiver | its address; `EVERYBODY` on a broadcast, announcement, beacon or batch |
| 8 | sequence | of a unicast, counted by its sender; an acknowledgement repeats it; otherwise 0 |
| rest | body | MessagePack, decoded into the protocol's union of message types, or a fragment of one; of an
announcement, what the authority says about nodes (`herald.py`), which the protocol never sees; of a batch, several
messages, each after its length in 2 bytes |

Integers are big-endian. Decoding against the union is the check of everything that comes from outside: a protocol never
sees a message of a wrong shape, or a number outside the range its field declares (`roamcast/fields.py`). Fields that
the type does not know are ignored, so a later minor version may add some at the end.
"""

from collections.abc import Callable, Sequence
from enum import Enum, IntEnum
from hashlib import blake2b
from struct import Struct
from typing import Any

import msgspec

from roamcast.errors import PeerError
from roamcast.fields import ADDRESS_MAX
from roamcast.protocols import fragments
from roamcast.protocols.api import Message
from roamcast.protocols.fragment import Fragment

MAGIC = 0xCA
VERSION = 1
DATAGRAM_BYTES_MAX = 1452  # what fits an Ethernet frame with the headers of IPv6 and UDP: never fragmented
FRAME_BYTES_MAX = 1312  # of a message, encoded; what is left of a datagram is for headers, and for security
EVERYBODY = 2**32 - 1
LENGTH_BYTES = 2  # before each message of a batch

_HEADER = Struct(">BBIBIIQ")
HEADER_BYTES = _HEADER.size
_KIND_AT = 6
_SENDER_AT = 7
_RECEIVER_AT = 11
_TO_EVERYBODY = EVERYBODY.to_bytes(4, "big") + bytes(8)  # receiver and sequence of what is for all neighbours


class DatagramKind(IntEnum):
    """What the link layer does with a datagram."""

    BROADCAST = 0
    UNICAST = 1
    ACKNOWLEDGEMENT = 2
    ANNOUNCEMENT = 3
    BEACON = 4  # tells others that the sender is here (`discovery.py`)
    BATCH = 5  # several broadcasts in one datagram


class DropReason(Enum):
    """Why a datagram was not handed to the protocol, or never left."""

    OVERSIZED = "oversized"  # longer than any node may send
    TRUNCATED = "truncated"  # shorter than a header
    FOREIGN_MAGIC = "foreign magic"  # not of this application
    FOREIGN_VERSION = "foreign version"
    FOREIGN_NETWORK = "foreign network"  # another network, or another protocol
    UNSEALED = "unsealed"  # not encrypted, in a network that has a key
    UNKNOWN_KEY = "unknown key"  # sealed with a key that this node does not have
    FORGED = "forged"  # the seal is broken: made or changed by someone without the key
    REPLAYED = "replayed"  # sealed, but accepted before, or from a former life of its sender
    UNKNOWN_SENDER = "unknown sender"  # signed by a node whose certificate did not come in time
    EXPIRED = "expired"  # signed by a node whose certificate has expired, or is not valid yet
    REVOKED = "revoked"  # signed by a node that is no member any more
    UNSIGNED = "unsigned"  # an event or record without a signature
    FORGED_STATEMENT = "forged statement"  # an event or record in the name of a node that did not sign it
    FORBIDDEN = "forbidden"  # an event or subscription that its signer's certificate does not allow
    FOREIGN_LANGUAGE = "foreign language"  # an interest in another language than the network's
    QUOTA = "quota"  # more than one peer may send
    MALFORMED_HEADER = "malformed header"
    MALFORMED_BODY = "malformed body"  # not a message of the protocol
    NO_LAYER = "no layer"  # of the delivery layer, which this node does not run
    REFUSED = "refused"  # a well-formed message that makes no sense to the protocol
    UNLINKED = "unlinked"  # over a static link that was taken away
    FAILED = "failed"  # the protocol has a bug that it ran into
    DUPLICATE = "duplicate"  # a unicast that came again because its acknowledgement got lost
    OVERHEARD = "overheard"  # a unicast to another node, seen because a group is shared
    FRAGMENT_TIMEOUT = fragments.TIMEOUT  # the reasons why a message was not put together
    FRAGMENT_SUPERSEDED = fragments.SUPERSEDED
    FRAGMENT_MEMORY = fragments.MEMORY
    FRAGMENT_INCONSISTENT = fragments.INCONSISTENT
    QUEUE = "queue"  # too many messages were waiting to be sent
    OWN_ADDRESS = "own address"  # the echo of our own broadcast in a group, or a second node with our address


class Datagram(msgspec.Struct, frozen=True):
    kind: DatagramKind
    sender: int
    receiver: int = EVERYBODY
    sequence: int = 0
    message: Message | None = None  # None on an acknowledgement, beacon or batch
    batch: tuple[Message, ...] = ()  # the messages of a batch


class Codec:
    """Encodes and decodes the datagrams of one network that runs one protocol."""

    def __init__(self, network: str, protocol: str, messages: Any) -> None:
        digest = blake2b(f"{network}\x1f{protocol}".encode(), digest_size=4).digest()
        self._network = int.from_bytes(digest, "big")
        encoder = msgspec.msgpack.Encoder()
        self.encode_message: Callable[[Message], bytes] = encoder.encode
        self._decoder: msgspec.msgpack.Decoder[Message] = msgspec.msgpack.Decoder(messages | Fragment)
        begin = _HEADER.pack(MAGIC, VERSION, self._network, DatagramKind.BROADCAST, 0, 0, 0)
        self._broadcast = begin[:_SENDER_AT]  # how a datagram with one broadcast begins,
        self._beacon = begin[:_KIND_AT] + bytes([DatagramKind.BEACON])  # and a beacon

    def encode(self, datagram: Datagram, body: bytes | None = None) -> bytes:
        """The bytes; `body` is the message if it has been encoded already."""
        if body is None:
            body = b"" if datagram.message is None else self.encode_message(datagram.message)
        header = _HEADER.pack(
            MAGIC,
            VERSION,
            self._network,
            datagram.kind,
            datagram.sender,
            datagram.receiver,
            datagram.sequence,
        )
        return header + body

    def decode_message(self, body: bytes) -> Message | None:
        """The message, or None if the bytes are not one."""
        try:
            return self._decoder.decode(body)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, PeerError):
            # bytes that are not MessagePack or not of the union; numbers out of range; text that is not UTF-8; nesting
            # bombs in ignored fields; values that a struct's own check refuses
            return None

    def announcement(self, data: bytes) -> bytes | None:
        """The body of an announcement of this network, or None if the datagram is none."""
        if len(data) < HEADER_BYTES:
            return None
        magic, version, network, kind, _, _, _ = _HEADER.unpack_from(data)
        is_one = (magic, version, network, kind) == (MAGIC, VERSION, self._network, DatagramKind.ANNOUNCEMENT)
        return data[HEADER_BYTES:] if is_one else None

    def decode(self, data: bytes) -> Datagram | DropReason:
        if data[_RECEIVER_AT:HEADER_BYTES] == _TO_EVERYBODY:  # two short ways, for what arrives most
            sender = int.from_bytes(data[_SENDER_AT:_RECEIVER_AT], "big")
            if data.startswith(self._broadcast) and sender <= ADDRESS_MAX and len(data) <= DATAGRAM_BYTES_MAX:
                message = self.decode_message(data[HEADER_BYTES:])
                if message is None:
                    return DropReason.MALFORMED_BODY
                return Datagram(DatagramKind.BROADCAST, sender, message=message)
            if data.startswith(self._beacon) and sender <= ADDRESS_MAX and len(data) == HEADER_BYTES:
                return Datagram(DatagramKind.BEACON, sender)
        if len(data) > DATAGRAM_BYTES_MAX:
            return DropReason.OVERSIZED
        if not data:
            return DropReason.TRUNCATED
        if data[0] != MAGIC:
            return DropReason.FOREIGN_MAGIC
        if len(data) > 1 and data[1] != VERSION:
            return DropReason.FOREIGN_VERSION  # before the length: another version may have another header
        if len(data) < HEADER_BYTES:
            return DropReason.TRUNCATED
        _, _, network, kind, sender, receiver, sequence = _HEADER.unpack_from(data)
        if network != self._network:
            return DropReason.FOREIGN_NETWORK
        if not _is_consistent(kind, sender, receiver, sequence):
            return DropReason.MALFORMED_HEADER
        if kind == DatagramKind.ANNOUNCEMENT:  # the guard has dealt with it
            return Datagram(DatagramKind.ANNOUNCEMENT, sender)
        if kind in (DatagramKind.ACKNOWLEDGEMENT, DatagramKind.BEACON):
            is_bare = len(data) == HEADER_BYTES
            return Datagram(DatagramKind(kind), sender, receiver, sequence) if is_bare else DropReason.MALFORMED_BODY
        if kind == DatagramKind.BATCH:
            messages = self._decode_batch(data)
            if messages is None:
                return DropReason.MALFORMED_BODY
            return Datagram(DatagramKind.BATCH, sender, batch=messages)
        message = self.decode_message(data[HEADER_BYTES:])
        if message is None:
            return DropReason.MALFORMED_BODY
        return Datagram(DatagramKind(kind), sender, receiver, sequence, message)

    def _decode_batch(self, data: bytes) -> tuple[Message, ...] | None:
        """All messages of a batch, or None if one of them is none, or there are none."""
        found: list[Message] = []
        at = HEADER_BYTES
        while at < len(data):
            end = at + LENGTH_BYTES + int.from_bytes(data[at : at + LENGTH_BYTES], "big")
            message = self.decode_message(data[at + LENGTH_BYTES : end])
            if message is None or end > len(data):
                return None
            found.append(message)
            at = end
        return tuple(found) or None


def as_batch(bodies: Sequence[bytes]) -> bytes:
    """The body of a batch."""
    return b"".join([len(body).to_bytes(LENGTH_BYTES, "big") + body for body in bodies])


def _is_consistent(kind: int, sender: int, receiver: int, sequence: int) -> bool:
    if sender > ADDRESS_MAX:
        return False
    if kind in (DatagramKind.BROADCAST, DatagramKind.ANNOUNCEMENT, DatagramKind.BEACON, DatagramKind.BATCH):
        return receiver == EVERYBODY and sequence == 0
    return kind in (DatagramKind.UNICAST, DatagramKind.ACKNOWLEDGEMENT) and receiver <= ADDRESS_MAX
