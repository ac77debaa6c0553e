"""What can be tuned about flooding and gossip."""

from roamcast.protocols import api
from roamcast.protocols.api import require


class FloodingParameters(api.Parameters, frozen=True):
    jitter_s: float = 0.01  # a first-time hearer repeats after a uniform time up to this; 0 repeats at once
    hops_max: int = 255  # an event that has come this far is not repeated

    def __post_init__(self) -> None:
        require(0 <= self.jitter_s <= 60, "jitter_s", self.jitter_s, "between 0 and 60 s")
        require(1 <= self.hops_max <= 255, "hops_max", self.hops_max, "between 1 and 255")


class GossipParameters(FloodingParameters, frozen=True):
    probability: float = 0.7  # of repeating an event heard for the first time
    certain_hops: int = 2  # up to this hop every node repeats

    def __post_init__(self) -> None:
        super().__post_init__()
        require(0 <= self.probability <= 1, "probability", self.probability, "between 0 and 1")
        require(0 <= self.certain_hops <= 255, "certain_hops", self.certain_hops, "between 0 and 255")
