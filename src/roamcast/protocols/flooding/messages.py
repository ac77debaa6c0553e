"""The one message of flooding and gossip."""

from typing import ClassVar

from roamcast.events import Event
from roamcast.protocols.api import Category, Message


class Flood(Message, frozen=True, tag=16):
    """An event on its way to everybody."""

    category: ClassVar[Category] = "publish_subscribe"

    hops: int  # frames in a row that brought it to whoever hears this one
    event: Event
