"""The parameters of Opportunistic Overlays.

Numbers in brackets are sections of the paper: Chen and Schwan, "Opportunistic Overlays: Efficient Content Delivery in
Mobile Ad Hoc Networks". Where a parameter names none, the paper says nothing about it.
"""

from typing import Final, Literal

from roamcast.errors import ConfigurationError
from roamcast.protocols import api
from roamcast.protocols.api import require
from roamcast.protocols.rings import parse_rings

DAY_S = 86_400.0

Relocation = Literal["strict", "fresh-modulator", "unbuffered", "loose"]
Policy = Literal["bytes", "energy", "latency"]


class OverlaysParameters(api.Parameters, frozen=True):
    # -- Brokers ---------------------------------------------------------------------------------------------------

    # How overlay links and clients are reached over several hops. "oracle" exists only in the simulator.
    unicast: Literal["aodv", "oracle"] = "aodv"
    # Probability that a node offers itself as a broker, 0 to 1 [4.1: 40 of 100, and 20 of 100].
    broker_share: float = 0.1
    # Addresses of the brokers, as in 0-39 or 2,5,7. Not empty: overrides broker_share.
    brokers: str = ""
    # The adaptors in force, separated by commas: topology, home-broker, load-balancing, placement, or
    # package.module:Class [3.5]. Empty: the overlay and the home brokers of the start, frozen.
    adaptors: str = "topology,home-broker,load-balancing,placement"
    # A broker whose load is above this is overloaded and should take no clients, from 0 [2.4].
    overload_threshold: float = 0.7

    # -- The broker network [2.3] ----------------------------------------------------------------------------------

    # Time between two neighbour discoveries, each followed by a propagation, in seconds, above 0 [4.1: 10 to 100].
    update_period_s: float = 20.0
    # Brokers that a broker chooses as neighbours, 1 to 64; others may choose it too.
    neighbours_max: int = 4
    # A broker that gives no sign of life for this many update periods is forgotten, 1 to 1000. An update may need a
    # period for each link of its path.
    silent_periods: int = 10
    # A broker that has started propagates every bootstrap_period_s for bootstrap_s, in seconds; the period is above 0.
    bootstrap_s: float = 8.0
    bootstrap_period_s: float = 1.0
    # A broker that has heard of no other for this time in seconds assumes that there is none.
    alone_s: float = 60.0
    # An event travels to all brokers that want it as one tree: one copy on a stretch that several paths share. False: a
    # copy for each broker [2.2: source routing].
    event_tree: bool = True
    # A broker repeats its row of the topology table after this many update periods even if it has not changed, as a
    # sign of life, 1 to 1000. Rows that changed are sent at once [2.3 step 2: "those items that have changed"].
    refresh_periods: int = 3
    # A change of a broker's load by more than this is a change of its row, from 0.
    load_step: float = 0.1
    # False: home brokers send to each other directly, without relays of the overlay [4.1, "best"].
    source_routing: bool = True
    # Every broker measures its paths to all others at this interval in seconds [4.1, figures 7 and 8]. 0: never.
    probe_period_s: float = 0.0
    # A node that could not be reached is avoided as a relay for this time in seconds.
    suspicion_s: float = 10.0
    # Detours of one message around unreachable brokers, 0 to 255; then its destination is tried directly [2.3].
    detours_max: int = 2

    # -- Searches for brokers [2.3 step 1, 2.4 step 1] -------------------------------------------------------------

    # Radii of the rings of a search in hops, ascending, each 1 to 64. The paper's reference [13] leaves them open.
    search_rings_hops: str = "1,3,5,7"
    # A ring waits for answers this long in seconds for each of its hops, both ways, above 0.
    hop_time_s: float = 0.02
    # A relay passes a search on after a random time up to this, in seconds.
    search_jitter_s: float = 0.01
    # Searches of other nodes that a node remembers, 1 to 10^6, and how many of them from one neighbour.
    searches_max: int = 4096
    searches_per_neighbour_max: int = 1024
    # Searches that a node takes from one neighbour within a second, 1 to 10^6.
    searches_per_s: int = 200

    # -- Clients [2.4] ---------------------------------------------------------------------------------------------

    # Time between two searches of a client for the nearest broker, in seconds, above 0 [4.1: 5 to 50].
    discovery_period_s: float = 15.0
    # A client searches no farther than its home broker is away. False: up to the widest ring, as at the start.
    search_within_home: bool = True
    # A candidate becomes the home broker only if it shortens the mean path from the producers by more than this many
    # hops, from 0 [2.4 step 2: 0].
    hysteresis_hops: float = 1.0
    # After a search that found no broker, a client without a home searches again after this time in seconds, on
    # average.
    seek_again_s: float = 2.0
    # The first search, and the pause after one that found no broker, are shorter or longer by up to this share, 0 to 1,
    # so that nodes that start together do not search together.
    search_spread: float = 0.5
    # A home broker that has been silent for this time in seconds is given up, above 0.
    home_timeout_s: float = 25.0
    # A report that the home broker does not answer within this time in seconds is repeated, and then the home broker is
    # given up; without repetition if a link to it has broken. 0: only home_timeout_s counts.
    home_check_s: float = 1.5
    # "strict" loses, repeats and reorders nothing and keeps the state of modulators. "fresh-modulator" loses that
    # state, "unbuffered" events in transit, "loose" both [2.4 step 3: lighter protocols].
    relocation: Relocation = "strict"
    # A relocation that is not complete after this time in seconds goes on without what is missing, above 0.
    handoff_timeout_s: float = 20.0
    # The producers' home brokers acknowledge a detour to the destination too [2.4 step 3, item 4]. It has no use for
    # it.
    detour_ack_to_destination: bool = False
    # What a consumer's home broker does to the events of subscriptions that bring no modulator of their own, in a
    # language of `modulators/`. Empty: passes them on.
    modulator: str = ""

    # -- Load [3.3, 3.5] -------------------------------------------------------------------------------------------

    # Time between two readings of a broker's load in seconds, above 0.
    load_reading_period_s: float = 2.0
    # Whether a broker is at least as loaded as its machine, in CPU or memory. Off where all brokers share one.
    machine_load: bool = True
    # Weight of the newest reading in the load, above 0, at most 1.
    load_weight: float = 0.5
    # Events that wait for a broker's CPU at most, 1 to 10^6.
    work_queue_max: int = 512
    # Load balancing: a client moves only if the busier of the two brokers is then less busy by this share, 0 to 1.
    balancing_gain: float = 0.1
    # Load balancing: time in seconds until the load shows what a relocation has changed; until then there is no other.
    balancing_rest_s: float = 6.0
    # Placement: a modulator moves to another broker if less than this share of what now travels is left, 0 to 1 [6].
    placement_share: float = 0.7
    # Placement: a move must save its own bytes within this many readings of modulators, 1 to 1000.
    placement_readings: int = 6
    # What placement saves: "bytes", "energy" (headers of messages count too), or "latency" (bytes, where no path gets
    # longer by it) [6].
    policy: Policy = "latency"
    # Time between two readings of modulators in seconds, above 0. Silent clients are dropped at the same time.
    sweep_period_s: float = 10.0

    # -- Reliability -----------------------------------------------------------------------------------------------

    # Shortest time to wait for an acknowledgement in seconds, above 0; grows with what acknowledgements take.
    retry_s: float = 2.0
    # Longest time to wait for an acknowledgement, in multiples of retry_s, 1 to 1000.
    retry_growth_max: float = 8.0
    # Weight of the newest acknowledgement in the mean of what they take, above 0, at most 1.
    answer_weight: float = 0.25
    # Acknowledgements and receipts are collected for this time in seconds.
    acknowledgement_delay_s: float = 0.7
    # At most this many acknowledgements wait, 1 to 10^6, because senders wait for them (`deliveries_max`).
    acknowledgements_max: int = 16
    # A receipt that says no more than that an event was processed waits this share of retry_s for the client's
    # acknowledgement, 0 to 1, so that one receipt tells both.
    receipt_patience: float = 0.4
    # A producer is told after this time in seconds, at the latest, that consumers have its events. It is told earlier
    # with the next acknowledgement.
    release_delay_s: float = 5.0
    # Events kept per producer until all consumers have them, 1 to 10^6. Overflow drops the oldest.
    store_events: int = 1000
    # The longest time an event is kept, in seconds, above 0.
    store_lifetime_s: float = 120.0
    # An event is kept at least this long in seconds, for consumers whose registration is in transit.
    linger_s: float = 2.0
    # A consumer whose site has been silent for this many store lifetimes, while events wait for it, is dropped. From 1.
    silent_lifetimes: float = 3.0
    # A broker stops announcing itself as a source this time in seconds after its last producer has left.
    source_idle_s: float = 60.0
    # How often each kind of request is sent before it is given up, 1 to 255.
    attach_tries: int = 3
    handoff_tries: int = 3
    detour_tries: int = 4
    state_tries: int = 8
    announce_tries: int = 5
    request_tries: int = 6  # registrations and welcomes

    # -- Bounds ----------------------------------------------------------------------------------------------------

    # Deliveries to a client that wait for its acknowledgement at most, 1 to 10^6; further events wait.
    deliveries_max: int = 64
    # Deliveries that a client keeps while an earlier one is missing, 1 to 10^6.
    early_max: int = 256
    # Events that wait for an earlier one at a consumer's site, or at a producer's home broker, 1 to 10^6.
    intake_max: int = 4096
    # Clients of which a broker remembers where they went, 1 to 10^6.
    places_max: int = 1024
    # Clients whose modulator a broker runs, 1 to 10^6; further ones are refused.
    clients_max: int = 1024
    # Publishers whose events a consumer, or its site, keeps apart, 1 to 10^6; events of further ones are dropped.
    publishers_max: int = 4096
    # Other brokers that a broker knows, 1 to 10^6.
    brokers_max: int = 1024
    # Consumers that a producer's home broker knows, 1 to 10^6.
    subscribers_max: int = 4096
    # Requests that wait for their answer, 1 to 10^6.
    requests_max: int = 4096
    # Frames in a row that may carry a message along a source route, 1 to 255.
    route_hops_max: int = 64
    # Packets that wait for a route to one destination, 1 to 10^6.
    buffer_packets: int = 256

    def __post_init__(self) -> None:
        for low, high, fields in _RANGES:
            for field in fields.split():
                value = getattr(self, field)
                require(low <= value <= high, field, value, f"between {low:g} and {high:g}")
        for high, fields in _POSITIVE:
            for field in fields.split():
                value = getattr(self, field)
                require(0 < value <= high, field, value, f"above 0 and at most {high:g}")
        try:
            parse_addresses(self.brokers)
            parse_rings(self.search_rings_hops)
        except ConfigurationError as error:
            raise ValueError(str(error)) from None

    def is_broker(self, address: int, draw: float) -> bool:
        """Whether a node offers itself as a broker; `draw` is its own random number between 0 and 1."""
        if self.brokers:
            return any(low <= address <= high for low, high in parse_addresses(self.brokers))
        return draw < self.broker_share


_RANGES: Final = (
    (0, 1, "broker_share placement_share receipt_patience balancing_gain search_spread"),
    (0, 1e9, "overload_threshold load_step hysteresis_hops"),
    (1, 64, "neighbours_max"),
    (0, 255, "detours_max"),
    (1, 255, "route_hops_max attach_tries handoff_tries detour_tries state_tries announce_tries request_tries"),
    (1, 1000, "placement_readings silent_periods refresh_periods silent_lifetimes retry_growth_max"),
    (1, 10**6, "searches_max work_queue_max store_events deliveries_max early_max acknowledgements_max"),
    (1, 10**6, "intake_max places_max buffer_packets clients_max publishers_max brokers_max"),
    (1, 10**6, "subscribers_max requests_max searches_per_neighbour_max searches_per_s"),
    (0, DAY_S, "bootstrap_s alone_s probe_period_s suspicion_s search_jitter_s seek_again_s home_check_s"),
    (0, DAY_S, "balancing_rest_s acknowledgement_delay_s linger_s source_idle_s release_delay_s"),
)
_POSITIVE: Final = (
    (1.0, "load_weight answer_weight"),
    (DAY_S, "update_period_s bootstrap_period_s hop_time_s discovery_period_s home_timeout_s handoff_timeout_s"),
    (DAY_S, "load_reading_period_s sweep_period_s retry_s store_lifetime_s"),
)


def parse_addresses(text: str) -> list[tuple[int, int]]:
    """`0-39,50` as ranges, both ends included."""
    ranges: list[tuple[int, int]] = []
    for part in filter(None, text.replace(" ", "").split(",")):
        low, _, high = part.partition("-")
        if not (low.isdigit() and (high or low).isdigit()):
            raise ConfigurationError(f"brokers: {part!r} is not an address or a range; write as in 0-39,50")
        ranges.append((int(low), int(high or low)))
    return ranges
