"""Parameters of Pub/Sub ODMRP. Intervals are the paper's (section 4.1) where it names them."""

from typing import Literal

from roamcast.protocols import api
from roamcast.protocols.api import require
from roamcast.protocols.odmrp.bloom import BITS_MAX
from roamcast.protocols.odmrp.encoding import Encoder
from roamcast.protocols.odmrp.summaries import Family

GroupingName = Literal["least-constrained", "graph", "k-means"]


class OdmrpParameters(api.Parameters, frozen=True):
    # Routes
    refresh_interval_s: float = 5.0  # a broker that goes on publishing asks again at this interval (4.1)
    forwarding_timeout_s: float = 25.0  # who hears no Join Table for so long stops forwarding (4.1)
    route_wait_s: float = 2.0  # whoever answers an event's Join Request within this time still gets the event
    answer_pause_s: float = 0.05  # members that answer within this time of each other get it together
    channel_overlap_s: float = 0.5  # after a change of channels the old ones count for so long
    jitter_s: float = 0.01  # a relay repeats a Join Request or an event after a uniform time up to this
    table_pause_s: float = 0.025  # answers that come within this time travel on together
    confirm_timeout_s: float = 0.15  # without a sign that the next hop got a Join Table, it is sent again
    table_tries: int = 3  # how often at most
    hops_max: int = 32  # a Join Request that has come this far is not repeated

    # What is asked, and what travels
    advertisement: bool = False  # true: ask once for a whole type of events, ahead of data (3.5.1)
    forwarding_filter: bool = True  # true: relays drop events that no summary behind them matches (3.5.2)
    grouping: GroupingName = "k-means"  # how the publishing broker makes channels out of subscriptions (3.4)
    kmeans_iterations_max: int = 10  # rounds per change; it may stop after any (3.4.3)

    # Mobility prediction (3.6)
    mobility_prediction: bool = False  # true: refresh when the first route is expected to break
    refresh_min_s: float = 1.0  # but not more often than this
    refresh_max_s: float = 20.0  # and at least this often

    # Summaries; all nodes must agree on these
    bloom_bits: int = 256  # size of each filter
    bloom_hashes: int = 4  # positions per value
    range_buckets: int = 24  # numeric values are told apart this finely
    affix_characters: int = 8  # of prefixes and suffixes of strings
    number_pool: float = 10_000.0  # intervals: numbers are expected in [0, number_pool)
    entries_max: int = 4  # a broker's summary has at most so many entries; more are merged

    # Brokers and clients
    broker_share: float = 1.0  # the probability that a node offers itself as a broker
    unicast: Literal["aodv", "oracle"] = "aodv"  # between clients and their brokers
    client_refresh_s: float = 10.0  # a client repeats its subscriptions at this interval

    def __post_init__(self) -> None:
        for field in ("refresh_interval_s", "refresh_min_s", "client_refresh_s"):
            require(0.01 <= getattr(self, field) <= 86_400, field, getattr(self, field), "between 0.01 and 86400 s")
        for field in ("route_wait_s", "answer_pause_s", "channel_overlap_s", "jitter_s", "table_pause_s"):
            require(0 <= getattr(self, field) <= 60, field, getattr(self, field), "between 0 and 60 s")
        timeout_s = self.forwarding_timeout_s
        require(timeout_s > self.refresh_interval_s, "forwarding_timeout_s", timeout_s, "above refresh_interval_s")
        require(self.refresh_max_s >= self.refresh_min_s, "refresh_max_s", self.refresh_max_s, "at least refresh_min_s")
        require(timeout_s > self.refresh_max_s, "refresh_max_s", self.refresh_max_s, "below forwarding_timeout_s")
        require(
            self.table_pause_s < self.confirm_timeout_s <= 60,
            "confirm_timeout_s",
            self.confirm_timeout_s,
            "above table_pause_s and at most 60 s",
        )
        for field in ("table_tries", "kmeans_iterations_max", "entries_max"):
            require(1 <= getattr(self, field) <= 100, field, getattr(self, field), "between 1 and 100")
        require(1 <= self.hops_max <= 255, "hops_max", self.hops_max, "between 1 and 255")
        require(
            8 <= self.bloom_bits <= BITS_MAX and self.bloom_bits % 8 == 0,
            "bloom_bits",
            self.bloom_bits,
            f"a multiple of 8 between 8 and {BITS_MAX}",
        )
        require(1 <= self.bloom_hashes <= 16, "bloom_hashes", self.bloom_hashes, "between 1 and 16")
        require(1 <= self.range_buckets <= 1000, "range_buckets", self.range_buckets, "between 1 and 1000")
        require(1 <= self.affix_characters <= 64, "affix_characters", self.affix_characters, "between 1 and 64")
        require(0 < self.number_pool < 2**53, "number_pool", self.number_pool, "above 0 and below 2^53")
        require(0 <= self.broker_share <= 1, "broker_share", self.broker_share, "between 0 and 1")

    def encoder(self) -> Encoder:
        family = Family(self.bloom_bits, self.bloom_hashes)
        return Encoder(family, self.range_buckets, self.affix_characters, self.number_pool)
