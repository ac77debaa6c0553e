"""SOMER-plus: SOMER with what was found to improve it, each addition with its own switch.

| part | what it does | additions |
|---|---|---|
| `roots.py` | who is a root, which trees merge, where new trees begin | `rising_odds` |
| `borders.py` | routes to neighbouring trees | |
| `linkstate.py`, `overlay.py` | all roots know how all roots are connected | `early_news`, `rest_rules`, `heirs` |
| `crossings.py` | events follow paths laid out by roots | `salvage`, `newcomers`, `neighbour_ascent`, `maturity` |
| `contention.py` | trees contend for nodes | `settled_contention` |

What all of it is built upon, and has no switch: roots advertise their neighbours and compute shortest paths, where the
thesis follows the reverse path of advertisements.

Hand-over. A node that changes to another tree by choice, or becomes a root while in a tree, keeps the link to the
former parent for `linger_s`. Meanwhile events come down both links, so none is lost while interests and routes settle.

The campaign `campaigns/somer-ablation.toml` measures what each addition gains and costs.
"""

from typing import Any, ClassVar

from mypy_extensions import mypyc_attr

from roamcast.interests import Interest
from roamcast.protocols import api
from roamcast.protocols.api import Host
from roamcast.protocols.somer_plus.borders import Borders
from roamcast.protocols.somer_plus.contention import Contentions
from roamcast.protocols.somer_plus.crossings import Crossings
from roamcast.protocols.somer_plus.linkstate import LinkStates
from roamcast.protocols.somer_plus.messages import SomerPlusMessages
from roamcast.protocols.somer_plus.parameters import SomerPlusParameters
from roamcast.protocols.somer_plus.roots import Roots
from roamcast.protocols.trees.tree import TreeProtocol


@mypyc_attr(allow_interpreted_subclasses=True)
class SomerPlus(TreeProtocol):
    name: ClassVar[str] = "somer-plus"
    summary: ClassVar[str] = "SOMER with link state among roots, early news and salvaged events"
    Parameters: ClassVar[type[api.Parameters]] = SomerPlusParameters
    messages: ClassVar[Any] = SomerPlusMessages

    def __init__(self, host: Host, parameters: SomerPlusParameters) -> None:
        super().__init__(host, parameters)
        tree, events = self.membership, self.dissemination
        self.roots = Roots(host, parameters, tree, self.petitions, parameters.rising_odds)
        self.borders = Borders(host, parameters, tree)
        self.link_state = LinkStates(host, parameters, tree, self.borders, events)
        self.crossings = Crossings(host, parameters, tree, self.link_state, events)
        self.contentions = Contentions(host, parameters, tree, self.link_state, events)
        self.roots.connect(self.link_state, self.crossings, self.contentions)
        self.govern(self.roots)
        self.compose(self.borders, self.link_state, self.crossings, self.contentions)
        events.outlet = self.crossings

    def subscribe(self, interest: Interest) -> None:
        super().subscribe(interest)
        self.contentions.take_role()

    def unsubscribe(self, interest: Interest) -> None:
        super().unsubscribe(interest)
        self.contentions.take_role()

    def advertise(self, interest: Interest) -> None:
        self.contentions.advertise(interest)
