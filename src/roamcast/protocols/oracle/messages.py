"""The one message of the oracle."""

from typing import ClassVar

from roamcast.events import Event
from roamcast.protocols.api import Category, Message


class Bundle(Message, frozen=True, tag=16):
    """An event on its way to the nodes that are known to want it."""

    category: ClassVar[Category] = "publish_subscribe"

    hops: int  # frames in a row that brought it to whoever gets this one
    tries: int  # how often it had to be routed anew
    destinations: tuple[int, ...]  # ascending
    event: Event
