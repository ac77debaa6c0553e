"""A frame whose sender lies about who it is."""

from typing import Any, ClassVar

from roamcast.protocols.message import Category, Message


class Forged(Message, frozen=True, tag=14):
    """The radio knows who sends; receivers take `sender` for it (`faulty.py`), unless signatures tell."""

    category: ClassVar[Category] = "maintenance"

    sender: int
    message: Any
