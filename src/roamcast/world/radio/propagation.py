"""Mean received power by distance, in dB above the weakest signal that can be received."""

import math
from abc import ABC, abstractmethod
from typing import Any, Final

import numpy as np

NEAREST_M: Final = 1.0  # models hold in the far field; closer nodes count as this far apart
LIGHT_MPS: Final = 299_792_458.0


class PathLoss(ABC):
    @abstractmethod
    def margins_db(self, distances_m: Any) -> Any:
        """For each distance of an array: 0 at the radio's range, above 0 within it; falls with distance."""

    def margin_db(self, distance_m: float) -> float:
        return float(self.margins_db(np.array([distance_m]))[0])

    @abstractmethod
    def distance_m(self, margin_db: float) -> float:
        """Where the signal has this margin: the inverse of `margin_db`."""


class DiscLoss(PathLoss):
    def __init__(self, range_m: float) -> None:
        self._range_m = range_m

    def margins_db(self, distances_m: Any) -> Any:
        return np.where(distances_m <= self._range_m, 0.0, -math.inf)

    def distance_m(self, margin_db: float) -> float:
        return self._range_m


class LogDistanceLoss(PathLoss):
    def __init__(self, range_m: float, exponent: float) -> None:
        self._range_m = range_m
        self._exponent = exponent

    def margins_db(self, distances_m: Any) -> Any:
        return 10 * self._exponent * np.log10(self._range_m / np.maximum(distances_m, NEAREST_M))

    def distance_m(self, margin_db: float) -> float:
        return float(self._range_m * 10 ** (-margin_db / (10 * self._exponent)))


class TwoRayLoss(PathLoss):
    """Rappaport, "Wireless Communications", section 4.6, with the crossover that ns-2 uses."""

    def __init__(self, range_m: float, antenna_height_m: float, frequency_mhz: float) -> None:
        self.crossover_m = 4 * math.pi * antenna_height_m**2 * frequency_mhz * 1e6 / LIGHT_MPS
        self._at_range_db = float(self._losses_db(np.array([range_m]))[0])

    def _losses_db(self, distances_m: Any) -> Any:
        """Up to a constant."""
        decades = np.log10(np.maximum(distances_m, NEAREST_M) / self.crossover_m)
        return np.where(decades <= 0, 20, 40) * decades

    def margins_db(self, distances_m: Any) -> Any:
        return self._at_range_db - self._losses_db(distances_m)

    def distance_m(self, margin_db: float) -> float:
        loss_db = self._at_range_db - margin_db
        return float(self.crossover_m * 10 ** (loss_db / (20 if loss_db <= 0 else 40)))
