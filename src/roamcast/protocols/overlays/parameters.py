"""Parameters of opportunistic overlays, with the paper's section in brackets where it gives the value or the idea."""

from typing import Final, Literal

from roamcast.errors import ConfigurationError
from roamcast.protocols import api
from roamcast.protocols.api import require

Relocation = Literal["strict", "fresh-modulator", "unbuffered", "loose"]


class OverlaysParameters(api.Parameters, frozen=True):
    unicast: Literal["aodv", "oracle"] = "aodv"  # how overlay links and clients are reached over several hops

    # Who is a broker, and how brokers adapt
    broker_share: float = 0.4  # chance of each node to offer itself as a broker [4.1: 40 of 100]
    brokers: str = ""  # addresses that are brokers, as in 0-39 or 2,5,7; overrides broker_share
    adaptors: str = "topology,home-broker,load-balancing"  # in force; none: the overlay of the start, frozen [3.5]
    overload_threshold: float = 0.7  # a broker whose CPU is busy for a larger share takes no clients [2.4]

    # The broker network [2.3]
    update_period_s: float = 20.0  # between neighbour discoveries, and between propagations of what changed
    hop_time_s: float = 0.02  # a search allows so much for every hop of a ring, there and again back
    bootstrap_s: float = 8.0  # after its start a broker does both every bootstrap_period_s for so long
    bootstrap_period_s: float = 1.0
    neighbours_max: int = 4  # brokers that a broker chooses as neighbours; others may choose it on top
    source_routing: bool = True  # false: home brokers send to each other straight, without relays of the overlay
    probe_period_s: float = 0.0  # every broker measures its paths to all others at this interval; 0: never

    # Clients [2.4]
    discovery_period_s: float = 10.0  # between a client's searches for the nearest broker
    home_timeout_s: float = 25.0  # a home broker that was silent for so long despite being asked is given up
    relocation: Relocation = "strict"  # the lighter variants give up consistency of modulators, of events, or both
    handoff_timeout_s: float = 20.0  # a relocation that has not got that far by then goes on without the missing

    # What a consumer's home broker does to its events, in the language of `modulators/`; nothing: passes them on
    modulator: str = ""

    # Reliability
    retry_s: float = 2.0  # shortest wait for an acknowledgement; grows with what they take, up to eight times
    acknowledgement_delay_s: float = 0.25  # acknowledgements are gathered for so long
    store_events: int = 1000  # events kept per producer until all consumers have them; the oldest goes first
    store_lifetime_s: float = 120.0  # and for so long at most

    def __post_init__(self) -> None:
        require(0 <= self.broker_share <= 1, "broker_share", self.broker_share, "between 0 and 1")
        require(self.overload_threshold > 0, "overload_threshold", self.overload_threshold, "above 0")
        require(1 <= self.neighbours_max <= 64, "neighbours_max", self.neighbours_max, "between 1 and 64")
        require(1 <= self.store_events <= 1_000_000, "store_events", self.store_events, "between 1 and 1000000")
        for field in _DURATIONS:
            require(0 < getattr(self, field) <= 86_400, field, getattr(self, field), "above 0 and at most 86400 s")
        for field in ("bootstrap_s", "probe_period_s", "acknowledgement_delay_s"):
            require(0 <= getattr(self, field) <= 86_400, field, getattr(self, field), "between 0 and 86400 s")
        try:
            parse_addresses(self.brokers)
        except ConfigurationError as error:
            raise ValueError(str(error)) from None

    def is_broker(self, address: int, draw: float) -> bool:
        """Whether a node offers itself as a broker; `draw` is its own random number between 0 and 1."""
        if self.brokers:
            return any(low <= address <= high for low, high in parse_addresses(self.brokers))
        return draw < self.broker_share


_DURATIONS: Final = (
    "hop_time_s",
    "update_period_s",
    "bootstrap_period_s",
    "discovery_period_s",
    "home_timeout_s",
    "handoff_timeout_s",
    "retry_s",
    "store_lifetime_s",
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
