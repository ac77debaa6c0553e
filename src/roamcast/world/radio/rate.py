"""Bit rates: how long a frame takes, and how many of its bits survive noise."""

import math
from typing import Final

from roamcast.world.radio.modulation import RadioModulation

TABLE_FROM_DB: Final = -15.0
TABLE_STEPS_PER_DB: Final = 20
TABLE_SIZE: Final = 60 * TABLE_STEPS_PER_DB  # up to 45 dB, where every rate is free of errors
NO_NOISE: Final = 1e-12
CLEAN: Final = 1e-15  # bits that fail with this probability do not fail: a frame has some ten thousand


class Rate:
    """One rate of a physical layer. A frame is a preamble, a short header at a rate of its own, and the payload."""

    __slots__ = (
        "_bits_ahead", "_log_survivals", "_table", "bits_per_symbol", "bps", "clean_noise", "header_s", "modulation",
        "preamble_s", "symbol_s", "tail_s",
    )  # fmt: skip

    def __init__(
        self,
        bps: float,
        modulation: RadioModulation,
        preamble_s: float,
        header_s: float,
        bits_per_symbol: int = 0,
        symbol_s: float = 0.0,
        bits_ahead: int = 0,
        tail_s: float = 0.0,
    ) -> None:
        self.bps = bps
        self.modulation = modulation
        self.preamble_s = preamble_s  # preamble and header together
        self.header_s = header_s  # the end of it, which carries information
        self.bits_per_symbol = bits_per_symbol  # 0: a payload need not fill whole symbols
        self.symbol_s = symbol_s
        self._bits_ahead = bits_ahead  # of the payload: service and tail bits
        self.tail_s = tail_s  # silence that belongs to the frame
        self._log_survivals: list[float] = []  # by number of interferers, as far as asked for
        self._table: list[float] = []  # by SNIR, when first asked for
        self.clean_noise = NO_NOISE  # up to this ratio of noise to signal, noise turns no bit; known with the table

    def duration_s(self, size: int) -> float:
        """On the air, of a frame whose payload has `size` bytes."""
        if not self.bits_per_symbol:
            return self.preamble_s + size * 8 / self.bps
        symbols = -(-(self._bits_ahead + size * 8) // self.bits_per_symbol)
        return self.preamble_s + symbols * self.symbol_s + self.tail_s

    def log_bit_survival(self, interferers: int) -> float:
        """Logarithm of the probability that one bit arrives right, all signals being equally strong."""
        survivals = self._log_survivals
        while len(survivals) <= interferers:
            noise = float(max(1, len(survivals)))
            survivals.append(math.log1p(-self.modulation.bit_error_rate(noise)))
        return survivals[interferers]

    def log_bit_survival_at(self, noise: float) -> float:
        """The same for a ratio of noise to signal; interpolates in a table."""
        if not self._table:
            self._make_table()
        if noise < NO_NOISE:
            return self._table[TABLE_SIZE]
        place = (-10 * math.log10(noise) - TABLE_FROM_DB) * TABLE_STEPS_PER_DB
        if place <= 0:
            return self._table[0]
        if place >= TABLE_SIZE:
            return self._table[TABLE_SIZE]
        step = int(place)
        low = self._table[step]
        return low + (place - step) * (self._table[step + 1] - low)

    def _make_table(self) -> None:
        for step in range(TABLE_SIZE + 1):
            noise = 10 ** -(0.1 * (TABLE_FROM_DB + step / TABLE_STEPS_PER_DB))
            self._table.append(math.log1p(-self.modulation.bit_error_rate(noise)))
            if self._table[-1] < -CLEAN:
                self.clean_noise = NO_NOISE
            elif self.clean_noise == NO_NOISE:
                self.clean_noise = noise
