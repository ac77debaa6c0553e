"""The parameters of Waymark."""

from roamcast.protocols import api
from roamcast.protocols.api import require
from roamcast.protocols.parameters import require_between


class WaymarkParameters(api.Parameters, frozen=True):
    # Knowledge: links
    hello_min_s: float = 1.0  # shortest time between two hellos of a node; below hello_max_s
    hello_max_s: float = 12.0  # longest time between two hellos; longer is cheaper, and finds new links later
    hello_placed_s: float = 30.0  # the same for a node that knows its place, since its links follow from places
    hello_slow_s: float = 300.0  # time between two hellos over a slow radio
    hello_jitter: float = 0.15  # hello periods are longer or shorter by up to this share, at random
    hello_soon: float = 0.5  # a hello because of a stranger is delayed by up to this share of hello_min_s, at random
    hello_late: float = 1.3  # a neighbour of which nothing is heard for this many of its hello periods is gone
    hello_price: float = 0.8  # cost of a hello, in events that meet a broken link; higher: fewer hellos
    churn_assumed: float = 0.02  # links gained or lost per link and second, until the node has measured it
    events_assumed: float = 0.25  # events per second, until the node has measured it
    rates_memory_s: float = 20.0  # time over which it measures both
    slow_radio_s: float = 0.02  # a radio on which most hellos have not left after this time is slow
    slow_weight: float = 0.4  # weight of the last hello in the share of hellos that have not
    slow_share: float = 0.5  # above this share the radio counts as slow
    quality_min: float = 0.7  # links that lose more hellos than 1 minus this are not used
    quality_weight: float = 0.25  # weight of the last hello in the share of hellos that arrive
    quality_restart: float = 0.5  # least quality of a link to a node that has started again
    missed_max: int = 8  # a gap in a neighbour's hellos counts as at most this many losses
    trust_kept: float = 0.8  # share of its trust that a neighbour keeps if it does not confirm an event
    trust_gain: float = 0.04  # share of the missing trust that it gains if it confirms an event at once
    idle_share: float = 0.55  # a neighbour that is heard passing on a smaller share of what it should is idle
    idle_assumed: float = 0.8  # that share, for a neighbour of which nothing is known
    idle_gain: float = 0.25  # share of the missing that it gains when it is heard passing any event on
    change_doubtful: float = 0.02  # a link is in doubt once it has changed with this probability since it was heard
    cut_s: float = 90.0  # time for which a failed link is not used unless something is heard over it
    silent_periods: float = 2.5  # a neighbour that is near by its place is cut after this many hello periods of silence
    # Knowledge: places
    stray_m: float = 4.0  # a node this far from where it said it would be says where it is
    check_s: float = 0.5  # time between two checks of that
    check_jitter: float = 0.5  # the first check is earlier or later by up to this share, at random
    angle: float = 0.8  # a turn may wait until the direction in which the node is seen is off by this, in radians
    reach_near: float = 0.9  # within this share of the reach a node should be heard
    reach_far: float = 1.1  # beyond this share of the reach a node should not be heard
    reach_safe: float = 0.98  # links up to this share of the reach are planned with
    reach_samples: int = 128  # frames from which a node learns the reach, unless it is configured
    reach_possible: float = 1.0  # links up to this share of the reach are tried where there is no other path
    surprises_max: float = 0.12  # above this share of frames that places do not explain, places are distrusted
    heard_weight: float = 1 / 64  # weight of a frame that is heard in that share
    missed_weight: float = 1 / 24  # weight of a frame that fails
    distrust_s: float = 300.0  # time for which they are
    lacked_min: int = 2  # a node that this many neighbours report as not heard counts as silent
    # Knowledge: records
    news_s: float = 1.0  # longest time for which an urgent update waits for others
    news_own: float = 0.3  # share of that for which an update of this node's own record waits
    news_least: float = 0.1  # a record is forwarded after at least this share of its longest time
    news_few: int = 3  # nodes with more than about this many neighbours that lack a record forward it earlier
    news_busy_s: float = 0.1  # updates wait this long while other frames wait to be sent
    news_gap_s: float = 0.05  # shortest time between two frames of updates
    reply_spread_s: float = 0.5  # replies to a stranger or to a listing are spread over this time
    news_start_factor: float = 3.0  # a starting node waits this many times longer
    news_bytes_max: int = 900  # records in one frame take no more
    news_ride_bytes: int = 90  # records in a frame with an event take no more
    view_s: float = 1.0  # time for which a view of the network serves, unless something changes
    where_periods: float = 10.0  # shortest time between two updates of a node's links to the network, in hello periods
    where_max_s: float = 30.0  # the same in seconds, if that is sooner
    settle_s: float = 1.5  # time for which a starting node listens before it forwards records
    settle_periods: float = 10.0  # after this many times settle_s a node counts as informed in any case
    answer_s: float = 4.0  # a stranger is told all records no more often than this
    list_s: float = 4.0  # a node lists what it knows if it has heard nothing new for this long and a neighbour differs
    list_delay_s: float = 1.0  # a listing is sent within this time, or within half of it if no update is under way
    list_least: float = 0.2  # and after at least this share of it
    list_periods: float = 1.5  # records that differ after this many hello periods without updates are compared
    # Forwarding
    slack_s: float = 0.3  # error that is expected in times that nodes tell each other
    forget_s: float = 5.0  # time for which a node remembers what it does about an event
    jitter_s: float = 0.01  # longest random delay before an event is flooded to all nodes
    jitter_slow_s: float = 4.0  # the same over a slow radio
    copies_max: int = 3  # over a slow radio a node that has heard this many copies does not forward an event
    spread_again_s: float = 15.0  # shortest time between two floods because of the same unreachable destination
    hops_max: int = 64  # longest path of an event, in hops
    # Repair
    response_min_s: float = 0.0009  # shortest time between the turns of two relays; about the airtime of an event
    response_weight: float = 1 / 8  # weight of the last response in the usual response time
    response_rise: float = 1.05  # factor by which it rises when a relay is not heard in time
    response_patience: float = 5.0  # relays and receipts are waited for at least this many response times
    response_rise_max: float = 2.0  # one late relay counts as no later than this many usual response times
    relay_wait_s: float = 0.012  # shortest time within which a relay must be heard forwarding an event
    receipt_min_s: float = 0.001  # receipts that another node needs at once wait this long
    receipt_jitter: float = 0.5  # other receipts wait less by up to this share, at random
    receipt_s: float = 0.03  # time for which receipts over other than good links wait for others
    patience_s: float = 2.0  # the same over good links; at least receipt_s
    tries_max: int = 3  # times that a node accepts the same destination of an event
    # Custody
    custody_s: float = 60.0  # events without a path are kept until they are this old; 0: not at all
    custody_bytes: int = 1_000_000  # what a node keeps for others, and what it remembers of its own, takes no more
    custody_check_s: float = 0.5  # time between two looks for new paths
    retry_min_s: float = 2.0  # time before an event in custody is tried again; doubles each time
    retry_max_s: float = 15.0  # up to this
    durable: bool = False  # this node wants what was published up to custody_s before it said what it wants

    def __post_init__(self) -> None:
        require(0 < self.hello_min_s < self.hello_max_s, "hello_min_s", self.hello_min_s, "above 0, below hello_max_s")
        require_between(self, 0, 3600, *_PERIODS)
        require_between(self, 0, 600, *_DELAYS)
        require_between(self, 0, 1, *_SHARES)
        require_between(self, 0.1, 10, "reach_near", "reach_far", "reach_safe", "reach_possible")
        require_between(self, 0, 1000, *_FACTORS)
        require_between(self, 1, 1000, *_FACTORS_FROM_1)
        require_between(self, 0.1, 3600, "rates_memory_s", "forget_s")
        require_between(self, 0, 100, "tries_max")
        require_between(self, 0, 3, "angle")
        require_between(self, 0.01, 1e6, "stray_m")
        require_between(self, 1, 255, "hops_max", "missed_max")
        require_between(self, 0.01, 60, "check_s", "custody_check_s")
        require_between(self, 1e-6, 60, "response_min_s", "relay_wait_s", "slow_radio_s", "receipt_min_s")
        require(0 <= self.receipt_s <= self.patience_s, "receipt_s", self.receipt_s, "0 to patience_s")
        require(self.retry_min_s <= self.retry_max_s, "retry_min_s", self.retry_min_s, "at most retry_max_s")
        require_between(self, 0, 1_000_000, "custody_s", "news_bytes_max", "news_ride_bytes")
        require_between(self, 0, 10**12, "custody_bytes")


_PERIODS = ("hello_max_s", "hello_placed_s", "hello_slow_s", "cut_s", "distrust_s", "retry_min_s", "retry_max_s")
_DELAYS = (
    "news_s", "view_s", "where_max_s", "settle_s", "answer_s", "list_s", "jitter_s", "jitter_slow_s", "spread_again_s",
    "patience_s", "news_busy_s", "news_gap_s", "reply_spread_s", "list_delay_s", "slack_s",
)  # fmt: skip
_SHARES = (
    "quality_min", "change_doubtful", "surprises_max", "hello_jitter", "hello_soon", "slow_weight", "slow_share",
    "quality_weight", "quality_restart", "trust_kept", "trust_gain", "idle_share", "idle_assumed", "idle_gain",
    "check_jitter", "heard_weight", "missed_weight",
    "news_own", "news_least", "list_least", "response_weight", "receipt_jitter",
)  # fmt: skip
_FACTORS = (
    "hello_price", "churn_assumed", "events_assumed", "where_periods", "silent_periods", "news_start_factor",
    "settle_periods", "list_periods",
)  # fmt: skip
_FACTORS_FROM_1 = (
    "hello_late", "reach_samples", "news_few", "response_rise", "response_patience", "response_rise_max", "lacked_min",
    "copies_max",
)  # fmt: skip
