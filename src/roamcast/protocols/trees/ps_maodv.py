"""PS-MAODV: one self-repairing tree over all nodes, derived from multicast AODV.

What is from where
------------------
From the papers: Mottola, Cugola and Picco's COMAN keeps a single tree over all nodes that repairs itself, with rules
derived from MAODV. Pei's thesis measures it as PS-MAODV with the shortest-path metric (sections 4.2.2 and 6.2.4), under
the one refresh period of its table 6.1, 10 s (setting `table`).

From its kin, since COMAN's own rules are not at hand: the tree overlay of the same group's REDS middleware gives the
period of the group hello (4 s), the number of losses (3) and the wait for replies (1.5 s; setting `published`). It also
gives these rules: a node may reply to a repair if it has at least as new a sequence number and strictly fewer hops; a
node that finds no parent leads its fragment; of two leaders that meet the one with the higher address initiates the
merge and survives; there is no ring of growing search ranges.

Our reconstruction: REDS starts with every node as the leader of itself; here a node first listens (`leadership.py`).
The merge, and the rule for a node whose neighbours all stand too low, are those of `petitions.py`. A parent also counts
as lost when the link gives up on a frame, as in all tree protocols here. The setting `tuned` waits 0.5 s for replies,
because a longer wait only makes every repair slower.

In a static connected network all nodes are in one tree within `lead_within_s`, plus about half a second per merge.
"""

from typing import ClassVar

from mypy_extensions import mypyc_attr

from roamcast.protocols import api
from roamcast.protocols.api import Host
from roamcast.protocols.trees.leadership import Leadership
from roamcast.protocols.trees.parameters import PsMaodvParameters, SingleTreeParameters
from roamcast.protocols.trees.tree import TreeProtocol


@mypyc_attr(allow_interpreted_subclasses=True)
class SingleTree(TreeProtocol):
    """A tree over all nodes."""

    def __init__(self, host: Host, parameters: SingleTreeParameters) -> None:
        super().__init__(host, parameters)
        self.leadership = Leadership(host, parameters, self.membership, self.petitions)
        self.govern(self.leadership)

    def start(self) -> None:
        self.leadership.start()
        super().start()


@mypyc_attr(allow_interpreted_subclasses=True)
class PsMaodv(SingleTree):
    name: ClassVar[str] = "ps-maodv"
    summary: ClassVar[str] = "one self-repairing publish/subscribe tree after multicast AODV (COMAN)"
    Parameters: ClassVar[type[api.Parameters]] = PsMaodvParameters
