"""Bit error rates: how often a bit is read wrong, by modulation and ratio of noise to signal.

Noise is thermal noise and interference together, in the channel's bandwidth, relative to the signal: the inverse of the
SNIR. Interference counts as Gaussian noise.

- DSSS (802.11b at 1 and 2 Mbit/s): DBPSK and DQPSK, whose energy per bit is the SNIR times bandwidth over bit rate.
- CCK (802.11b at 5.5 and 11 Mbit/s): the union bound over the distances between code words (IEEE 802.15.2, annex C).
- OFDM (802.11g): soft decisions, and the union bound of the rate-1/2 convolutional code with generators 133 and 171 and
  its punctured forms, from their distance spectra (Frenger, Orten, Ottosson: "Convolutional codes with optimum distance
  spectrum", 1999). Bits of a QAM symbol lie at several distances from the decision boundary; the code sees their mean
  Chernoff factor. `BOUND_SLACK` makes up for the bound. ns-3's default, a table of simulated links, agrees within
  0.4 dB (9 Mbit/s: 0.7 dB); its NIST model decides hard and needs 2 to 4 dB more.
"""

import math
from abc import ABC, abstractmethod
from typing import Final

DSSS_BANDWIDTH_HZ: Final = 22e6
BOUND_SLACK: Final = 10**0.06
"""The union bound overstates errors: with 0.6 dB less, simulated decoders lose one in ten frames of 100 bytes."""


class RadioModulation(ABC):
    @abstractmethod
    def bit_error_rate(self, noise: float) -> float:
        """`noise` is the ratio of noise to signal, above 0."""


class Dbpsk(RadioModulation):
    def __init__(self, bps: float) -> None:
        self._bps = bps

    def bit_error_rate(self, noise: float) -> float:
        return min(0.5, 0.5 * math.exp(-(DSSS_BANDWIDTH_HZ / self._bps / noise)))


class Dqpsk(RadioModulation):
    def __init__(self, bps: float) -> None:
        self._bps = bps

    def bit_error_rate(self, noise: float) -> float:
        energy = DSSS_BANDWIDTH_HZ / self._bps / noise
        scale = (math.sqrt(2) + 1) / math.sqrt(8 * math.pi * math.sqrt(2))
        return min(0.5, scale / math.sqrt(energy) * math.exp(-(2 - math.sqrt(2)) * energy))


class Cck(RadioModulation):
    """Words of 4 bits (5.5 Mbit/s) or 8 bits (11 Mbit/s)."""

    def __init__(self, word_bits: int) -> None:
        self._per_word = 8 / 15 if word_bits == 4 else 128 / 255  # wrong bits per wrong word, per bit of a word
        self._spectrum = CCK_WORDS[word_bits]

    def bit_error_rate(self, noise: float) -> float:
        wrong_words = 0.0
        for words, distance in self._spectrum:
            wrong_words += words * _tail(math.sqrt(distance / noise))
        return min(0.5, self._per_word * min(1.0, wrong_words))


class Ofdm(RadioModulation):
    def __init__(self, bits_per_carrier: int, code: str) -> None:
        self._points = POINTS[bits_per_carrier]
        self._puncture_period, self._first_distance, self._weights = CODES[code]

    def bit_error_rate(self, noise: float) -> float:
        per_bit = self._bit_snir(BOUND_SLACK / noise)
        step = 2 if self._puncture_period == 1 else 1  # rate 1/2 has even distances only
        errors = 0.0
        for place, weight in enumerate(self._weights):
            errors += weight * _tail(math.sqrt(2 * (self._first_distance + step * place) * per_bit))
        return min(0.5, errors / self._puncture_period)

    def _bit_snir(self, snir: float) -> float:
        """Of one coded bit: what BPSK would need to protect it as well."""
        energy, distances = self._points
        nearest = snir / energy
        if len(distances) == 1:
            return nearest
        factor = 0.0  # relative to that of the nearest points, which could be too small for a float
        for distance, share in distances:
            factor += share * math.exp(-(distance * distance - 1) * nearest)
        return nearest - math.log(factor)


POINTS: Final[dict[int, tuple[float, tuple[tuple[float, float], ...]]]] = {
    # by coded bits per carrier: a symbol's energy by that of its nearest points; the shares of bits at each distance
    1: (1.0, ((1.0, 1.0),)),
    2: (2.0, ((1.0, 1.0),)),
    4: (10.0, ((1.0, 3 / 4), (3.0, 1 / 4))),
    6: (42.0, ((1.0, 7 / 12), (3.0, 3 / 12), (5.0, 1 / 12), (7.0, 1 / 12))),
}
CCK_WORDS: Final[dict[int, tuple[tuple[int, int], ...]]] = {
    # by bits per word: how many other words there are at each distance, in units of the noise
    4: ((14, 8), (1, 16)),
    8: ((24, 4), (16, 6), (174, 8), (16, 10), (24, 12), (1, 16)),
}
CODES: Final[dict[str, tuple[int, int, tuple[float, ...]]]] = {
    # puncturing period, free distance, total bit errors of the paths at each distance from there on
    "1/2": (1, 10, (36, 211, 1404, 11633, 77433, 502690, 3322763, 21292910, 134365911)),
    "2/3": (2, 6, (3, 70, 285, 1276, 6160, 27128, 117019, 498860, 2103891, 8784123)),
    "3/4": (3, 5, (42, 201, 1492, 10469, 62935, 379644, 2253373, 13073811, 75152755, 428005675)),
}


def _tail(x: float) -> float:
    """The probability that a standard normal variable exceeds `x`."""
    return 0.5 * math.erfc(x / math.sqrt(2))
