"""Bit rates: how long bits take, and how many of them survive interference."""

import math
from typing import Final

BANDWIDTH_HZ: Final = 22e6


class Rate:
    __slots__ = ("_log_survivals", "bps")

    def __init__(self, bps: float) -> None:
        self.bps = bps
        self._log_survivals: list[float] = []  # by number of interferers, as far as asked for

    def log_bit_survival(self, interferers: int) -> float:
        """Logarithm of the probability that one bit arrives right, all signals being equally strong."""
        survivals = self._log_survivals
        while len(survivals) <= interferers:
            survivals.append(math.log1p(-bit_error_rate(self.bps, max(1, len(survivals)))))
        return survivals[interferers]


def bit_error_rate(bps: float, interferers: int) -> float:
    """DBPSK up to 1 Mbit/s, DQPSK above."""
    energy = BANDWIDTH_HZ / bps / interferers
    if bps <= 1e6:
        return min(0.5, 0.5 * math.exp(-energy))
    scale = (math.sqrt(2) + 1) / math.sqrt(8 * math.pi * math.sqrt(2))
    return min(0.5, scale / math.sqrt(energy) * math.exp(-(2 - math.sqrt(2)) * energy))
