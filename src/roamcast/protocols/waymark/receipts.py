"""Receipts that this node owes, until a frame carries them."""

from typing import Final

from roamcast.events import NUMBER_BITS, event_id

RECEIPTS_MAX: Final = 16
"""Receipts in one frame, at most."""

_NUMBERS: Final = (1 << NUMBER_BITS) - 1


class ReceiptsDue:
    def __init__(self) -> None:
        self._due: dict[int, None] = {}  # event ids, in the order in which they came

    def __len__(self) -> int:
        return len(self._due)

    def add(self, event: int) -> None:
        self._due[event] = None

    def take_all(self) -> tuple[int, ...]:
        """What a frame carries: publisher, number, publisher, number, ..."""
        flat: list[int] = []
        for event in list(self._due)[:RECEIPTS_MAX]:
            del self._due[event]
            flat.append(event >> NUMBER_BITS)
            flat.append(event & _NUMBERS)
        return tuple(flat)


def receipted(flat: tuple[int, ...]) -> list[int]:
    """The event ids that a frame's receipts name."""
    return [event_id(flat[at], flat[at + 1]) for at in range(0, len(flat) - 1, 2)]
