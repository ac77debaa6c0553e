"""The one message of flooding and gossip."""

from typing import ClassVar

from roamcast.events import Event
from roamcast.fields import Hops
from roamcast.protocols.api import Category, Message


class Flood(Message, frozen=True, tag=16):
    """An event, flooded."""

    category: ClassVar[Category] = "publish_subscribe"

    hops: Hops  # that the event has made when this frame arrives
    event: Event
