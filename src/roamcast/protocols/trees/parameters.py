"""What can be tuned about a publish/subscribe tree; each protocol's own parameters extend these."""

from roamcast.protocols import api
from roamcast.protocols.api import require


class TreeParameters(api.Parameters, frozen=True):
    refresh_period_s: float = 10.0  # the root's refresh runs through the tree so often (thesis, table 6.1)
    refresh_losses_max: int = 3  # so many periods without a new refresh, and the parent counts as lost
    jitter: float = 0.1  # periods and waits are stretched by a random share of up to this (table 6.1: 5-10 %)
    forward_jitter_s: float = 0.01  # a refresh is passed on after a uniform time up to this, against collisions
    join_wait_s: float = 0.5  # how long a joining node collects replies before it takes the best
    offer_wait_s: float = 0.05  # the same after a refresh came by unasked: others of the same wave come right behind it
    join_attempts: int = 3  # requests without any reply before a node helps itself
    report_hold_s: float = 0.02  # a changed interest waits so long for further changes before it climbs
    linger_s: float = 2.0  # a node that changes its parent keeps the old link working for so long
    waiting_max: int = 256  # climbing events kept while there is no parent; beyond it the oldest is dropped
    waiting_max_s: float = 4.0  # nor are they kept longer; three requests for a parent take less

    def __post_init__(self) -> None:
        for field in ("refresh_period_s", "join_wait_s", "offer_wait_s"):
            require(getattr(self, field) > 0, field, getattr(self, field), "above 0")
        for field in ("forward_jitter_s", "report_hold_s", "linger_s", "waiting_max_s"):
            require(getattr(self, field) >= 0, field, getattr(self, field), "at least 0")
        for field in ("refresh_losses_max", "join_attempts", "waiting_max"):
            require(getattr(self, field) >= 1, field, getattr(self, field), "at least 1")
        require(0 <= self.jitter < 1, "jitter", self.jitter, "at least 0 and below 1")

    @property
    def silence_s(self) -> float:
        """Without a new refresh for this long, the way to the root is lost."""
        return self.refresh_losses_max * self.refresh_period_s * (1 + self.jitter)


class PsMaodvParameters(TreeParameters, frozen=True):
    refresh_period_s: float = 4.0  # group hello; REDS's value


class SpComboParameters(PsMaodvParameters, frozen=True):
    receive_cost: float = 1.0  # weight of an event received on the path to the root
    transmit_cost: float = 1.0  # weight of an event sent there
    pool: float = 10_000.0  # different contents that events are spread over
    appraisal_wait_s: float = 0.15  # how long a node that heard a refresh collects appraised offers

    def __post_init__(self) -> None:
        super().__post_init__()
        for field in ("receive_cost", "transmit_cost"):
            require(getattr(self, field) >= 0, field, getattr(self, field), "at least 0")
        for field in ("pool", "appraisal_wait_s"):
            require(getattr(self, field) > 0, field, getattr(self, field), "above 0")


class DsapstParameters(PsMaodvParameters, frozen=True):
    probe_period_s: float = 10.0  # a node looks for a better place so often; the thesis' period of the tree
    chance_min: float = 0.05  # added to the overlap when a candidate is drawn, so that all have a chance
    pool: float = 10_000.0  # different contents that events are spread over

    def __post_init__(self) -> None:
        super().__post_init__()
        for field in ("probe_period_s", "chance_min", "pool"):
            require(getattr(self, field) > 0, field, getattr(self, field), "above 0")
