"""The parameters of publish/subscribe trees. Each protocol's own parameters extend these.

The three protocols with a single tree come in three *settings*, because no source gives all their timers:

- `table`: the periods of table 6.1 of the thesis, in which all four protocols refresh every 10 s.
- `published`: the timers of their own sources. Those of PS-MAODV are taken from REDS, the middleware of the same group:
  hellos every 4 s, a parent is lost after 3 of them, replies are awaited for 1.5 s. The papers on SHOPPARENT and DSAPST
  give no timers; they get the same.
- `tuned`: the strongest we know: a refresh every 4 s, replies awaited for 0.5 s, recent events handed to children that
  attach, and for DSAPST a probe through the own parent that reveals a broken link early.

A parameter that is given explicitly overrides the setting.
"""

from typing import Any, ClassVar, Final, Literal

from msgspec.structs import force_setattr

from roamcast.protocols import api
from roamcast.protocols.api import require
from roamcast.seeds import Random

BY_SETTING: Final = -1.0
"""Default of a parameter whose value follows from `setting`."""

Settings = dict[str, dict[str, Any]]


class TreeParameters(api.Parameters, frozen=True):
    refresh_period_s: float = 10.0  # time between two refreshes, which run from the root through the tree (table 6.1)
    refresh_losses_max: int = 3  # periods without a new refresh until the parent counts as lost
    jitter: float = 0.1  # share by which periods and waits are longer, at random (table 6.1: 5-10 %)
    forward_jitter_s: float = 0.01  # a node forwards a refresh after a random time up to this, against collisions
    join_wait_s: float = 0.5  # time for which a joining node collects replies before it takes the best (4.2)
    offer_wait_s: float = 0.05  # the same after a refresh of another tree was heard; further ones follow at once
    join_attempts: int = 3  # requests without a reply before a node becomes a root or lets its children go
    search_slowdown_max: int = 4  # the n-th request in a row waits n times as long, up to this
    start_within_s: float = 0.1  # a node sends its first frame within this time of its start, at random
    settle_s: float = 2.0  # time for which events wait after their node has joined its first tree
    report_hold_s: float = 0.02  # time for which a changed interest waits for further changes
    report_again: int = 0  # refreshes after which an unchanged interest is reported again; 0: never, as published
    linger_s: float = 2.0  # time for which a node that changes its parent still serves the old link
    waiting_max: int = 256  # events kept while there is no parent; overflow drops the oldest
    waiting_max_s: float = 4.0  # longest time that they are kept; three requests for a parent take less
    recent_s: float = 0.0  # events this recent are handed to a child that attaches; 0: none, as published
    request_patience_s: float = 0.4  # shortest time between two equal requests to the root
    hops_max: int = 255  # an event that has made this many hops is dropped: it is in a loop
    path_max: int = 64  # a request that has made this many hops toward the root is dropped
    neighbours_max: int = 512  # neighbours whose state is kept; a bound on memory
    children_max: int = 256  # further ones are refused as children; a bound on memory
    metric: Literal["SM", "PM", "CM"] = "SM"  # how parents are chosen: shortest path, overhead, both (4.2.2)

    settings: ClassVar[Settings] = {}

    def __post_init__(self) -> None:
        for field in ("refresh_period_s", "join_wait_s", "offer_wait_s"):
            require(getattr(self, field) > 0, field, getattr(self, field), "above 0")
        for field in ("forward_jitter_s", "report_hold_s", "linger_s", "waiting_max_s", "recent_s"):
            require(getattr(self, field) >= 0, field, getattr(self, field), "at least 0")
        for field in ("start_within_s", "settle_s", "request_patience_s"):
            require(getattr(self, field) >= 0, field, getattr(self, field), "at least 0")
        for field in ("refresh_losses_max", "join_attempts", "search_slowdown_max", "waiting_max"):
            require(getattr(self, field) >= 1, field, getattr(self, field), "at least 1")
        for field in ("path_max", "hops_max"):
            require(getattr(self, field) >= 1, field, getattr(self, field), "at least 1")
        for field in ("neighbours_max", "children_max"):
            require(getattr(self, field) >= 1, field, getattr(self, field), "at least 1")
        require(0 <= self.report_again <= 10_000, "report_again", self.report_again, "between 0 and 10000")
        require(0 <= self.jitter < 1, "jitter", self.jitter, "at least 0 and below 1")

    @property
    def silence_s(self) -> float:
        """Without a new refresh for this long, the path to the root is lost."""
        return self.refresh_losses_max * self.refresh_period_s * (1 + self.jitter)

    def stretched(self, duration_s: float, random: Random) -> float:
        """A duration with jitter."""
        return duration_s * (1 + self.jitter * random.random())


class AppraisalParameters(TreeParameters, frozen=True):
    """What the metrics PM and CM need: how the overhead of an interest is computed."""

    receive_cost: float = 1.0  # weight of an event received on the path to the root
    transmit_cost: float = 1.0  # weight of an event sent there
    pool: float = 10_000.0  # different contents that events are spread over
    appraisal_wait_s: float = 0.15  # time for which a node that heard a refresh collects appraised offers

    def __post_init__(self) -> None:
        super().__post_init__()
        for field in ("receive_cost", "transmit_cost"):
            require(getattr(self, field) >= 0, field, getattr(self, field), "at least 0")
        for field in ("pool", "appraisal_wait_s"):
            require(getattr(self, field) > 0, field, getattr(self, field), "above 0")


class RootParameters(AppraisalParameters, frozen=True):
    """What networks with several trees share. Ranges that the thesis gives are quoted in brackets."""

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
    # Advertisements (4.3.2)
    advertisement_period_s: float = 10.0  # time between two advertisements of a root
    relay_hold_s: float = 2.0  # mean time after which what is new in an advertisement is relayed
    relay_hold_jitter: float = 0.5  # share by which that time is shorter or longer, at random
    entries_max: int = 1024  # roots that a root remembers; a bound on memory
    # Causal dependencies (chapter 5)
    causality: bool = True  # trees contend for nodes where the site has causal dependencies
    delta: float = 0.325  # potentials closer than this ratio do not contend [0.2-0.4, best 0.325]
    eta: float = 1.0  # keeps the factors of the potential from vanishing

    def __post_init__(self) -> None:
        super().__post_init__()
        for field in ("root_density", "relay_hold_jitter"):
            require(0 <= getattr(self, field) <= 1, field, getattr(self, field), "between 0 and 1")
        for field in ("alpha", "merging_threshold", "new_root_threshold", "dissolve_attempts", "entries_max"):
            require(getattr(self, field) >= 1, field, getattr(self, field), "at least 1")
        for field in ("inviting_periods", "route_hold_s", "distance_hold_s", "relay_hold_s", "delta"):
            require(getattr(self, field) >= 0, field, getattr(self, field), "at least 0")
        for field in ("out_period_s", "advertisement_period_s", "route_lifetime_periods", "eta"):
            require(getattr(self, field) > 0, field, getattr(self, field), "above 0")


class SingleTreeParameters(AppraisalParameters, frozen=True):
    setting: Literal["table", "published", "tuned"] = "tuned"  # where the timers are from; see the module's text
    refresh_period_s: float = BY_SETTING  # time between refreshes of the tree: table 10, published 4, tuned 4
    join_wait_s: float = BY_SETTING  # wait for replies to a request: table 0.5 (our guess), published 1.5, tuned 0.5
    recent_s: float = BY_SETTING  # age of events handed to a child that attaches: table 0, published 0, tuned 6
    lead_after_s: float = 0.6  # earliest time at which a node that found no tree at its start becomes a root
    lead_within_s: float = 2.0  # latest time
    lead_lateness: float = 8.0  # power that skews the random time between the two toward its end; see `leadership.py`
    merge_patience_s: float = 0.5  # shortest time between two attempts at the same merge
    merge_tries: int = 4  # requests for a merge after a node of the other tree was heard

    settings: ClassVar[Settings] = {
        "table": {"refresh_period_s": 10.0, "join_wait_s": 0.5, "recent_s": 0.0},
        "published": {"refresh_period_s": 4.0, "join_wait_s": 1.5, "recent_s": 0.0},
        "tuned": {"refresh_period_s": 4.0, "join_wait_s": 0.5, "recent_s": 6.0},
    }

    def __post_init__(self) -> None:
        for field, value in type(self).settings[self.setting].items():
            if getattr(self, field) == BY_SETTING:
                force_setattr(self, field, value)
        super().__post_init__()
        require(self.lead_after_s >= 0, "lead_after_s", self.lead_after_s, "at least 0")
        require(self.lead_within_s >= self.lead_after_s, "lead_within_s", self.lead_within_s, "at least lead_after_s")
        require(self.lead_lateness >= 1, "lead_lateness", self.lead_lateness, "at least 1")
        require(self.merge_patience_s > 0, "merge_patience_s", self.merge_patience_s, "above 0")
        require(self.merge_tries >= 1, "merge_tries", self.merge_tries, "at least 1")


class PsMaodvParameters(SingleTreeParameters, frozen=True):
    """PS-MAODV has no parameters of its own."""


class SpComboParameters(SingleTreeParameters, frozen=True):
    metric: Literal["SM", "PM", "CM"] = "CM"  # the combination is what makes it SP-COMBO


class DsapstParameters(SingleTreeParameters, frozen=True):
    probe_period_s: float = 10.0  # time between two searches of a node for a better parent; the thesis' tree period
    probe_level_min: int = 2  # nodes nearer to the root do not probe (thesis, 4.2.2)
    chance_min: float = 0.05  # added to the overlap when a candidate is drawn, so that each has a chance
    probes_parent: Literal["by-setting", "yes", "no"] = "by-setting"  # keep-alive; table and published no, tuned yes

    settings: ClassVar[Settings] = SingleTreeParameters.settings

    def __post_init__(self) -> None:
        if self.probes_parent == "by-setting":
            force_setattr(self, "probes_parent", "yes" if self.setting == "tuned" else "no")
        super().__post_init__()
        for field in ("probe_period_s", "chance_min"):
            require(getattr(self, field) > 0, field, getattr(self, field), "above 0")
        require(self.probe_level_min >= 1, "probe_level_min", self.probe_level_min, "at least 1")
