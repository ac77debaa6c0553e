"""Adversaries: members of the network that work against it. A scenario says of which kind and how many.

| adversary | what it does | signatures stop it |
|---|---|---|
| `dropper` | takes part in everything but silently drops others' events (`droppers.py`) | no |
| `liar` | lies about itself: its place, its level in a tree, distances and costs, what it wants | no |
| `replayer` | sends again, in their senders' names, messages that it heard earlier | yes |
| `flooder` | publishes `FLOOD_PER_S` events a second that no node wants | no |
| `sybil` | says everything also in the names of `NAMES` nodes that do not exist | yes |

Apart from that, each follows its protocol, so its neighbours have no other reason to doubt it. "Signatures" means
`scenario.security.protection = "signed"`: what is not its sender's own is refused before a protocol sees it. Live nodes
also limit how much a peer may send (`live/quotas.py`). That would hold a flooder back, but is not modelled here.
"""

from collections import deque
from functools import cache
from math import floor
from typing import Any, Final, get_type_hints

import msgspec

from roamcast.events import Event, event_id
from roamcast.fields import Address, AddressOrNobody
from roamcast.protocols.api import NOBODY, Listener, Message, Point, Protocol
from roamcast.seeds import Random, derive
from roamcast.world.droppers import DroppingHost
from roamcast.world.faulty import FaultyHost
from roamcast.world.forged import Forged
from roamcast.world.host import HostServices
from roamcast.world.scenario import Scenario

FLOOD_PER_S: Final = 10.0
REPLAYS_PER_S: Final = 4.0
HEARD_MAX: Final = 200  # messages that a replayer remembers
NAMES: Final = 10
FIRST_NAME: Final = 1_000_000  # of nodes that do not exist
OWN_NUMBERS: Final = 1 << 31  # a flooder's events are numbered from here, apart from those of its application
JUNK: Final[dict[str, Any]] = {"intervals": -1.0, "topics": "junk", "content": "<JUNK/>"}
"""What a flooder publishes, by language; no workload wants it."""

LIES: Final = ("level", "hops", "distance", "distance_hops", "overhead", "cost")
"""Fields that a liar sets to 0: it is at the top, next to everything, and costs nothing."""


def adversaries(scenario: Scenario, seed: int) -> set[int]:
    """Who they are. With a larger share, those of the smaller one are among them."""
    share = scenario.faults.adversary_share
    if not share or scenario.faults.adversary == "none":
        return set()
    order = list(range(scenario.nodes))
    derive(seed, "adversaries").shuffle(order)
    return set(order[: max(1, floor(share * scenario.nodes + 0.5))])


@cache
def address_fields(kind: type[Message]) -> tuple[str, ...]:
    """The fields of a message that name a node."""
    hints = get_type_hints(kind, include_extras=True)
    return tuple(name for name in kind.__struct_fields__ if hints[name] in (Address, AddressOrNobody))


class LyingHost(FaultyHost):
    """Lies about itself in everything that it tells."""

    def __init__(self, services: HostServices, address: int, life: int, random: Random) -> None:
        super().__init__(services, address, life, random)
        site = services.site
        self._pretended = (self._mischief.random() * site.width_m, self._mischief.random() * site.height_m)

    def position(self) -> Point | None:
        return None if super().position() is None else self._pretended

    def velocity(self) -> Point | None:
        return None if super().velocity() is None else (0.0, 0.0)

    def transmit(self, receiver: int, message: Message) -> None:
        super().transmit(receiver, self._lie(message))

    def _lie(self, message: Any) -> Message:
        """The message with lies in the place of what it says about its sender."""
        fields: Any = type(message).__struct_fields__
        lies: dict[str, Any] = {}
        for name in LIES:
            if name in fields:
                lies[name] = type(getattr(message, name))(0)
        if "interest" in fields and self._mischief.random() < 0.5:
            told = message.interest
            if told is not None:
                lies["interest"] = type(told)()  # wants nothing, so that nothing is sent this way
        if not lies:
            honest: Message = message
            return honest
        self.count("lie")
        lied: Message = msgspec.structs.replace(message, **lies)
        return lied


class ReplayingHost(FaultyHost):
    """Sends what it heard again."""

    def __init__(self, services: HostServices, address: int, life: int, random: Random) -> None:
        super().__init__(services, address, life, random)
        self._heard: deque[tuple[int, Message]] = deque(maxlen=HEARD_MAX)

    def guarded(self, listener: Listener) -> Listener:
        self._scheduler.at(self._scheduler.now + 1.0, self._replay, None)
        return _Ear(self, super().guarded(listener))

    def hear(self, sender: int, message: Message) -> None:
        if type(message) is not Forged:
            self._heard.append((sender, message))

    def _replay(self, _: None) -> None:
        if self._protocol is None:
            return
        if self._heard:
            sender, message = self._heard[self._mischief.randrange(len(self._heard))]
            self.count("replay")
            self.transmit(NOBODY, Forged(sender, message))
        self._scheduler.at(self._scheduler.now + 1 / REPLAYS_PER_S, self._replay, None)


class _Ear(Listener):
    """Lets a replayer hear what its node gets."""

    def __init__(self, host: ReplayingHost, listener: Listener) -> None:
        self._host = host
        self._listener = listener

    def on_message(self, sender: int, message: Message) -> None:
        self._host.hear(sender, message)
        self._listener.on_message(sender, message)

    def on_send_failed(self, neighbour: int, message: Message) -> None:
        self._listener.on_send_failed(neighbour, message)


class FloodingHost(FaultyHost):
    """Publishes unwanted events without end."""

    def __init__(self, services: HostServices, address: int, life: int, random: Random) -> None:
        super().__init__(services, address, life, random)
        self._number = OWN_NUMBERS + (life << 20)

    def connect(self, protocol: Protocol) -> None:
        super().connect(protocol)
        self._scheduler.at(self._scheduler.now + 5.0, self._flood, None)

    def _flood(self, _: None) -> None:
        if self._protocol is None:
            return
        self._number += 1
        self.count("junk")
        self._protocol.publish(Event(event_id(self.address, self._number), self._scheduler.now, self.junk, bytes(64)))
        self._scheduler.at(self._scheduler.now + 1 / FLOOD_PER_S, self._flood, None)


class SybilHost(FaultyHost):
    """One node that pretends to be many."""

    def transmit(self, receiver: int, message: Message) -> None:
        super().transmit(receiver, message)
        if receiver == NOBODY and type(message) is not Forged:
            name = FIRST_NAME + self.address * NAMES + self._mischief.randrange(NAMES)
            self.count("sybil")
            super().transmit(NOBODY, Forged(name, self._renamed(message, name)))

    def _renamed(self, message: Message, name: int) -> Message:
        """The message as the other would send it: where it names its sender, it names the other."""
        renamed = {field: name for field in address_fields(type(message)) if getattr(message, field) == self.address}
        if not renamed:
            return message
        forged: Message = msgspec.structs.replace(message, **renamed)
        return forged


def adversary_host(kind: str, services: HostServices, address: int, life: int, random: Random) -> FaultyHost:
    if kind == "liar":
        return LyingHost(services, address, life, random)
    if kind == "replayer":
        return ReplayingHost(services, address, life, random)
    if kind == "flooder":
        return FloodingHost(services, address, life, random)
    if kind == "sybil":
        return SybilHost(services, address, life, random)
    return DroppingHost(services, address, life, random)
