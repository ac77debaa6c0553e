"""Well-formed nonsense: messages of a protocol that pass the decoder and mean nothing.

A message is made from its type. Numbers are drawn from the ends of their range, from small numbers, and from the
addresses of the network under attack, because those are what a protocol compares with; tables are mostly short and
sometimes long. What a struct's own check refuses is drawn again, as it would not pass the decoder either.
"""

from typing import Any

import msgspec
from msgspec import inspect

from roamcast.errors import PeerError
from roamcast.events import Content, Event, event_id
from roamcast.interests import Intervals, Topics, XPaths, parse_interest
from roamcast.protocols.api import Message
from roamcast.seeds import Random

SAMPLES: dict[type, list[Any]] = {
    Intervals: [Intervals(), Intervals.of((0, 100)), Intervals.of((3, 4), (7, 9)), Intervals.of((-1e300, 1e300))],
    Topics: [parse_interest("topics", text) for text in ("fire/**", "fire/north", "*/*", "**")],
    XPaths: [parse_interest("content", text) for text in ("/PGMFORUM", "/PGMFORUM[hole = 7]")],
}
"""Values of types that have a language of their own."""

TRIES = 100


class Nonsense:
    """Draws messages of one protocol.

    Events are in the name of `publishers` only. A node that may speak for a publisher can use up the ids of its next
    events; no protocol can tell, as long as events are not signed."""

    def __init__(self, messages: Any, random: Random, addresses: list[int], publishers: list[int]) -> None:
        self._random = random
        self._addresses = addresses
        self._publishers = publishers
        self._decoder: msgspec.msgpack.Decoder[Message] = msgspec.msgpack.Decoder(messages)
        union = inspect.type_info(messages)
        self._kinds = list(union.types) if isinstance(union, inspect.UnionType) else [union]

    def message(self) -> Message:
        """A random message; the decoder would accept it."""
        for _ in range(TRIES):
            kind = self._random.choice(self._kinds)
            try:
                return self._decoder.decode(msgspec.msgpack.encode(self._value(kind, 0)))
            except (PeerError, ValueError, OverflowError):
                continue
        raise AssertionError(f"no message of {self._kinds} can be drawn")

    def _value(self, kind: inspect.Type, depth: int) -> Any:
        random = self._random
        match kind:
            case inspect.StructType(cls=cls):
                if cls is Event:
                    return self._event()
                if cls in SAMPLES:
                    return random.choice(SAMPLES[cls])
                return cls(*[self._value(field.type, depth + 1) for field in kind.fields])
            case inspect.IntType():
                return self._whole(kind.ge, kind.le if kind.lt is None else kind.lt - 1)
            case inspect.FloatType():
                low, high = -1e9 if kind.ge is None else kind.ge, 1e9 if kind.le is None else kind.le
                return float(random.choice([low, high, 0.0, 1.0, 0.5, low + (high - low) * random.random()]))
            case inspect.BoolType():
                return random.random() < 0.5
            case inspect.StrType():
                return random.choice(["", "fire/north", "x" * 200, "é\n", "PGMFORUM"])
            case inspect.BytesType():
                length = random.choice([kind.min_length or 0, 8, 64])
                return random.randbytes(length if kind.max_length is None else min(length, kind.max_length))
            case inspect.LiteralType():
                return random.choice(list(kind.values))
            case inspect.EnumType():
                return random.choice(list(kind.cls))
            case inspect.NoneType():
                return None
            case inspect.UnionType():
                return self._value(random.choice(list(kind.types)), depth)
            case inspect.TupleType():
                return tuple(self._value(each, depth + 1) for each in kind.item_types)
            case inspect.VarTupleType():
                return tuple(self._value(kind.item_type, depth + 1) for _ in range(self._length(kind, depth)))
        raise AssertionError(f"no rule for {kind}")

    def _whole(self, low: int | None, high: int | None) -> int:
        random = self._random
        least = -(2**63) if low is None else low
        most = 2**63 - 1 if high is None else high
        choices = [least, most, most - 1, random.randrange(10), random.choice(self._addresses)]
        return min(max(random.choice(choices), least), most)

    def _length(self, kind: inspect.VarTupleType, depth: int) -> int:
        if depth > 8:  # some messages contain messages
            return 0
        longest = 2 if depth > 3 else 60
        length = self._random.choice([0, 1, 1, 2, 3, longest if self._random.random() < 0.1 else 1])
        return length if kind.max_length is None else min(length, kind.max_length)

    def _event(self) -> Event:
        random = self._random
        publisher = random.choice(self._publishers)
        number = random.choice([1, 2, random.randrange(1, 2**32), 2**32 - 1])
        contents: list[Content] = [0, 5, -1e300, 2**62, "fire/north", "<PGMFORUM/>", ""]
        payload = random.randbytes(random.randrange(64))
        return Event(event_id(publisher, number), random.random() * 1e9, random.choice(contents), payload)
