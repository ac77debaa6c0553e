"""DSAPST: one tree that keeps rearranging itself so that nodes with common interests lie next to each other.

What is from where
------------------
From the papers: in Cao and Shen's protocol, subscribers that have interests in common and are few hops apart get
connected, so that an event passes fewer nodes that do not want it. Pei's thesis (section 4.2.2): each node except the
root and those at level 1 periodically sends a message up through a candidate parent picked at random, until it meets a
new grafting node, the first whose effective interest overlaps.

Our reconstruction, since the paper's own rules are not at hand: `probing.py`. Joining, roots, merging and the settings
are as in PS-MAODV. No change of place looks at the distance from the root, which is what the thesis blames for this
protocol's latency.
"""

from typing import Any, ClassVar

from mypy_extensions import mypyc_attr

from roamcast.protocols import api
from roamcast.protocols.api import Host
from roamcast.protocols.trees.messages import Probe, ProbeReply, TreeMessages
from roamcast.protocols.trees.parameters import DsapstParameters
from roamcast.protocols.trees.probing import Probing
from roamcast.protocols.trees.ps_maodv import SingleTree


@mypyc_attr(allow_interpreted_subclasses=True)
class Dsapst(SingleTree):
    name: ClassVar[str] = "dsapst"
    summary: ClassVar[str] = "one tree that rearranges itself by overlapping interests"
    Parameters: ClassVar[type[api.Parameters]] = DsapstParameters
    messages: ClassVar[Any] = TreeMessages | Probe | ProbeReply

    def __init__(self, host: Host, parameters: DsapstParameters) -> None:
        super().__init__(host, parameters)
        self.membership.shows_interest = True
        self.probing = Probing(host, parameters, self.membership, self.dissemination)
        self.compose(self.probing)

    def start(self) -> None:
        super().start()
        self.probing.start()
