"""The messages that SOMER adds to those of the tree."""

from typing import ClassVar

import msgspec

from roamcast.causal import Role
from roamcast.fields import Address as Node
from roamcast.fields import AddressOrNobody as Address
from roamcast.fields import Counter as Sequence
from roamcast.fields import Level as Hops
from roamcast.fields import Quantity
from roamcast.interests import Interest
from roamcast.protocols.api import Category, Message
from roamcast.protocols.trees.messages import Appraisal, Appraised, Dissolve, EventMessage, Path, TreeMessages

Distances = tuple[tuple[Node, Hops], ...]
"""Roots with their distance in hops from root to root, ascending by address."""

RoleList = tuple[tuple[Node, Role], ...]
"""Causal nodes with their roles, ascending by address."""


class RouteReport(Message, frozen=True, tag=32):
    """From child to parent: all other trees that can be reached through me. Replaces what was said before (4.3.2)."""

    routes: Distances


class Announcement(Message, frozen=True, tag=33):
    """From child to parent: what my subtree publishes. Replaces what was said before (4.3.2)."""

    category: ClassVar[Category] = "publish_subscribe"

    publications: Interest | None  # effective publications
    roles: RoleList  # the causal nodes among them (5.1)


class Entry(msgspec.Struct, frozen=True, array_like=True):
    """What one root lets all others know of its tree: the super publisher and subscriber of section 4.3.2."""

    root: Node
    sequence: Sequence  # of this root's entries
    subscriptions: Interest | None  # effective subscriptions
    publications: Interest | None  # effective publications
    roles: RoleList = ()  # causal nodes in the tree (5.1)


class Advertisement(Message, frozen=True, tag=34):
    """From root to neighbouring root: what I know of roots, myself included (4.3.2)."""

    category: ClassVar[Category] = "publish_subscribe"

    towards: Address  # the root it is sent to
    via: Node  # the root that sends it
    climbs: bool  # it has crossed the border and goes up to whatever root is there
    hops: Hops  # frames in a row that brought it to its receiver
    entries: tuple[tuple[Entry, Hops], ...]  # each with its distance in roots from its origin to `via`


class Leg(msgspec.Struct, frozen=True, array_like=True):
    """The next stretch of an event's path to other trees, from one root to a neighbouring one."""

    towards: Address  # the root at its end
    targets: Path  # the roots whose trees want the event and are reached through it, itself perhaps among them


class Crossing(EventMessage, frozen=True, tag=35):
    """An event on its way between trees (4.3.2). Each node that it passes takes it as any other event."""

    legs: tuple[Leg, ...]  # all that begin with the same next hop


class Contention(Message, frozen=True, tag=37):
    """Broadcast by a leaf: which tree should grow here? And the winner's answer to a leaf that loses (5.2)."""

    root: Address  # of the sender's tree
    potential: Quantity  # expansion potential of the sender's tree
    level: Hops  # the sender's, hops
    answers: bool  # the sender has won


SomerMessages = (
    TreeMessages
    | Appraisal
    | Appraised
    | RouteReport
    | Announcement
    | Advertisement
    | Crossing
    | Dissolve
    | Contention
)
