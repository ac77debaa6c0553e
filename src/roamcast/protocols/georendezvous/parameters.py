"""What can be set about GeoRendezvous and the hash table below it."""

from typing import Literal

from roamcast.protocols import api
from roamcast.protocols.api import require


class CellHashParameters(api.Parameters, frozen=True):
    """The part that concerns Cell Hash Routing."""

    graph: Literal["cells", "nodes"] = "nodes"  # cells: section 2.1, needs about 20 neighbours per node; nodes: any
    cell_side_m: float = 0.0  # 0: the largest side at which touching cells hear each other, range / (2 sqrt 2)
    margin_cells: float = 1.0  # keys lie at least so many cell sides inside the border, where roaming nodes are rare
    beacon_period_s: float = 1.0  # between beacons, +-25 %; a node that enters another cell beacons at once
    beacon_losses_max: int = 3  # a neighbour that misses more beacons in a row is gone
    hops_max: int = 0  # of one leg of a packet's way; 0: four times the cells along two sides, plus 64
    custody_period_s: float = 10.0  # a cell repeats to its members what it keeps
    verification_period_s: float = 60.0  # the home of an empty cell finds out whether it still is; tours are long

    def __post_init__(self) -> None:
        require(self.cell_side_m >= 0, "cell_side_m", self.cell_side_m, "at least 0")
        require(0 <= self.margin_cells <= 100, "margin_cells", self.margin_cells, "between 0 and 100")
        require(0.05 <= self.beacon_period_s <= 3600, "beacon_period_s", self.beacon_period_s, "between 0.05 and 3600")
        require(1 <= self.beacon_losses_max <= 100, "beacon_losses_max", self.beacon_losses_max, "between 1 and 100")
        require(0 <= self.hops_max <= 65535, "hops_max", self.hops_max, "between 0 and 65535")
        for field in ("custody_period_s", "verification_period_s"):
            require(1 <= getattr(self, field) <= 86400, field, getattr(self, field), "between 1 and 86400 s")


class GeoRendezvousParameters(CellHashParameters, frozen=True):
    rendezvous_points: int = 8  # n: per topic; more give shorter ways and cost more signalling (section 2.3)
    nearest_points: int = 2  # m: how many of them, the nearest, a subscriber tries (section 2.4); at most n counts
    refresh_period_s: float = 10.0  # subscriptions are repeated at this interval (section 2.2)
    advertisement_period_s: float = 30.0  # advertisements are; n per topic, they are most of the signalling
    refresh_losses_max: int = 2  # a client that misses more refreshes in a row is removed
    selection_wait_s: float = 0.5  # after a publisher's first event, for the copies of the other points, then prune
    reselection_period_s: float = 60.0  # a subscriber tries its points anew at this interval, and when it has moved
    reselection_distance_m: float = 0.0  # moved by this much: the nearest points are chosen anew; 0: the radio range
    interval_buckets: int = 8  # numbers are mapped onto this many topics; fewer cost less signalling and waste more
    interval_pool: float = 10_000.0  # numbers are expected in [0, pool); the buckets at the ends take in the rest
    probe_direct_path: bool = False  # measure the path without a rendezvous point, as the paper's figures need it

    def __post_init__(self) -> None:
        super().__post_init__()
        require(1 <= self.rendezvous_points <= 64, "rendezvous_points", self.rendezvous_points, "between 1 and 64")
        require(1 <= self.nearest_points <= 64, "nearest_points", self.nearest_points, "between 1 and 64")
        for field in ("refresh_period_s", "advertisement_period_s", "reselection_period_s"):
            require(1 <= getattr(self, field) <= 86400, field, getattr(self, field), "between 1 and 86400 s")
        require(0 <= self.refresh_losses_max <= 100, "refresh_losses_max", self.refresh_losses_max, "between 0 and 100")
        require(0 < self.selection_wait_s <= 60, "selection_wait_s", self.selection_wait_s, "above 0 and at most 60 s")
        distance_m = self.reselection_distance_m
        require(distance_m >= 0, "reselection_distance_m", distance_m, "at least 0")
        require(1 <= self.interval_buckets <= 1000, "interval_buckets", self.interval_buckets, "between 1 and 1000")
        require(self.interval_pool > 0, "interval_pool", self.interval_pool, "above 0")
