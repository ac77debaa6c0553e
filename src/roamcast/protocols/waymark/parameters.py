"""The parameters of Waymark."""

from roamcast.protocols import api
from roamcast.protocols.api import require


class WaymarkParameters(api.Parameters, frozen=True):
    # Knowledge: links
    hello_min_s: float = 1.0  # shortest time between two hellos of a node; below hello_max_s
    hello_max_s: float = 12.0  # longest time between two hellos; longer is cheaper, and finds new links later
    hello_placed_s: float = 30.0  # the same for a node that knows its place, since its links follow from places
    hello_price: float = 1.2  # cost of a hello, in events that meet a broken link; higher: fewer hellos
    quality_min: float = 0.7  # links that lose more hellos than 1 minus this are not used
    # Knowledge: records
    stray_m: float = 4.0  # a node this far from where it said it would be says where it is
    angle: float = 0.8  # a turn may wait until the direction in which the node is seen is off by this, in radians
    check_s: float = 0.5  # time between two checks of that
    news_s: float = 1.0  # longest time for which an urgent update waits for others
    where_periods: float = 10.0  # shortest time between two updates of a node's links to the network, in hello periods
    settle_s: float = 1.5  # time for which a starting node listens before it forwards records
    # Forwarding
    jitter_s: float = 0.01  # longest random delay before an event is flooded to all nodes
    hops_max: int = 64  # longest path of an event, in hops
    # Repair
    response_min_s: float = 0.0009  # shortest time between the turns of two relays; about the airtime of an event
    relay_wait_s: float = 0.012  # shortest time within which a relay must be heard forwarding an event
    receipt_s: float = 0.03  # time for which receipts over doubtful links wait for others
    patience_s: float = 2.0  # the same over sure links; at least receipt_s
    tries_max: int = 3  # times that a node accepts the same destination of an event
    # Custody
    custody_s: float = 60.0  # events without a path are kept until they are this old; 0: not at all
    custody_bytes: int = 1_000_000  # what a node keeps for others, and what it remembers of its own, takes no more
    durable: bool = False  # this node wants what was published up to custody_s before it said what it wants

    def __post_init__(self) -> None:
        require(0 < self.hello_min_s < self.hello_max_s, "hello_min_s", self.hello_min_s, "above 0, below hello_max_s")
        require(self.hello_max_s <= 3600, "hello_max_s", self.hello_max_s, "at most 3600")
        require(self.hello_min_s < self.hello_placed_s <= 3600, "hello_placed_s", self.hello_placed_s, "to 3600")
        require(self.hello_price > 0, "hello_price", self.hello_price, "above 0")
        require(0 <= self.quality_min <= 1, "quality_min", self.quality_min, "between 0 and 1")
        require(self.jitter_s >= 0, "jitter_s", self.jitter_s, "at least 0")
        require(1 <= self.hops_max <= 255, "hops_max", self.hops_max, "between 1 and 255")
        require(self.response_min_s > 0, "response_min_s", self.response_min_s, "above 0")
        require(self.relay_wait_s > 0, "relay_wait_s", self.relay_wait_s, "above 0")
        require(self.receipt_s >= 0, "receipt_s", self.receipt_s, "at least 0")
        require(self.receipt_s <= self.patience_s <= 60, "patience_s", self.patience_s, "receipt_s to 60")
        require(0 <= self.custody_s <= 1e6, "custody_s", self.custody_s, "between 0 and 1000000")
        require(0 <= self.custody_bytes <= 10**12, "custody_bytes", self.custody_bytes, "between 0 and 10^12")
        require(0 < self.check_s <= 60, "check_s", self.check_s, "above 0, at most 60")
        require(0 < self.news_s <= 600, "news_s", self.news_s, "above 0, at most 600")
        require(0 <= self.angle <= 3, "angle", self.angle, "between 0 and 3")
        require(self.stray_m > 0, "stray_m", self.stray_m, "above 0")
        require(self.where_periods >= 0, "where_periods", self.where_periods, "at least 0")
        require(0 <= self.settle_s <= 600, "settle_s", self.settle_s, "between 0 and 600")
        require(0 <= self.tries_max <= 100, "tries_max", self.tries_max, "between 0 and 100")
