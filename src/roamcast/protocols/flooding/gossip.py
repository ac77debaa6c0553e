"""Gossip: flooding in which a node repeats an event only with some probability.

In a dense network most repetitions tell nobody anything new. Gossip saves a share of them by tossing a coin; the first
`certain_hops` hops always repeat, because near the publisher one unlucky toss would end the event's journey.
"""

from typing import ClassVar

from roamcast.protocols import api
from roamcast.protocols.api import Host, require
from roamcast.protocols.flooding.flooding import Flooding, FloodingParameters
from roamcast.protocols.flooding.messages import Flood


class GossipParameters(FloodingParameters, frozen=True):
    probability: float = 0.7  # of repeating an event heard for the first time
    certain_hops: int = 2  # up to this hop every node repeats

    def __post_init__(self) -> None:
        super().__post_init__()
        require(0 <= self.probability <= 1, "probability", self.probability, "between 0 and 1")
        require(0 <= self.certain_hops <= 255, "certain_hops", self.certain_hops, "between 0 and 255")


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
