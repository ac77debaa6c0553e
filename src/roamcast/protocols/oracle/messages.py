"""The messages of the oracles."""

from typing import ClassVar

from roamcast.events import Event
from roamcast.fields import Address, Hops, SmallCounter
from roamcast.protocols.api import Category, Message


class Bundle(Message, frozen=True, tag=16):
    """An event, with the nodes that it is for."""

    category: ClassVar[Category] = "publish_subscribe"

    hops: Hops  # that the event has made when this frame arrives
    tries: SmallCounter  # how often it was rerouted
    destinations: tuple[Address, ...]  # ascending
    event: Event


class Branches(Message, frozen=True, tag=17):
    """An event, broadcast to the first relays of a tree."""

    category: ClassVar[Category] = "publish_subscribe"

    hops: Hops  # hops so far, this one included
    tries: SmallCounter  # how often it was routed again
    groups: tuple[tuple[Address, ...], ...]  # (relay, destination, ...), or (destination,); relays take turns
    event: Event
