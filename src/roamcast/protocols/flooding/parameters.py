"""The parameters of flooding and gossip."""

from roamcast.protocols import api
from roamcast.protocols.api import require


class FloodingParameters(api.Parameters, frozen=True):
    jitter_s: float = 0.01  # a node repeats an event after a uniform random time of up to this; 0: at once
    hops_max: int = 255  # an event that has made this many hops is not repeated

    def __post_init__(self) -> None:
        require(0 <= self.jitter_s <= 60, "jitter_s", self.jitter_s, "between 0 and 60 s")
        require(1 <= self.hops_max <= 255, "hops_max", self.hops_max, "between 1 and 255")


class GossipParameters(FloodingParameters, frozen=True):
    probability: float = 0.7  # that a node repeats an event
    certain_hops: int = 2  # within this many hops of the publisher every node repeats

    def __post_init__(self) -> None:
        super().__post_init__()
        require(0 <= self.probability <= 1, "probability", self.probability, "between 0 and 1")
        require(0 <= self.certain_hops <= 255, "certain_hops", self.certain_hops, "between 0 and 255")
