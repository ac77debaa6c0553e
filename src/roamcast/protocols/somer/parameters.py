"""SOMER's parameters. Sections and tables are those of the thesis; ranges that it gives are quoted in brackets."""

from roamcast.protocols.api import require
from roamcast.protocols.trees.parameters import AppraisalParameters


class SomerParameters(AppraisalParameters, frozen=True):
    # Root selection, merging, new roots (4.3.1)
    root_density: float = 0.09  # D_T: probability that a node starts as a root [1-18 %, best 9 %]
    merging: bool = True  # trees whose roots are close merge
    merging_threshold: int = 1  # hops between two roots up to which their trees merge [1-3]
    new_roots: bool = True  # nodes far from their root, or without one, may become roots
    new_root_threshold: int = 7  # above this level a node draws once per refresh [5-10]
    alpha: float = 2.0  # factor by which the probability of that draw exceeds D_T
    out_period_s: float = 15.0  # a node without a tree for this long draws too
    inviting_periods: float = 1.5  # refresh periods in which a new root's refreshes invite
    dissolve_attempts: int = 2  # unanswered requests for a parent after which a node lets its children go
    # Inter-tree routes (4.3.2)
    route_lifetime_periods: float = 1.5  # refresh periods after which a silent neighbour is no next hop
    route_hold_s: float = 0.05  # time after which a gained or lost route to another tree is reported
    distance_hold_s: float = 0.3  # the same for routes that only got longer or shorter
    routes_max: int = 256  # foreign trees that a node remembers; a bound on memory
    # Advertisements (4.3.2)
    advertisement_period_s: float = 10.0  # time between two advertisements of a root
    first_advertisement_s: float = 1.0  # time until a new root advertises first
    relay_hold_s: float = 2.0  # mean time after which what is new in an advertisement is relayed
    relay_hold_jitter: float = 0.5  # share by which that time is shorter or longer, at random
    entry_lifetime_periods: float = 3.0  # advertisement periods after which a silent root is forgotten
    entries_max: int = 1024  # roots that a root remembers; a bound on memory
    entries_per_advertisement: int = 8  # further entries go into further advertisements
    # Causal dependencies (chapter 5)
    causality: bool = True  # trees contend for nodes where the site has causal dependencies
    delta: float = 0.325  # potentials closer than this ratio do not contend [0.2-0.4, best 0.325]
    eta: float = 1.0  # keeps the factors of the potential from vanishing
    equal_potentials: bool = False  # a placebo: all trees have the same potential, so that levels alone decide

    def __post_init__(self) -> None:
        super().__post_init__()
        require(0 <= self.relay_hold_jitter <= 1, "relay_hold_jitter", self.relay_hold_jitter, "between 0 and 1")
        require(0 <= self.root_density <= 1, "root_density", self.root_density, "between 0 and 1")
        require(self.alpha >= 1, "alpha", self.alpha, "at least 1")
        for field in ("merging_threshold", "new_root_threshold", "dissolve_attempts", "routes_max", "entries_max"):
            require(getattr(self, field) >= 1, field, getattr(self, field), "at least 1")
        require(
            self.entries_per_advertisement >= 1,
            "entries_per_advertisement",
            self.entries_per_advertisement,
            "at least 1",
        )
        for field in ("inviting_periods", "route_hold_s", "distance_hold_s", "delta"):
            require(getattr(self, field) >= 0, field, getattr(self, field), "at least 0")
        for field in ("first_advertisement_s", "relay_hold_s"):
            require(getattr(self, field) >= 0, field, getattr(self, field), "at least 0")
        for field in ("out_period_s", "advertisement_period_s", "eta"):
            require(getattr(self, field) > 0, field, getattr(self, field), "above 0")
        for field in ("route_lifetime_periods", "entry_lifetime_periods"):
            require(getattr(self, field) > 0, field, getattr(self, field), "above 0")
