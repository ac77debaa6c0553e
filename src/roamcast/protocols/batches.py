"""Tables that are sent in several messages, each small enough for one frame."""

from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")


def batches(items: Iterable[T], size_bytes: Callable[[T], int], bytes_max: int) -> list[list[T]]:
    """The items in order, in as few lists as fill no more than `bytes_max` each; an item that is larger stands alone.

    There is always at least one list, so that an empty table can be sent too."""
    filled: list[list[T]] = [[]]
    left_bytes = bytes_max
    for item in items:
        more_bytes = size_bytes(item)
        if more_bytes > left_bytes and filled[-1]:
            filled.append([])
            left_bytes = bytes_max
        filled[-1].append(item)
        left_bytes -= more_bytes
    return filled
