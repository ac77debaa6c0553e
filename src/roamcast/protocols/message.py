"""Messages: what protocols send to each other."""

from typing import Any, ClassVar, Literal

import msgspec

Category = Literal["maintenance", "publish_subscribe"]
"""What a frame is for: keeping the structure together, or carrying events, subscriptions and advertisements."""


class Message(msgspec.Struct, frozen=True, array_like=True):
    """Base of all messages. A subclass gives `tag=` a number that is unique among the messages of its protocol:
    0-15 belong to services shared by protocols (`protocols/routing`), 16 and up to the protocol itself."""

    category: ClassVar[Category] = "maintenance"
    label: ClassVar[str] = "Message"  # its name in the trace: the class's name

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "label" not in cls.__dict__:  # an envelope answers with the label of what it carries
            cls.label = cls.__name__
