"""What can be tuned about the oracle's trees."""

from roamcast.protocols import api
from roamcast.protocols.api import require


class OracleParameters(api.Parameters, frozen=True):
    tries_max: int = 8  # failed links that one frame's journey may meet before its destinations are given up

    def __post_init__(self) -> None:
        require(0 <= self.tries_max <= 1000, "tries_max", self.tries_max, "between 0 and 1000")
