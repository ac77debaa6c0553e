"""Tables that are sent in several messages, each small enough for one frame.

A link cuts a message that does not fit one frame into fragments, and losing one fragment loses all of it. A table whose
rows mean something on their own is better sent as several messages of one frame each.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, TypeVar

import msgspec

from roamcast.protocols.api import Host
from roamcast.protocols.message import Message

T = TypeVar("T")

UNLIMITED: Final = 1 << 30

SPARE_BYTES: Final = 8
"""Room for the length of a list that is no longer empty, and for a hop count that grows on the way."""


def batches(
    items: Iterable[T], size_bytes: Callable[[T], int], bytes_max: int, items_max: int = UNLIMITED
) -> list[list[T]]:
    """The items in order, in as few lists as hold no more than `bytes_max` and `items_max` each. An item that is larger
    than `bytes_max` is alone in its list. No list if there are no items."""
    filled: list[list[T]] = []
    left_bytes = -1
    for item in items:
        more_bytes = size_bytes(item)
        if not filled or more_bytes > left_bytes or len(filled[-1]) >= items_max:
            filled.append([])
            left_bytes = bytes_max
        filled[-1].append(item)
        left_bytes -= more_bytes
    return filled


def batches_of(items: Sequence[T], items_max: int) -> list[tuple[T, ...]]:
    """The items in order, up to `items_max` at a time. No tuple if there are no items."""
    return [tuple(items[first : first + items_max]) for first in range(0, len(items), items_max)]


def encoded_bytes(value: Any) -> int:
    """What a message, or a row of one, takes in a frame."""
    return len(msgspec.msgpack.encode(value))


def room_bytes(host: Host, message: Message) -> int:
    """What rows may take in a frame with `message`, which has none yet."""
    return host.frame_bytes_max - encoded_bytes(message) - SPARE_BYTES
