"""The parameters of Pub/Sub ODMRP. Section numbers are those of the paper.

Its own behaviour is `AS_PUBLISHED`; `papers/odmrp.py` uses it.
"""

from typing import Any, Final, Literal

from roamcast.errors import ConfigurationError
from roamcast.protocols import api
from roamcast.protocols.api import require
from roamcast.protocols.odmrp.bloom import BITS_MAX
from roamcast.protocols.odmrp.encoding import Encoder
from roamcast.protocols.odmrp.messages import LISTED_MAX
from roamcast.protocols.odmrp.summaries import Family
from roamcast.protocols.rings import parse_rings

GroupingName = Literal["least-constrained", "graph", "k-means"]

AS_PUBLISHED: Final[dict[str, Any]] = {
    "advertisement": False,
    "refresh_interval_s": 5.0,
    "forwarding_timeout_s": 25.0,
    "member_list_every": 1,
    "table_pause_s": 0.025,
    "confirm_timeout_s": 0.15,
    "join_at_once": False,
}
"""The paper's own behaviour (3.5, 4.1) where the defaults differ from it."""


class OdmrpParameters(api.Parameters, frozen=True):
    # -- Routes (3.5, 3.6) ---------------------------------------------------------------------------------------

    # A broker that goes on publishing asks again at this interval in seconds, 0.01 to 86400. The paper's: 5 (4.1).
    refresh_interval_s: float = 15.0
    # A node that gets no Join Table for this time in seconds stops forwarding; above refresh_interval_s. 25 (4.1).
    forwarding_timeout_s: float = 35.0
    # A member that answers an event's Join Request within this time in seconds still gets the event, 0 to 60.
    route_wait_s: float = 2.0
    # Members that answer within this time in seconds of each other get the event together, 0 to 60.
    answer_pause_s: float = 0.05
    # After a change of channels the old ones count for this time in seconds, 0 to 60.
    channel_overlap_s: float = 0.5
    # A relay repeats a Join Request or an event after a uniform random time up to this, in seconds, 0 to 60.
    jitter_s: float = 0.01
    # Answers that come within this time in seconds travel on together, 0 to 60.
    table_pause_s: float = 0.1
    # That time is shorter at random by up to this share, 0 to 1, so that members do not answer in step.
    table_jitter: float = 0.5
    # A Join Table is sent again if there is no sign within this time in seconds that the next hop got it; above
    # table_pause_s and up to 60.
    confirm_timeout_s: float = 0.3
    # How often a Join Table is sent at most, 1 to 100.
    table_tries: int = 3
    # A Join Request that has come this many hops is not repeated, 1 to 255.
    hops_max: int = 32
    # Nodes look for state that has ended this many times per forwarding timeout, 1 to 100.
    sweeps_per_timeout: int = 5
    # True: a node that forwards for one publisher forwards events of all publishers for which a member behind it may
    # want them. The forwarding groups of several publishers then form one mesh with redundant paths, as in ODMRP
    # (2.2, 3.5.2). False: it forwards only for publishers whose Join Tables it has carried, with fewer frames
    # and more losses where nodes move.
    shared_mesh: bool = True

    # -- What is asked, and what travels -------------------------------------------------------------------------

    # True: ask once for a whole type of events, ahead of data. False: ask for every event by its digest (3.5.1).
    advertisement: bool = True
    # True: a broker whose subscriptions have changed answers what publishers asked for lately at once. False: it waits
    # for their next request (3.6).
    join_at_once: bool = True
    # True: relays drop events that no summary behind them matches (3.5.2).
    forwarding_filter: bool = True
    # The digest of an event is a Bloom filter with this many bits for each of its tokens, 1 to 64 (3.5.1).
    digest_bits_per_token: float = 16.0
    # A Join Request carries the list of members if it has changed, and at least every this many requests, 1 to 1000. 1:
    # always. A node that has missed the list forwards for all members behind it.
    member_list_every: int = 4
    # Members that a Join Request lists at most, 1 to 4096; all others stay on channel 0.
    listed_max: int = 512
    # Questions in one Join Request, 1 to 64.
    questions_max: int = 4
    # Events that one Join Request names as sent, 0 to 64.
    named_events_max: int = 4
    # How often one event is sent at most, 1 to 255.
    sendings_max: int = 16
    # Members that one repeated event lists, 1 to 256; for more, it goes to all members of their channels.
    late_max: int = 12

    # -- Channels (3.4) ------------------------------------------------------------------------------------------

    # How the publishing broker makes channels out of subscriptions.
    grouping: GroupingName = "k-means"
    # K-means: rounds per change, 1 to 100; it may stop after any (3.4.3).
    kmeans_iterations_max: int = 10
    # K-means: a third channel must lower the mean distance to the centroid by more than this share, 0 to 1.
    kmeans_third_gain: float = 0.2
    # Entries in the filter of one channel of K-means, 1 to 4096; more are merged.
    channel_entries_max: int = 256

    # -- Mobility prediction (3.6) -------------------------------------------------------------------------------

    # True: refresh when the first route is expected to break.
    mobility_prediction: bool = False
    # But not more often than this, in seconds, 0.01 to 86400.
    refresh_min_s: float = 1.0
    # And at least this often, in seconds; at least refresh_min_s and below forwarding_timeout_s.
    refresh_max_s: float = 20.0

    # -- Summaries (3.3); all nodes must agree on these ----------------------------------------------------------

    # Bits of each Bloom filter, a multiple of 8 from 8 to 65536.
    bloom_bits: int = 256
    # Positions per value, 1 to 16.
    bloom_hashes: int = 4
    # Numeric values are divided into this many buckets, 1 to 1000.
    range_buckets: int = 24
    # Characters of prefixes and suffixes of strings, 1 to 64.
    affix_characters: int = 8
    # Intervals: numbers are expected in [0, number_pool), above 0 and below 2^53.
    number_pool: float = 10_000.0
    # Topics: those with more levels than this count as this deep, 1 to 64.
    topic_depth_max: int = 8
    # Entries in a broker's summary for one type, 1 to 100; more are merged.
    entries_max: int = 4

    # -- Brokers and clients (3.5, 4) ----------------------------------------------------------------------------

    # Probability that a node offers itself as a broker, 0 to 1.
    broker_share: float = 1.0
    # How clients reach their brokers.
    unicast: Literal["aodv", "oracle"] = "aodv"
    # A client repeats its subscriptions at this interval in seconds, 0.01 to 86400.
    client_refresh_s: float = 10.0
    # A broker forgets a client after this many silent intervals, 1 to 100.
    client_refreshes_max: int = 3
    # True: a client sends Bloom filters of its subscriptions instead of expressions, for devices without XML (3).
    client_filters: bool = False
    # A client waits this time in seconds for offers of brokers, 0.01 to 60.
    offer_wait_s: float = 0.2
    # Radii of the rings in which a client searches for a broker, in hops, ascending, each 1 to 64.
    search_rings_hops: str = "1,3,5,9,17,32"
    # Before a wider ring is searched for a broker, a client waits this time in seconds, 0.01 to 60,
    ring_wait_s: float = 0.3
    # and this time for each hop of the ring, 0 to 10.
    ring_wait_per_hop_s: float = 0.05
    # After a search without success the next one begins after this time in seconds, 0.01 to 3600.
    search_pause_s: float = 5.0
    # Interests that one frame from a client carries, 1 to 64.
    interests_per_part: int = 6
    # Events that wait at a client without a broker, 1 to 65535.
    posts_max: int = 64

    # -- Bounds on what peers can make a node keep ---------------------------------------------------------------

    # Publishing brokers whose routes a node keeps, 1 to 10^6; a further one replaces the one heard longest ago.
    publishers_max: int = 1024
    # Members behind a node, for each publisher, 1 to 10^6; further ones are not forwarded for.
    members_max: int = 4096
    # Summaries that a node remembers, 1 to 10^6; the oldest goes first.
    summaries_max: int = 4096
    # Clients of a broker, 1 to 10^6; further ones are not attached.
    clients_max: int = 1024
    # Subscriptions of one client, 1 to 10^6; further ones are ignored.
    client_interests_max: int = 1024
    # Clients whose subscriptions have come in part, 1 to 10^6; the oldest goes first.
    unfinished_max: int = 64
    # Contexts of Join Requests that a node remembers of one publisher, 1 to 10^6; the oldest goes first.
    contexts_max: int = 8
    # Questions that a broker has open, 1 to 10^6; further events are sent without being asked for.
    open_questions_max: int = 1024

    def __post_init__(self) -> None:
        self._check_routes()
        self._check(1, 64, "digest_bits_per_token", "questions_max", "interests_per_part")
        self._check(1, 1000, "member_list_every", "range_buckets")
        self._check(1, LISTED_MAX, "listed_max", "channel_entries_max")
        self._check(0, 64, "named_events_max")
        self._check(1, 255, "sendings_max", "hops_max")
        self._check(1, 256, "late_max")
        self._check(0, 1, "kmeans_third_gain", "broker_share", "table_jitter")
        require(
            8 <= self.bloom_bits <= BITS_MAX and self.bloom_bits % 8 == 0,
            "bloom_bits",
            self.bloom_bits,
            f"a multiple of 8 between 8 and {BITS_MAX}",
        )
        self._check(1, 16, "bloom_hashes")
        self._check(1, 64, "affix_characters", "topic_depth_max")
        require(0 < self.number_pool < 2**53, "number_pool", self.number_pool, "above 0 and below 2^53")
        self._check(0.01, 60, "offer_wait_s", "ring_wait_s")
        self._check(0, 10, "ring_wait_per_hop_s")
        self._check(0.01, 3600, "search_pause_s")
        self._check(1, 65535, "posts_max")
        bounds = ("publishers_max", "members_max", "summaries_max", "clients_max", "client_interests_max")
        self._check(1, 10**6, *bounds, "open_questions_max", "unfinished_max", "contexts_max")
        try:
            parse_rings(self.search_rings_hops)
        except ConfigurationError as error:
            raise ValueError(str(error)) from None

    def _check_routes(self) -> None:
        self._check(0.01, 86400, "refresh_interval_s", "refresh_min_s", "client_refresh_s")
        self._check(0, 60, "route_wait_s", "answer_pause_s", "channel_overlap_s", "jitter_s", "table_pause_s")
        timeout_s = self.forwarding_timeout_s
        require(timeout_s > self.refresh_interval_s, "forwarding_timeout_s", timeout_s, "above refresh_interval_s")
        require(timeout_s <= 86400, "forwarding_timeout_s", timeout_s, "at most 86400 s")
        require(self.refresh_max_s >= self.refresh_min_s, "refresh_max_s", self.refresh_max_s, "at least refresh_min_s")
        require(timeout_s > self.refresh_max_s, "refresh_max_s", self.refresh_max_s, "below forwarding_timeout_s")
        require(
            self.table_pause_s < self.confirm_timeout_s <= 60,
            "confirm_timeout_s",
            self.confirm_timeout_s,
            "above table_pause_s and at most 60 s",
        )
        counts = ("table_tries", "kmeans_iterations_max", "entries_max", "sweeps_per_timeout", "client_refreshes_max")
        self._check(1, 100, *counts)

    def _check(self, low: float, high: float, *fields: str) -> None:
        for field in fields:
            value = getattr(self, field)
            require(low <= value <= high, field, value, f"between {low:g} and {high:g}")

    def encoder(self) -> Encoder:
        family = Family(self.bloom_bits, self.bloom_hashes)
        return Encoder(
            family, self.range_buckets, self.affix_characters, self.number_pool, depth_max=self.topic_depth_max
        )
