"""The parameters of GeoRendezvous and of the hash table below it.

Section numbers are those of the GeoRendezvous paper. Its own behaviour is `graph = "cells"`, `rendezvous_points = 8`,
`nearest_points = 2`, and everything under "Beyond the paper" switched off, as `papers/georendezvous.py` has it.
"""

from typing import Literal

from roamcast.protocols import api
from roamcast.protocols.api import require
from roamcast.protocols.georendezvous.messages import LEGS_MAX, POINTS_MAX

DAY_S = 86400.0


class CellHashParameters(api.Parameters, frozen=True):
    """What concerns Cell Hash Routing."""

    # -- Geometry (2.1) ------------------------------------------------------------------------------------------

    # What packets travel between. "cells": populated cells, the paper's Cell Hash Routing (CHR), which needs about 20
    # neighbours per node. "nodes": nodes, as in a Geographic Hash Table (GHT), at any density (2.2 allows both).
    graph: Literal["cells", "nodes"] = "nodes"
    # Side of a cell in metres, from 0. 0: the largest side at which touching cells hear each other, range / (2 sqrt 2).
    cell_side_m: float = 0.0
    # Keys lie at least this many cell sides inside the border, where roaming nodes are rare. 0 to 100; the paper's: 0.
    margin_cells: float = 1.0

    # -- Neighbours ----------------------------------------------------------------------------------------------

    # Mean time between two beacons in seconds, 0.05 to 3600. With cells, a node that enters another beacons at once.
    beacon_period_s: float = 1.0
    # Each period differs from the mean by up to this share, 0 to 0.9, so that neighbours do not beacon in step.
    beacon_jitter: float = 0.25
    # A neighbour that misses more beacons in a row than this is gone. 1 to 100.
    beacon_losses_max: int = 3
    # Least time in seconds between two beacons of a node that zigzags along a border of cells, 0.001 to 10.
    beacon_gap_min_s: float = 0.1
    # A new node sends its first beacon within this time in seconds, at random, 0 to 10.
    first_beacon_within_s: float = 0.1
    # A beacon that a new node asked for is sent within this time in seconds, at random, 0 to 10.
    answer_within_s: float = 0.4
    # A new node holds its packets for this time in seconds, until it has heard its neighbours, 0 to 60.
    settle_s: float = 0.6
    # How many neighbours a node knows at most; a further one replaces the one heard longest ago. 8 to 65535.
    neighbours_max: int = 512
    # Frames to a neighbour that the link gives up on, with nothing heard from it between, until it is gone, 1 to 100.
    # 1 is GPSR's rule. A neighbour that has also missed a beacon is gone at the first.
    link_failures_max: int = 3
    # Nodes graph: a node that has moved by less than this share of the range counts as not having moved, 0 to 1. A tour
    # recognises vertices by their places; if every small movement counted, few tours would close.
    still_share: float = 1 / 16
    # Nodes graph: greedy steps go to nodes within this share of the range, which are likely to be in range still, and
    # beyond it only if there are no others. Above 0, at most 1.
    steady_share: float = 0.9

    # -- Packets -------------------------------------------------------------------------------------------------

    # Longest path of a packet in hops, 0 to 65535. 0: four times the cells along two sides, plus 64.
    hops_max: int = 0
    # Packets that a new node holds at most, 1 to 65535.
    held_max: int = 256

    # -- Keeping keys (2.1, 2.2) ---------------------------------------------------------------------------------

    # How many members of a cell keep a key, 0 to 1000. 0: all of them. The paper allows dividing the keys of a cell
    # among its members (2.2); each key is then kept by those members whose hash with it is lowest.
    keepers_per_key: int = 0
    # A cell repeats to its members what it keeps after this time in seconds, 1 to 86400.
    custody_period_s: float = 10.0
    # A member that is not the custodian repeats it after this many custody periods, 1 to 100.
    custody_patience: float = 2.5
    # The home of an empty cell checks at this interval in seconds whether it still is, 1 to 86400; tours are long.
    verification_period_s: float = 60.0
    # Least time in seconds between two handovers to a neighbour that looks closer to a key, 0 to 3600.
    handover_gap_s: float = 5.0
    # After a cell has died out, backups are handed over within this range of times in seconds, at random.
    rescue_after_s: float = 0.2
    rescue_within_s: float = 2.0
    # Backups that are not the closest to a key wait this long in seconds for a closer one to take over, 0 to 3600.
    rescue_patience_s: float = 2.0
    # A packet that comes again from the same neighbour within this time in seconds is a copy of one frame, and is not
    # passed on, 0 to 10. Later ones may be said anew, as answers are.
    copy_within_s: float = 0.25
    # Nothing is kept longer than this time in seconds without being put again, 1 to 86400. What an attacker left behind
    # is gone by then.
    lifetime_max_s: float = 300.0
    # Keys that a node keeps at most, 1 to 10^6.
    keys_max: int = 4096
    # Entries under one key at most, 1 to 10^6.
    entries_max: int = 4096
    # Custody and refresh periods are shorter or longer at random by up to this share, 0 to 0.5, so that nodes do not
    # act in step. A node's first custody, and a second look for orphans, are spread twice as widely.
    jitter: float = 0.25
    # Requests (`get`) whose answers a node collects at most, 1 to 10^6.
    requests_max: int = 64
    # Entries of one owner that a node keeps at most, over all keys, 1 to 10^6.
    owner_entries_max: int = 512

    def __post_init__(self) -> None:
        require(0 <= self.cell_side_m <= 1e6, "cell_side_m", self.cell_side_m, "between 0 and 10^6 m")
        self._check(0, 100, "margin_cells")
        self._check(0.05, 3600, "beacon_period_s")
        self._check(0, 0.9, "beacon_jitter")
        self._check(0, 0.5, "jitter")
        self._check(1, 100, "beacon_losses_max", "link_failures_max", "custody_patience")
        self._check(0.001, 10, "beacon_gap_min_s")
        self._check(0, 10, "first_beacon_within_s", "answer_within_s", "copy_within_s")
        self._check(0, 60, "settle_s")
        self._check(8, 65535, "neighbours_max")
        self._check(0, 1, "still_share")
        require(0 < self.steady_share <= 1, "steady_share", self.steady_share, "above 0 and at most 1")
        self._check(0, 65535, "hops_max")
        self._check(1, 65535, "held_max")
        self._check(0, 1000, "keepers_per_key")
        self._check(1, DAY_S, "custody_period_s", "verification_period_s", "lifetime_max_s")
        self._check(0, 3600, "handover_gap_s", "rescue_after_s", "rescue_within_s", "rescue_patience_s")
        require(
            self.rescue_after_s <= self.rescue_within_s,
            "rescue_after_s",
            self.rescue_after_s,
            f"at most rescue_within_s, which is {self.rescue_within_s}",
        )
        for field in ("keys_max", "entries_max", "owner_entries_max", "requests_max"):
            self._check(1, 10**6, field)

    def _check(self, low: float, high: float, *fields: str) -> None:
        for field in fields:
            value = getattr(self, field)
            require(low <= value <= high, field, value, f"between {low:g} and {high:g}")


class GeoRendezvousParameters(CellHashParameters, frozen=True):
    # -- Rendezvous points (2.3, 2.4) ----------------------------------------------------------------------------

    # n: rendezvous points per topic, 0 to 64. More give shorter paths and cost more signalling. 0: one for each
    # `ranges_per_point` squares of the radio range in the area. The paper's: 8.
    rendezvous_points: int = 0
    # With n = 0: how many squares of the radio range one point serves, 0.1 to 10^6.
    ranges_per_point: float = 96.0
    # m: how many points, the nearest, a subscriber tries, 1 to 64; at most n counts (2.4). The paper's: 2. With 1 there
    # is nothing to compare and nothing to prune.
    nearest_points: int = 1
    # Subscriptions are repeated at this interval in seconds, 1 to 86400 (2.2).
    refresh_period_s: float = 10.0
    # Advertisements are repeated at this interval in seconds, 1 to 86400 (2.2).
    advertisement_period_s: float = 30.0
    # A client that misses more refreshes in a row is removed, 0 to 100 (2.2).
    refresh_losses_max: int = 2
    # A publisher that hears nothing from a point for this time in seconds takes it that there are no subscribers there,
    # above 0 and up to 60.
    answer_wait_s: float = 2.0
    # After a publisher's first event, a subscriber waits this time in seconds for the copies from other points before
    # it prunes, above 0 and up to 60 (2.3).
    selection_wait_s: float = 0.5
    # A subscriber tries its points again at this interval in seconds, 1 to 86400.
    reselection_period_s: float = 60.0
    # A subscriber that has moved this many metres chooses its nearest points again, from 0. 0: the radio range.
    reselection_distance_m: float = 0.0
    # A subscriber that has moved this share of the radio range refreshes early, so that events find it, 0.01 to 100. A
    # publisher does after twice that distance.
    early_refresh_share: float = 0.5
    # Publishers that a subscriber prunes at one point, at most, 1 to 150; copies from further ones are dropped on
    # arrival. More would not fit an entry.
    pruned_max: int = 150
    # Publishers whose paths a subscriber compares, at most, for each bucket, 1 to 65535.
    publishers_max: int = 1024
    # Answers to advertisements that a member of a rendezvous point remembers at most, 1 to 10^6.
    answers_max: int = 4096

    # -- Buckets: other languages as topics ----------------------------------------------------------------------

    # Numbers are mapped onto this many topics, 1 to 1000. Fewer cost less signalling; the filter does the rest.
    interval_buckets: int = 1
    # Numbers are expected in [0, pool), above 0; the buckets at the ends take the rest.
    interval_pool: float = 10_000.0
    # Documents of one type are mapped onto this many topics, 1 to 1000, by their most finely divided required value.
    content_buckets: int = 4

    # -- Beyond the paper ----------------------------------------------------------------------------------------

    # Subscriptions carry the interest, and a rendezvous point forwards only what matches. Off: subscribers filter.
    filter_at_rendezvous: bool = True
    # An event goes to all its destinations as one tree; off: as a packet to each.
    notification_tree: bool = True
    # Trees: a neighbour may serve a leg if its progress is at least this share of the best neighbour's, 0 to 1. Lower
    # values share more links and make paths longer; 1 merges legs only where they take the same step anyway.
    tree_progress_share: float = 0.6
    # Destinations in one packet, 1 to 64; more travel in several.
    legs_max: int = 24
    # Measure the path without a rendezvous point, which the paper's figures compare with.
    probe_direct_path: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check(0, POINTS_MAX, "rendezvous_points")
        self._check(0.1, 1e6, "ranges_per_point")
        self._check(1, 64, "nearest_points")
        self._check(1, DAY_S, "refresh_period_s", "advertisement_period_s", "reselection_period_s")
        self._check(0, 100, "refresh_losses_max")
        for field in ("answer_wait_s", "selection_wait_s"):
            require(0 < getattr(self, field) <= 60, field, getattr(self, field), "above 0 and at most 60 s")
        self._check(0, 1e6, "reselection_distance_m")
        self._check(0.01, 100, "early_refresh_share")
        self._check(1, 150, "pruned_max")
        self._check(1, 65535, "publishers_max")
        self._check(1, 10**6, "answers_max")
        self._check(1, 1000, "interval_buckets", "content_buckets")
        require(0 < self.interval_pool <= 1e300, "interval_pool", self.interval_pool, "above 0 and at most 10^300")
        self._check(0, 1, "tree_progress_share")
        self._check(1, LEGS_MAX, "legs_max")
        for field in ("refresh_period_s", "advertisement_period_s"):
            lifetime_s = getattr(self, field) * self.lifetime_periods
            require(
                lifetime_s <= self.lifetime_max_s,
                field,
                getattr(self, field),
                f"at most lifetime_max_s / {self.lifetime_periods:g}, which is "
                f"{self.lifetime_max_s / self.lifetime_periods:g}",
            )

    @property
    def lifetime_periods(self) -> float:
        """Periods that an entry lives: one for each refresh that may get lost, the next one, and jitter."""
        return self.refresh_losses_max + 1 + 2 * self.jitter
