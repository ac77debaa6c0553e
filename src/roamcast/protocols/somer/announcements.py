"""Sections 4.3.2 and 5.1: what a tree publishes, told to its root.

A node that joins a tree sends its root not only its subscriptions (which climb as in any tree) but also what it is
going to publish. As with subscriptions, each node unites its own publications with those of its children's subtrees,
its *effective publications*, and tells its parent whenever they change. Where the site has causal dependencies, the
roles of causal nodes climb along: from these the roots build the causal graph of the whole network.
"""

from enum import StrEnum
from typing import Final

from mypy_extensions import mypyc_attr

from roamcast.causal import Specification
from roamcast.interests import Interest, union_all
from roamcast.protocols.api import Host, Timer
from roamcast.protocols.components import Component, Inputs
from roamcast.protocols.somer.messages import Announcement, RoleList
from roamcast.protocols.somer.parameters import SomerParameters
from roamcast.protocols.trees.dissemination import Dissemination


class AnnouncementsTimer(StrEnum):
    REPORT = "announcements.report"  # changed publications or roles are due at the parent


REPORT: Final[Timer] = (AnnouncementsTimer.REPORT, 0)
NOTHING: Final = Announcement(None, ())


@mypyc_attr(allow_interpreted_subclasses=True)
class Announcements(Component):
    def __init__(self, host: Host, parameters: SomerParameters, dissemination: Dissemination) -> None:
        super().__init__(host)
        self._dissemination = dissemination
        self._place = dissemination.place
        self._hold_s = parameters.report_hold_s
        aware = parameters.causality and host.site is not None
        self.specification: Specification | None = host.site.dependencies if aware and host.site is not None else None
        self._own: list[Interest] = []
        self._own_roles: RoleList = ()
        self._children: dict[int, Announcement] = {}
        self._reported = NOTHING
        self._pending = False

    def declare(self, inputs: Inputs) -> None:
        inputs.on(Announcement, self._on_announcement)
        inputs.on_timer(AnnouncementsTimer.REPORT, self._report)

    @property
    def publications(self) -> Interest | None:
        """All that this node's subtree publishes."""
        theirs = [a.publications for a in self._children.values() if a.publications is not None]
        own = union_all(self._own)
        return union_all([p for p in theirs if own is None or type(p) is type(own)] + self._own)

    @property
    def roles(self) -> RoleList:
        """Every causal node of the subtree with its role, by address."""
        merged = dict(self._own_roles)
        for announcement in self._children.values():
            merged.update(announcement.roles)
        return tuple(sorted(merged.items(), key=lambda item: item[0]))

    def advertise(self, interest: Interest) -> None:
        """The application is going to publish this."""
        self._own.append(interest)
        self.interests_changed()

    def interests_changed(self) -> None:
        """What the application publishes or subscribes to decides its causal role."""
        if self.specification is not None:
            role = self.specification.role(self._own, self._dissemination.subscriptions)
            self._own_roles = () if role.is_empty else ((self.host.address, role),)
        self._report_soon()

    def child_lost(self, child: int) -> None:
        if self._children.pop(child, None) is not None:
            self._report_soon()

    def attached(self) -> None:
        """A new parent knows nothing yet."""
        self._reported = NOTHING
        self._report_soon()

    def _on_announcement(self, sender: int, message: Announcement) -> None:
        if sender in self._dissemination.children and self._children.get(sender) != message:
            self._children[sender] = message
            self._report_soon()

    def _report_soon(self) -> None:
        if not self._pending:
            self._pending = True
            self.host.set_timer(self._hold_s, REPORT)

    def _report(self, key: int) -> None:
        self._pending = False
        if self._place.role == "member":
            announcement = Announcement(self.publications, self.roles)
            if announcement != self._reported:
                self._reported = announcement
                self.host.send(self._place.parent, announcement)
