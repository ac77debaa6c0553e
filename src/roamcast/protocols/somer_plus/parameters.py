"""The parameters of `somer-plus`: those of SOMER, a switch for each addition, and the additions' own."""

from roamcast.protocols.api import require
from roamcast.protocols.trees.parameters import RootParameters


class SomerPlusParameters(RootParameters, frozen=True):
    linger_s: float = 5.0  # a node serves the old link to a parent this long; advertisements spread meanwhile
    # The additions, each with its switch
    report_again: int = 6  # refreshes after which an unchanged interest is reported again; 0: never
    recent_s: float = 6.0  # events this recent are handed to a child that attaches; 0: none
    rising_odds: bool = True  # the probability of a node without a tree grows by alpha with each draw
    early_news: bool = True  # a root whose tree changes advertises before its period is over
    rest_rules: bool = True  # a root at rest sends updates at once and drops events later
    heirs: bool = True  # a root says which trees it has absorbed; events for them go to it
    newcomers: bool = True  # an event goes down a tree again for those who came with an absorbed one
    salvage: bool = True  # a copy that cannot go on returns and takes another path, or waits for one
    neighbour_ascent: bool = True  # events of a node without a parent climb the tree of a neighbour
    maturity: bool = True  # a new root sends its first events again when it knows all other roots
    settled_contention: bool = True  # potentials are compared as they would be after the change
    # Advertisements
    news_hold_s: float = 1.0  # time for which an early entry of the own tree waits
    news_spacing_s: float = 1.0  # time between the first two early entries; it doubles with each
    news_spacing_max_s: float = 4.0  # time between any two; former links should live longer
    quick_hold_s: float = 0.1  # time for which updates wait at a root that is at rest or young
    young_s: float = 5.0  # time for which a new root is young
    rest_periods: float = 10.0  # refresh periods without a missed neighbour after which a root is at rest
    retell_after_s: float = 2.0  # an entry that a neighbouring root does not know after this time was lost
    entry_lifetime_periods: float = 3.5  # advertisement periods after which a silent root is forgotten
    # Events between trees
    legs_depth_max: int = 64  # roots on a planned path; trees farther away are not served
    strand_retry_s: float = 0.8  # time until an event without a path to some trees is tried again
    stranded_max: int = 256  # events that wait for a path; overflow drops the oldest
    tries_max: int = 3  # an event that returned or waited more often is dropped
    tries_at_rest_max: int = 9  # the same at a root that is at rest
    mature_s: float = 3.0  # time after which a new root has heard of all others

    def __post_init__(self) -> None:
        super().__post_init__()
        for field in ("legs_depth_max", "stranded_max"):
            require(getattr(self, field) >= 1, field, getattr(self, field), "at least 1")
        for field in ("tries_max", "tries_at_rest_max"):
            require(0 <= getattr(self, field) < 15, field, getattr(self, field), "from 0 to 14")
        for field in ("strand_retry_s", "entry_lifetime_periods", "rest_periods"):
            require(getattr(self, field) > 0, field, getattr(self, field), "above 0")
        for field in ("news_hold_s", "news_spacing_s", "quick_hold_s", "young_s", "retell_after_s", "mature_s"):
            require(getattr(self, field) >= 0, field, getattr(self, field), "at least 0")
        require(
            self.news_spacing_max_s >= self.news_spacing_s,
            "news_spacing_max_s",
            self.news_spacing_max_s,
            "at least news_spacing_s",
        )
