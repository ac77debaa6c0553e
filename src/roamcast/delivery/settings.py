"""What an operator may change about the delivery layer."""

import msgspec

from roamcast.protocols.parameters import require, require_between

MIB = 1 << 20


class DeliverySettings(msgspec.Struct, frozen=True, kw_only=True):
    """Every bound of the layer that is not a limit of its messages."""

    bytes_max: int = 64 * MIB  # of the events it holds, encoded
    events_max: int = 50_000  # events and ids of past events that it remembers
    age_max_s: float = 3600.0  # it holds no event longer than this after its publication
    away_max_s: float = 3600.0  # the interests of a node that is away are remembered for this long
    history_s: float = 10.0  # a new subscription gets events that were published up to this long before
    beat_period_s: float = 1.0  # a node says what it holds this often, if nothing changes
    beat_delay_s: float = 0.05  # it says what changed after a random time between half of this and all of it
    patience_s: float = 0.15  # an event that a neighbour has is asked for after this; it may be on its way
    fetch_timeout_s: float = 0.5  # an answer that takes longer is asked for again, of another neighbour if there is one
    fetch_tries_patient: int = 4  # tries to fetch an event after which the timeout doubles with each further one
    fetch_pause_max_s: float = 8.0  # up to this
    fetch_tries_max: int = 20  # tries to fetch an event; then the node waits until a neighbour lists it again
    fresh_beats: int = 3  # beats in which a new entry of the log is listed
    resends_max: int = 3  # per beat period: how often an event is sent again to a neighbour after the link gave up
    backlog_max: int = 64  # events are not sent to neighbours while this many frames wait at the link
    share_bytes_max: int = 16 * 1024  # records that are broadcast per beat period because a neighbour's differ
    refreshes: int = 4  # how often a node repeats its record within away_max_s
    order_wait_s: float = 30.0  # an ordered subscription waits at most this long for an event that is missing
    window: int = 64  # events handed over to a subscription of its own that it has not acknowledged

    def __post_init__(self) -> None:
        require(65_536 <= self.bytes_max <= 1 << 40, "bytes_max", self.bytes_max, "between 64 KiB and 1 TiB")
        require(16 <= self.events_max <= 10**7, "events_max", self.events_max, "between 16 and 10,000,000")
        require(1 <= self.age_max_s <= 1e6, "age_max_s", self.age_max_s, "between 1 and 1,000,000 s")
        require(1 <= self.away_max_s <= 1e6, "away_max_s", self.away_max_s, "between 1 and 1,000,000 s")
        require(0 <= self.history_s <= 1e6, "history_s", self.history_s, "between 0 and 1,000,000 s")
        require(0.05 <= self.beat_period_s <= 60, "beat_period_s", self.beat_period_s, "between 0.05 and 60 s")
        require(0.001 <= self.beat_delay_s <= 10, "beat_delay_s", self.beat_delay_s, "between 0.001 and 10 s")
        require(0 <= self.patience_s <= 60, "patience_s", self.patience_s, "between 0 and 60 s")
        require(0.05 <= self.fetch_timeout_s <= 60, "fetch_timeout_s", self.fetch_timeout_s, "between 0.05 and 60 s")
        require_between(self, 0, 1000, "fetch_tries_patient", "resends_max")
        require_between(self, 1, 1000, "fetch_tries_max", "refreshes")
        require_between(self, 0.05, 3600, "fetch_pause_max_s")
        require_between(self, 2, 100, "fresh_beats")
        require_between(self, 1, 10_000, "backlog_max")
        require_between(self, 256, MIB, "share_bytes_max")
        require(0.1 <= self.order_wait_s <= 3600, "order_wait_s", self.order_wait_s, "between 0.1 and 3,600 s")
        require(1 <= self.window <= 10_000, "window", self.window, "between 1 and 10,000")
