"""What happened in a tiny network, as readable lines for golden tests."""

from functools import cache
from typing import Any, NamedTuple

from msgspec import structs

from roamcast.events import NUMBER_BITS, Event
from roamcast.interests import Interest
from roamcast.protocols.api import Message


class TranscriptLine(NamedTuple):
    """One line of the transcript."""

    time_s: float
    node: int
    kind: str  # broadcast, send, lost, failed, deliver, refused, dropped, structure, link, node
    text: str


class RecordedDelivery(NamedTuple):
    time_s: float
    node: int
    event: Event
    hops: int
    channel: int = 0  # on which it came (`Protocol.open_channel`)


def describe(message: Message) -> str:
    """A message as the transcript shows it: its type and those of its fields that do not have their default."""
    parts = [type(message).__name__]
    for name, default in _fields(type(message)):
        value = getattr(message, name)
        if value != default:
            parts.append(f"{name}={readable(value)}")
    return " ".join(parts)


@cache
def _fields(kind: type[Message]) -> list[tuple[str, Any]]:
    return [(field.name, field.default) for field in structs.fields(kind)]


def readable(value: object) -> str:
    if isinstance(value, Event):
        return f"{event_name(value.id)}({value.content})"
    if isinstance(value, Message):
        return f"[{describe(value)}]"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, bytes):
        return f"{len(value)}B"
    if isinstance(value, Interest):
        return f"{{{value}}}"
    if isinstance(value, (tuple, list)):
        return "(" + ",".join(map(readable, value)) + ")"
    return "-" if value is None else str(value)


def event_name(event_id: int) -> str:
    return f"event {event_id >> NUMBER_BITS}/{event_id & (1 << NUMBER_BITS) - 1}"
