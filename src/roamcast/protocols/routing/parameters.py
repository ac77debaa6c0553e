"""Parameters of AODV, with the defaults of draft-ietf-manet-aodv-13, section 10, and those of ns-2 and ns-3."""

from typing import Final

from roamcast.protocols import api
from roamcast.protocols.api import require


class AodvParameters(api.Parameters, frozen=True):
    """The draft's names in small letters with units; `NS2` below is how ns-2.35 ran it."""

    # How far a request travels, and how long one waits for its answer
    net_diameter_hops: int = 35  # the widest ring; every node of the network should be within
    node_traversal_time_s: float = 0.04  # a cautious estimate of one hop's delay, queueing included
    net_traversal_time_s: float = 2.8  # wait after a first full-width request; 2 * node_traversal_time * net_diameter
    timeout_buffer_hops: int = 2  # a ring of n hops is given time for n + this many
    ttl_start_hops: int = 1  # the first ring; 2 or more is wise with `hello`, since neighbours are known then
    ttl_increment_hops: int = 2  # by how much rings grow
    ttl_threshold_hops: int = 7  # the last ring before the full width
    request_retries: int = 2  # further full-width requests; each waits twice as long as the one before
    request_rate_limit: int = 10  # own requests per second; more of them wait
    error_rate_limit: int = 10  # RERRs per second; more of them are not sent
    path_discovery_time_s: float = 5.6  # a request is recognised, and its reverse route kept, for about this long
    destination_only: bool = False  # true: only the destination answers; fresher routes, more frames
    gratuitous: bool = False  # true: a relay that answers also tells the destination the route back
    broadcast_jitter_s: float = 0.01  # a relay repeats a request after a uniform time up to this
    delay_own_requests: bool = False  # true: own requests wait like that, too

    # How long routes live
    active_route_timeout_s: float = 10.0  # unused routes expire; the draft has 3 s without link-layer feedback
    my_route_timeout_s: float = 6.0  # the lifetime that a destination gives to routes towards itself
    delete_period_s: float = 50.0  # an expired route's number is remembered this long, to recognise outdated routes

    # How a broken link is noticed and what is done about it
    hello: bool = False  # true: nodes on active routes say hello; needed where the link reports no failures
    hello_everywhere: bool = False  # true: with `hello`, nodes that are on no active route say hello, too
    hello_interval_s: float = 1.0  # longest time between hellos
    hello_jitter: float = 0.25  # share by which that time is shorter, at random
    allowed_hello_loss: int = 2  # hello intervals of silence after which a neighbour is gone
    blacklist_timeout_s: float = 5.6  # requests of a neighbour that an RREP did not reach are ignored; 0: never
    local_repair: bool = False  # true: the relay before a break looks for the destination before it gives up
    local_add_ttl_hops: int = 2  # how far beyond the destination's last distance a repair looks
    max_repair_ttl_hops: int = 10  # destinations farther away are left to the source; 0.3 * net_diameter

    # Data
    buffer_packets: int = 64  # per destination, while a route is sought
    buffer_timeout_s: float = 30.0  # the longest wait for a route
    hops_max: int = 64  # a packet that has come this far is dropped
    attempts_max: int = 3  # how often a packet is sent over a new route after its first link broke

    # State
    numbers_per_s: int = 100  # own sequence numbers start at the clock times this; above the rate of own requests
    requests_max: int = 16_384  # requests of other nodes that are remembered; a bound on memory

    def __post_init__(self) -> None:
        for field in ("net_diameter_hops", "ttl_start_hops", "ttl_increment_hops", "hops_max", "attempts_max"):
            require(1 <= getattr(self, field) <= 255, field, getattr(self, field), "between 1 and 255")
        for field in ("ttl_threshold_hops", "timeout_buffer_hops", "local_add_ttl_hops", "max_repair_ttl_hops"):
            require(0 <= getattr(self, field) <= 255, field, getattr(self, field), "between 0 and 255")
        require(0 <= self.request_retries <= 16, "request_retries", self.request_retries, "between 0 and 16")
        require(0 <= self.hello_jitter < 1, "hello_jitter", self.hello_jitter, "at least 0 and below 1")
        require(1 <= self.numbers_per_s <= 10**6, "numbers_per_s", self.numbers_per_s, "between 1 and 10^6")
        for field in ("request_rate_limit", "error_rate_limit", "allowed_hello_loss", "buffer_packets", "requests_max"):
            require(getattr(self, field) >= 1, field, getattr(self, field), "at least 1")
        for field in _DURATIONS:
            require(0 < getattr(self, field) <= 86_400, field, getattr(self, field), "above 0 and at most 86400 s")
        for field in ("broadcast_jitter_s", "blacklist_timeout_s"):
            require(0 <= getattr(self, field) <= 3600, field, getattr(self, field), "between 0 and 3600 s")
        longest_s = max(self.active_route_timeout_s, self.my_route_timeout_s, self.path_discovery_time_s)
        longest_s = max(longest_s, self.silence_s)
        allowed = f"at least the longest route lifetime ({longest_s:g} s), or routes could loop"
        require(self.delete_period_s >= longest_s, "delete_period_s", self.delete_period_s, allowed)

    @property
    def silence_s(self) -> float:
        """A neighbour that said hello and then nothing for this time is gone."""
        return self.allowed_hello_loss * self.hello_interval_s

    def ring_traversal_time_s(self, ttl_hops: int) -> float:
        """How long to wait for the answer to a request that travels `ttl_hops`."""
        return 2 * self.node_traversal_time_s * (ttl_hops + self.timeout_buffer_hops)


_DURATIONS: Final = (
    "node_traversal_time_s",
    "net_traversal_time_s",
    "path_discovery_time_s",
    "active_route_timeout_s",
    "my_route_timeout_s",
    "delete_period_s",
    "hello_interval_s",
    "buffer_timeout_s",
)

NS2: Final = AodvParameters(
    net_diameter_hops=30,
    node_traversal_time_s=0.03,
    net_traversal_time_s=1.0,  # RREP_WAIT_TIME; ns-2 lets it grow linearly with the retries, the draft doubles it
    timeout_buffer_hops=0,
    ttl_start_hops=5,
    request_retries=3,
    path_discovery_time_s=6.0,  # BCAST_ID_SAVE, and REV_ROUTE_LIFE
    active_route_timeout_s=10.0,
    my_route_timeout_s=10.0,
    allowed_hello_loss=3,
    blacklist_timeout_s=0.0,  # ns-2 keeps no blacklist
)
"""The constants of stock ns-2.35, under which the papers' evaluations ran."""

NS3: Final = AodvParameters(
    request_retries=1,  # ns-3 counts requests of full width, not their repetitions
    gratuitous=True,
    delay_own_requests=True,
    active_route_timeout_s=3.0,
    my_route_timeout_s=11.2,
    delete_period_s=15.0,
    hello=True,
    hello_everywhere=True,
    allowed_hello_loss=4,  # as `peers/ns3/aodv.cc` sets it, and says why
    blacklist_timeout_s=0.0,  # the timer that would put a neighbour on ns-3's blacklist is never started
    attempts_max=1,  # ns-3 drops the packet whose link broke
)
"""The settings of ns-3's AODV (version 3.37) in `peers/ns3/aodv.cc`."""
