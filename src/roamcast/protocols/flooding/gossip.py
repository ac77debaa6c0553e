"""Gossip: flooding in which a node repeats an event only with some probability.

In a dense network most repetitions reach no node that has not heard the event already. Gossip saves a share of them.
Within the first `certain_hops` hops every node repeats: near the publisher a few nodes that do not could end the flood.
"""

from typing import ClassVar

from mypy_extensions import mypyc_attr

from roamcast.protocols import api
from roamcast.protocols.api import Host
from roamcast.protocols.flooding.flooding import Flooding
from roamcast.protocols.flooding.messages import Flood
from roamcast.protocols.flooding.parameters import GossipParameters


@mypyc_attr(allow_interpreted_subclasses=True)
class Gossip(Flooding):
    name: ClassVar[str] = "gossip"
    summary: ClassVar[str] = "flooding in which a node repeats an event only with some probability"
    Parameters: ClassVar[type[api.Parameters]] = GossipParameters

    def __init__(self, host: Host, parameters: GossipParameters) -> None:
        super().__init__(host, parameters)
        self._probability = parameters.probability
        self._certain_hops = parameters.certain_hops

    def _repeats(self, message: Flood) -> bool:
        return message.hops <= self._certain_hops or self.host.random.random() < self._probability
