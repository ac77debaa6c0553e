"""Mean received power by distance, in dB above the weakest signal that can be received."""

import math
from abc import ABC, abstractmethod
from typing import Final

NEAREST_M: Final = 1.0  # models hold in the far field; closer nodes count as this far apart
LIGHT_MPS: Final = 299_792_458.0


class PathLoss(ABC):
    @abstractmethod
    def margin_db(self, distance_m: float) -> float:
        """0 at the radio's range, above 0 within it; falls with distance."""

    @abstractmethod
    def distance_m(self, margin_db: float) -> float:
        """Where the signal has this margin: the inverse of `margin_db`."""


class DiscLoss(PathLoss):
    def __init__(self, range_m: float) -> None:
        self._range_m = range_m

    def margin_db(self, distance_m: float) -> float:
        return 0.0 if distance_m <= self._range_m else -math.inf

    def distance_m(self, margin_db: float) -> float:
        return self._range_m


class LogDistanceLoss(PathLoss):
    def __init__(self, range_m: float, exponent: float) -> None:
        self._range_m = range_m
        self._exponent = exponent

    def margin_db(self, distance_m: float) -> float:
        distance_m = max(distance_m, NEAREST_M)
        return 10 * self._exponent * math.log10(self._range_m / distance_m)

    def distance_m(self, margin_db: float) -> float:
        return float(self._range_m * 10 ** (-margin_db / (10 * self._exponent)))


class TwoRayLoss(PathLoss):
    """Rappaport, "Wireless Communications", section 4.6, with the crossover that ns-2 uses."""

    def __init__(self, range_m: float, antenna_height_m: float, frequency_mhz: float) -> None:
        self.crossover_m = 4 * math.pi * antenna_height_m**2 * frequency_mhz * 1e6 / LIGHT_MPS
        self._at_range_db = self._loss_db(range_m)

    def _loss_db(self, distance_m: float) -> float:
        """Up to a constant."""
        distance_m = max(distance_m, NEAREST_M)
        if distance_m <= self.crossover_m:
            return 20 * math.log10(distance_m / self.crossover_m)
        return 40 * math.log10(distance_m / self.crossover_m)

    def margin_db(self, distance_m: float) -> float:
        return self._at_range_db - self._loss_db(distance_m)

    def distance_m(self, margin_db: float) -> float:
        loss_db = self._at_range_db - margin_db
        return float(self.crossover_m * 10 ** (loss_db / (20 if loss_db <= 0 else 40)))
