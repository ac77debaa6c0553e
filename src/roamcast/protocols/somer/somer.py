"""SOMER as published in Pei's thesis: several publish/subscribe trees whose roots form a network of their own.

| section of the thesis | here |
|---|---|
| 4.2 inner-tree level: joining, metrics, subscriptions, publications | `trees/` (shared with the rivals) |
| 4.3.1 root selection, tree merging, new root selection | `roots.py` |
| 4.3.2 inter-tree route establishment, theorem 4.1 | `routes.py` |
| 4.3.2 advertisements, super publishers and subscribers | `announcements.py`, `directory.py` |
| 4.3.2 inter-tree event routing | `crossings.py` |
| 5.1 causal graph construction | `announcements.py`, `roamcast.causal` |
| 5.2 contention for nodes | `contention.py` |

What is added to the thesis, and why
------------------------------------
Against loops:
- A parent must stand above its child (`trees/standing.py`). The thesis does not say how a node that has lost its parent
  avoids joining its own subtree. A node that finds only neighbours below it has them ask their root for a newer
  sequence number (`trees/petitions.py`).
- A node whose neighbours are all in its own subtree tells its children to look for parents themselves (`Dissolve`);
  otherwise that rule would keep it out of all trees.
- A root sends an event on to each target once, and copies have a limit of hops (`crossings.py`).

Against loss of state:
- A subscription climbs until an ancestor's interest covers it, not only overlaps (`trees/dissemination.py`).
- Parent and child tell each other if they disagree on being that (`Disown`, `Leave`), and a refresh that comes by while
  a node searches counts as a reply (`trees/joining.py`).
- Routes between trees can end: reports replace earlier ones, and expire with the refresh that they came from. The
  second best next hop is remembered; a copy whose frame failed takes it (`routes.py`, `crossings.py`).
- A root that is not heard of for three periods is forgotten; a new root advertises at once (`directory.py`).
- A node that changes trees by choice keeps the link to its former parent for `linger_s`, events that should climb wait
  a little for a parent, and a node's first events wait until its first tree has formed (`trees/`). The rivals have the
  same.

Against waste:
- A root relays the advertisements that arrive within half a second together, and not to roots that sent it the same
  (`directory.py`). Reports wait a moment for further changes.
- A copy between trees serves the nodes that it passes (`crossings.py`).

What the thesis has and later work improved on is in the protocol `somer-plus`.
"""

from typing import Any, ClassVar

from mypy_extensions import mypyc_attr

from roamcast.interests import Interest
from roamcast.protocols import api
from roamcast.protocols.api import Host
from roamcast.protocols.somer.announcements import Announcements
from roamcast.protocols.somer.contention import Contentions
from roamcast.protocols.somer.crossings import Crossings
from roamcast.protocols.somer.directory import Directory
from roamcast.protocols.somer.messages import SomerMessages
from roamcast.protocols.somer.parameters import SomerParameters
from roamcast.protocols.somer.roots import Roots
from roamcast.protocols.somer.routes import BorderRoutes
from roamcast.protocols.trees.tree import TreeProtocol


@mypyc_attr(allow_interpreted_subclasses=True)
class Somer(TreeProtocol):
    name: ClassVar[str] = "somer"
    summary: ClassVar[str] = "several trees that merge, split and contend, their roots an overlay (SOMER)"
    Parameters: ClassVar[type[api.Parameters]] = SomerParameters
    messages: ClassVar[Any] = SomerMessages

    def __init__(self, host: Host, parameters: SomerParameters) -> None:
        super().__init__(host, parameters)
        tree, events = self.membership, self.dissemination
        self.roots = Roots(host, parameters, tree, self.petitions)
        self.routes = BorderRoutes(host, parameters, tree)
        self.announcements = Announcements(host, parameters, events)
        self.directory = Directory(host, parameters, self.routes, self.announcements, events)
        self.crossings = Crossings(host, parameters, self.routes, self.directory, events)
        self.contentions = Contentions(host, parameters, tree, self.announcements, self.directory)
        self.roots.connect(self.routes, self.announcements, self.directory, self.contentions)
        self.govern(self.roots)
        self.compose(self.routes, self.announcements, self.directory, self.crossings, self.contentions)
        events.outlet = self.crossings

    def subscribe(self, interest: Interest) -> None:
        super().subscribe(interest)
        self.announcements.interests_changed()

    def unsubscribe(self, interest: Interest) -> None:
        super().unsubscribe(interest)
        self.announcements.interests_changed()

    def advertise(self, interest: Interest) -> None:
        self.announcements.advertise(interest)
