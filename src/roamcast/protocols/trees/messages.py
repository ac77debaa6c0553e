"""The messages of the publish/subscribe tree, shared by all tree protocols.

Where a message tells a node's standing, `root` is the address of its tree's root, `sequence` the newest refresh of that
root the node knows of, and `level` its distance from the root in hops.
"""

from typing import Annotated, ClassVar

from msgspec import Meta

from roamcast.events import Event
from roamcast.fields import Address as Node
from roamcast.fields import AddressOrNobody as Address
from roamcast.fields import Counter as Sequence
from roamcast.fields import Level as Hops
from roamcast.fields import Quantity
from roamcast.interests import Interest
from roamcast.protocols.api import NOBODY, Category, Message

Path = Annotated[tuple[Node, ...], Meta(max_length=4096)]


class Refresh(Message, frozen=True, tag=16):
    """Broadcast by the root each period and passed on by every member: the tree is alive, and I stand here in it."""

    root: Node
    sequence: Sequence
    level: Hops
    parent: Address  # the sender's own parent; NOBODY at the root
    absorbs: Address = NOBODY  # root of a tree whose members should join the sender
    invites: bool = False  # members of other trees that would rise under the sender may join it
    interest: Interest | None = None  # what the sender's subtree wants, where neighbours judge it
    potential: Quantity = 0.0  # the tree's expansion potential, where trees contend for nodes


class JoinRequest(Message, frozen=True, tag=17):
    """Broadcast by a node without a tree: who will be my parent?"""

    sequence: Sequence  # the sender's last standing; 0 if it never had one
    level: Hops  # hops
    insists: bool = False  # nodes too low to be safe parents should get a newer sequence number from the root
    interest: Interest | None = None  # what the sender's subtree wants, where candidates judge it


class JoinReply(Message, frozen=True, tag=18):
    """Unicast to the node that asked: I can be your parent."""

    root: Node
    sequence: Sequence
    level: Hops
    overhead: Quantity = 0.0  # events per published event that the asker's interest would add to the path to the root


class Subscription(Message, frozen=True, tag=19):
    """Unicast to the parent: I am your child, and this is all that my subtree wants. Replaces what was said before."""

    category: ClassVar[Category] = "publish_subscribe"

    interest: Interest | None


class Leave(Message, frozen=True, tag=20):
    """Unicast to a former parent: forget me, I have another parent."""

    category: ClassVar[Category] = "publish_subscribe"


class Disown(Message, frozen=True, tag=21):
    """Unicast to a node that takes the sender for its parent: you are not on my list."""

    root: Address
    sequence: Sequence
    level: Hops


class SequenceRequest(Message, frozen=True, tag=22):
    """Unicast from child to parent up to the root: a node needs a sequence number newer than its own."""

    needed: Sequence  # the lowest sequence number that helps
    absorb: Address = NOBODY  # root of a lesser tree that was met and should be merged into this one
    distance: Hops = 0  # hops from root to root on the path through the node that met it; 0: no other root
    path: Path = ()  # nodes passed before the sender, first the one that asked


class SequenceGrant(Message, frozen=True, tag=23):
    """The answer, back along the path: every node on it has this sequence number now."""

    root: Node
    sequence: Sequence
    level: Hops  # the sender's, hops
    absorb: Address = NOBODY
    path: Path = ()  # nodes still to be passed after the receiver, the next one last


class EventMessage(Message, frozen=True):
    """Base of the messages that carry an event."""

    category: ClassVar[Category] = "publish_subscribe"

    hops: Hops  # hops so far, this one included
    climbs: bool  # sent toward the root
    event: Event


class Publication(EventMessage, frozen=True, tag=24):
    """Unicast along a link of the tree: an event on its way up to the root, or down to subscribers."""


class Appraisal(Message, frozen=True, tag=25):
    """SP-COMBO, from child to parent: what would it cost to carry this interest up to here?"""

    asker: Node  # the node that wants to join
    interest: Interest
    overhead: Quantity  # events per published event, summed over the nodes passed
    path: Path  # nodes passed before the sender, first the candidate parent


class Appraised(Message, frozen=True, tag=26):
    """The sum, back along the path to the candidate parent."""

    asker: Node
    overhead: Quantity  # events per published event
    path: Path  # nodes still to be passed after the receiver, the next one last


class Probe(Message, frozen=True, tag=27):
    """DSAPST, up a path to the root: where would this interest meet one it overlaps?"""

    prober: Node
    interest: Interest
    path: Path  # nodes passed, the neighbour that was asked first; none of them shares the interest


class ProbeReply(Message, frozen=True, tag=28):
    """The node that shares the interest answers, back along the path."""

    prober: Node
    grafting: Address  # who it is
    relays: Path  # nodes on the path to it that do not share the interest, nearest first
    path: Path  # nodes still to be passed after the receiver, the next one last


class Dissolve(Message, frozen=True, tag=36):
    """Where there are several trees, broadcast by a node that finds no parent: my children should look for one."""


TreeMessages = (
    Refresh | JoinRequest | JoinReply | Subscription | Leave | Disown | SequenceRequest | SequenceGrant | Publication
)
