"""The messages that SOMER adds to those of the tree."""

from typing import Annotated, ClassVar

import msgspec
from msgspec import Meta

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


class RouteReport(Message, frozen=True, tag=32):
    """From child to parent: all other trees that can be reached through me. Replaces what was said before."""

    routes: Distances


class RoleReport(Message, frozen=True, tag=33):
    """From child to parent: the causal nodes in my subtree and their roles. Replaces what was said before."""

    roles: tuple[tuple[Node, Role], ...]  # (node, role), ascending


class Entry(msgspec.Struct, frozen=True, array_like=True):
    """What one root lets all others know of its tree."""

    root: Node
    sequence: Sequence  # of this root's entries
    near: Distances  # neighbouring roots
    interest: Interest | None  # what the tree wants
    roles: tuple[tuple[Node, Role], ...] = ()  # causal nodes in the tree
    absorbed: Path = ()  # roots whose trees have lately become part of it


class Advertisement(Message, frozen=True, tag=34):
    """From root to neighbouring root: my own entry, or new ones of others."""

    category: ClassVar[Category] = "publish_subscribe"

    towards: Node  # the root it is sent to
    via: Node  # the root that sends it
    hops: Hops  # hops so far, this one included
    climbs: bool  # it is on its way up a tree, no longer down the one it came from
    entries: tuple[Entry, ...]
    heard: Annotated[int, Meta(ge=-1, lt=2**62)]  # newest entry of the receiver that is known, or -1
    told: Path = ()  # roots that the sender tells the same, or that have told it


class Leg(msgspec.Struct, frozen=True, array_like=True):
    """A section of an event's path to other trees, from one root to a neighbouring one, and what follows it."""

    towards: Address  # the root that it ends at; NOBODY: any, where the rest is planned again
    wanted: bool = True  # the tree there wants the event, it is not only passed
    onward: tuple["Leg", ...] = ()  # the sections that begin there


class Crossing(EventMessage, frozen=True, tag=35):
    """An event on its way between trees. Each node on its path takes it as any other event.

    Without legs: for nodes that came into a tree after the event. Each receiver forwards it down the tree."""

    legs: tuple[Leg, ...]
    passed: Path  # roots that it has passed since it last waited at a root
    tries: Annotated[int, Meta(ge=0, lt=2**8)] = 0  # how often it came back to a root, or waited there
    returns: bool = False  # it goes back toward the root it came from, until a node knows another path


class Contention(Message, frozen=True, tag=37):
    """From a leaf to a neighbour in another tree, and back: whose growth does more for causal events?"""

    potential: Quantity  # expansion potential of the sender's tree
    level: Hops  # the sender's, hops
    answers: bool  # it is the other one's reply


SomerPlusMessages = (
    TreeMessages | Appraisal | Appraised | RouteReport | RoleReport | Advertisement | Crossing | Dissolve | Contention
)
