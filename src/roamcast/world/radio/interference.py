"""Whether a frame survives what overlapped it at a receiver.

The receiver has locked on the first frame; later ones are noise to it. Three rules:

- `bit-errors` (ns-3 with a range propagation model): all signals arrive equally strong. One that starts while the
  preamble is being detected ruins it; later ones flip bits, at the bit error rate of the modulation for a ratio of
  signal to noise of one over the number of interferers (22 MHz of bandwidth, as in 802.11b).
- `threshold` (ns-2): the first frame survives if it is at least 10 dB stronger than each later one, by two-ray ground
  propagation. Without positions (contact lists) all count as equally strong.
- `none`: any overlap destroys.
"""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from roamcast.protocols.api import Point
from roamcast.seeds import Random
from roamcast.world.radio.dcf_settings import DETECT_S, DcfSettings
from roamcast.world.radio.rate import Rate
from roamcast.world.radio.station import DcfFrame

if TYPE_CHECKING:
    from roamcast.world.mobility import Movements

CAPTURE_RATIO: Final = 10.0
CROSSOVER_M: Final = 86.14  # up to here free space, beyond it two rays: 914 MHz, antennas at 1.5 m


class Interference:
    def __init__(self, settings: DcfSettings, movements: "Movements | None", random: Random) -> None:
        self._capture = settings.capture
        self._header_rate = settings.phy.header_rate
        self._movements = movements
        self._draw: Callable[[], float] = random.random  # looked up once

    def survives(self, frame: DcfFrame, receiver: int, others: list[DcfFrame]) -> bool:
        if self._capture == "bit-errors":
            chance = survival(frame, others, self._header_rate)
            return chance > 0 and self._draw() < chance
        if self._capture == "threshold" and self._movements is not None:
            at = self._movements.position(receiver, frame.start)
            power = received_power(self._source(frame, self._movements), at)
            for other in others:
                if power < CAPTURE_RATIO * received_power(self._source(other, self._movements), at):
                    return False
            return True
        return False

    def _source(self, frame: DcfFrame, movements: "Movements") -> Point:
        if frame.source is None:
            frame.source = movements.position(frame.sender, frame.start)
        return frame.source


def survival(frame: DcfFrame, others: list[DcfFrame], header_rate: Rate) -> float:
    """The probability that no bit of `frame` is wrong, all signals being equally strong."""
    for other in others:
        if other.start - frame.start < DETECT_S:
            return 0.0
    if len(others) == 1:
        return survival_of_one(frame, others[0], header_rate)
    return survival_of_many(frame, others, header_rate)


def survival_of_one(frame: DcfFrame, other: DcfFrame, header_rate: Rate) -> float:
    """The same as `survival_of_many` for the case that is by far the most frequent: a single interferer."""
    payload = frame.start + frame.rate.preamble_s
    begin = payload - frame.rate.header_s
    if other.start > begin:
        begin = other.start
    end = frame.end if frame.end < other.end else other.end
    logarithm = 0.0
    if begin < payload:
        until = payload if payload < end else end
        if until > begin:
            logarithm = (until - begin) * header_rate.bps * header_rate.log_bit_survival(1)
        begin = payload
    if begin < end:
        logarithm += (end - begin) * frame.rate.bps * frame.rate.log_bit_survival(1)
    return math.exp(logarithm)


def survival_of_many(frame: DcfFrame, others: list[DcfFrame], header_rate: Rate) -> float:
    payload, end = frame.start + frame.rate.preamble_s, frame.end
    begin = payload - frame.rate.header_s
    logarithm = 0.0
    while begin < end:
        until = payload if begin < payload else end  # the next instant at which rate or interferers change
        interferers = 0
        for other in others:
            if other.start <= begin:
                if other.end > begin:
                    interferers += 1
                    until = min(until, other.end)
            else:
                until = min(until, other.start)
        if interferers:
            rate = header_rate if begin < payload else frame.rate
            logarithm += (until - begin) * rate.bps * rate.log_bit_survival(interferers)
        begin = until
    return math.exp(logarithm)


def received_power(source: Point, at: Point) -> float:
    """Received power up to a constant: 1/d² to the crossover, 1/d⁴ beyond, continuous."""
    x_m, y_m = source[0] - at[0], source[1] - at[1]
    square = max(x_m * x_m + y_m * y_m, 1e-6)
    if square < CROSSOVER_M * CROSSOVER_M:
        return 1 / (square * (CROSSOVER_M * CROSSOVER_M))
    return 1 / (square * square)
