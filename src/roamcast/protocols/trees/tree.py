"""A node of a publish/subscribe tree, put together from its parts.

| part | what it does |
|---|---|
| `Place` | role, root, parent, standing: the state that all parts read |
| `Neighbours` | the last refresh of each neighbour |
| `Joining` | finds a parent |
| `Membership` | keeps the place: refreshes, links, role changes |
| `Petitions` | asks the root for newer sequence numbers and merges |
| `Dissemination` | interests up, events up and down |
| a `TreePolicy` | what the protocol decides: who becomes a root, which trees merge |

For those who watch (`roamcast.checkers`): `role`, `root`, `parent`, `former`, `standing`, `children` (with the interest
reported by each), `effective_interest`.
"""

from typing import Any, ClassVar

from mypy_extensions import mypyc_attr

from roamcast.events import Event
from roamcast.interests import Interest
from roamcast.protocols.api import Host
from roamcast.protocols.components import ComposedProtocol
from roamcast.protocols.trees.appraisals import Appraisals
from roamcast.protocols.trees.children import Children
from roamcast.protocols.trees.dissemination import Dissemination
from roamcast.protocols.trees.joining import Appraiser, Joining
from roamcast.protocols.trees.membership import Membership
from roamcast.protocols.trees.messages import TreeMessages
from roamcast.protocols.trees.neighbours import Neighbours
from roamcast.protocols.trees.parameters import AppraisalParameters
from roamcast.protocols.trees.petitions import Petitions
from roamcast.protocols.trees.place import Place, Role
from roamcast.protocols.trees.policy import TreePolicy
from roamcast.protocols.trees.standing import Standing


@mypyc_attr(allow_interpreted_subclasses=True)
class TreeProtocol(ComposedProtocol):
    """The parts that all tree protocols share. A subclass adds its policy and further parts, then calls `govern`."""

    messages: ClassVar[Any] = TreeMessages

    def __init__(self, host: Host, parameters: AppraisalParameters) -> None:
        super().__init__(host)
        self.place = Place(host.address)
        self.neighbours = Neighbours(parameters.silence_s, parameters.neighbours_max)
        self.dissemination = Dissemination(host, parameters, self.place)
        appraiser = Appraiser(host) if parameters.metric == "SM" else Appraisals(host, parameters, self.dissemination)
        self.joining = Joining(host, parameters, self.place, self.neighbours, appraiser)
        self.membership = Membership(host, parameters, self.neighbours, self.joining, self.dissemination)
        self.petitions = Petitions(host, parameters, self.membership)
        self.compose(self.dissemination, appraiser, self.joining, self.membership, self.petitions)

    def govern(self, policy: TreePolicy) -> None:
        self.membership.policy = policy
        self.compose(policy)

    def start(self) -> None:
        self.membership.start()

    def leave(self) -> None:
        self.membership.leave()

    def subscribe(self, interest: Interest) -> None:
        self.dissemination.subscribe(interest)

    def unsubscribe(self, interest: Interest) -> None:
        self.dissemination.unsubscribe(interest)

    def publish(self, event: Event) -> None:
        self.dissemination.publish(event)

    # -- for those who watch -------------------------------------------------------------------------------------

    @property
    def role(self) -> Role:
        return self.place.role

    @property
    def root(self) -> int:
        return self.place.root

    @property
    def parent(self) -> int:
        return self.place.parent

    @property
    def standing(self) -> Standing:
        return self.place.standing

    @property
    def former(self) -> dict[int, Interest | None]:
        return self.place.former

    @property
    def children(self) -> Children:
        return self.dissemination.children

    @property
    def effective_interest(self) -> Interest | None:
        return self.dissemination.effective_interest
