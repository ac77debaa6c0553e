"""The message of the link itself: a piece of a message that does not fit one frame."""

from typing import Annotated, ClassVar

from msgspec import Meta

from roamcast.fields import Counter, SmallCounter
from roamcast.protocols.message import Category, Message


class Fragment(Message, frozen=True, tag=15):
    """One piece. It costs `FRAGMENT_OVERHEAD_BYTES` at most beside the piece itself."""

    number: Counter  # of the message, counted by its sender over all its lives
    index: SmallCounter  # of the piece, from 0
    count: Annotated[int, Meta(ge=2, le=2**16 - 1)]  # of pieces
    publishes: bool  # the message is of category `publish_subscribe`
    piece: Annotated[bytes, Meta(min_length=1)]

    label: ClassVar[str] = "Fragment"

    @property
    def category(self) -> Category:  # type: ignore[override]
        """That of the message."""
        return "publish_subscribe" if self.publishes else "maintenance"


FRAGMENT_OVERHEAD_BYTES = 24
"""Encoded: tag 1, array 1, number 9, index 3, count 3, publishes 1, length of the piece 3; rounded up."""
