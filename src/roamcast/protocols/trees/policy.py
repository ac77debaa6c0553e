"""What a protocol decides about its trees, and what it is told of them.

`Membership` keeps a tree together whatever the protocol. Who becomes a root, which trees merge and what else follows
from a change is its *policy*: a component that overrides the methods it needs. Each is called at one place.
"""

from mypy_extensions import mypyc_attr

from roamcast.protocols.api import Host
from roamcast.protocols.components import Component, Inputs
from roamcast.protocols.trees.messages import Refresh, SequenceRequest
from roamcast.protocols.trees.place import Place


@mypyc_attr(allow_interpreted_subclasses=True)
class TreePolicy(Component):
    def __init__(self, host: Host, place: Place) -> None:
        super().__init__(host)
        self.place = place

    def declare(self, inputs: Inputs) -> None:
        """A policy need not handle any input."""

    # -- decisions -----------------------------------------------------------------------------------------------

    def starts_as_root(self) -> bool:
        """Whether this node is a root from the start."""
        return False

    def search_failed(self) -> bool:
        """No node replied to the last request. True: search again; false: the policy has taken care of the node."""
        return True

    def follows(self, message: Refresh) -> bool:
        """Whether this node leaves its parent for the sender of another tree's refresh, which stands above it."""
        return message.absorbs == self.place.root

    def agrees_to_merge(self, message: SequenceRequest) -> bool:
        """The root decides whether to absorb the tree of `message.absorb`."""
        return False

    def invites(self) -> bool:
        """Whether this node's refreshes, as a root's, ask members of other trees to come over."""
        return False

    # -- what happens --------------------------------------------------------------------------------------------

    def becoming_member(self, parent: int) -> None:
        """A parent has been chosen."""

    def becoming_root(self) -> None:
        """This node is about to be a root."""

    def searching(self) -> None:
        """This node has no tree any more; the first request for a parent has gone out."""

    def requested(self) -> None:
        """A request for a parent has gone out."""

    def refresh_due(self) -> None:
        """As a root: the period's refresh is about to start."""

    def refreshed(self) -> None:
        """The period's refresh has come from the parent, or started here."""

    def refresh_heard(self, sender: int, message: Refresh) -> None:
        """Any neighbour's refresh, before anything else is done about it."""

    def foreign_refresh(self, sender: int, message: Refresh) -> None:
        """A node of another tree is in range, and this node stays where it is."""

    def tree_changed(self) -> None:
        """This node is in another tree than before, or at another level of it."""

    def attached(self) -> None:
        """This node has told a new parent that it is its child."""

    def became_root(self) -> None:
        """This node is a root from now on."""

    def report_again(self) -> None:
        """The parent is told again what it should know already (`TreeParameters.report_again`)."""

    def child_joined(self, child: int) -> None:
        """A neighbour is a child from now on."""

    def child_lost(self, child: int) -> None:
        """A neighbour is no longer a child."""
