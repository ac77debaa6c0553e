"""What can be tuned about the oracles."""

from roamcast.protocols import api
from roamcast.protocols.api import require


class OracleParameters(api.Parameters, frozen=True):
    tries_max: int = 8  # failed links that one frame's journey may meet before its destinations are given up

    def __post_init__(self) -> None:
        require(0 <= self.tries_max <= 1000, "tries_max", self.tries_max, "between 0 and 1000")


class OracleBroadcastParameters(OracleParameters, frozen=True):
    turn_s: float = 0.0009  # between relays that are named in the same frame; about the airtime of an event
    relay_wait_s: float = 0.012  # a relay has this long to be heard

    def __post_init__(self) -> None:
        super().__post_init__()
        require(0 <= self.turn_s <= 10, "turn_s", self.turn_s, "between 0 and 10")
        require(0 < self.relay_wait_s <= 60, "relay_wait_s", self.relay_wait_s, "above 0, at most 60")
