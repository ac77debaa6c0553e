"""The physical layers of 802.11, as data: timing, contention windows and rates."""

from typing import Final, NamedTuple

from roamcast.errors import ConfigurationError
from roamcast.world.radio.modulation import Cck, Dbpsk, Dqpsk, Ofdm
from roamcast.world.radio.rate import Rate


class Phy(NamedTuple):
    """What DCF has to know of the physical layer under it."""

    slot_s: float
    sifs_s: float
    window_min: int
    window_max: int
    header_rate: Rate  # of the header that ends the preamble
    rates: dict[float, Rate]  # by Mbit/s
    bandwidth_hz: float

    @property
    def difs_s(self) -> float:
        return self.sifs_s + 2 * self.slot_s

    def rate(self, mbps: float, field: str) -> Rate:
        rate = self.rates.get(mbps)
        if rate is None:
            allowed = ", ".join(f"{known:g}" for known in self.rates)
            raise ConfigurationError(f"{field} = {mbps:g}: must be one of {allowed}")
        return rate


DSSS_PREAMBLE_S: Final = 192e-6  # 144 bits of preamble and 48 bits of header at 1 Mbit/s
DSSS_HEADER_S: Final = 48e-6


def dsss() -> Phy:
    """802.11b with the long preamble (IEEE 802.11-2016, clauses 15 and 16)."""
    slow = Rate(1e6, Dbpsk(1e6), DSSS_PREAMBLE_S, DSSS_HEADER_S)
    rates = {
        1.0: slow,
        2.0: Rate(2e6, Dqpsk(2e6), DSSS_PREAMBLE_S, DSSS_HEADER_S),
        5.5: Rate(5.5e6, Cck(4), DSSS_PREAMBLE_S, DSSS_HEADER_S),
        11.0: Rate(11e6, Cck(8), DSSS_PREAMBLE_S, DSSS_HEADER_S),
    }
    return Phy(
        slot_s=20e-6, sifs_s=10e-6, window_min=31, window_max=1023, header_rate=slow, rates=rates, bandwidth_hz=22e6
    )


OFDM_PREAMBLE_S: Final = 20e-6  # training symbols (16 µs) and the SIGNAL symbol
OFDM_SYMBOL_S: Final = 4e-6
OFDM_BITS_AHEAD: Final = 22  # 16 of SERVICE, 6 of tail
OFDM_EXTENSION_S: Final = 6e-6  # silence in which 802.11g's receivers finish decoding
OFDM_RATES: Final[dict[float, tuple[int, str]]] = {  # Mbit/s: coded bits per carrier and symbol, code rate
    6.0: (1, "1/2"),
    9.0: (1, "3/4"),
    12.0: (2, "1/2"),
    18.0: (2, "3/4"),
    24.0: (4, "1/2"),
    36.0: (4, "3/4"),
    48.0: (6, "2/3"),
    54.0: (6, "3/4"),
}
OFDM_BASIC_MBPS: Final = (6.0, 12.0, 24.0)  # every station understands these: broadcasts and answers use them


def erp_ofdm(slot_s: float) -> Phy:
    """802.11g without 802.11b stations around (IEEE 802.11-2016, clauses 17 and 18)."""
    rates = {}
    for mbps, (bits, code) in OFDM_RATES.items():
        rates[mbps] = Rate(
            mbps * 1e6,
            Ofdm(bits, code),
            OFDM_PREAMBLE_S,
            OFDM_SYMBOL_S,
            bits_per_symbol=round(mbps * 4),
            symbol_s=OFDM_SYMBOL_S,
            bits_ahead=OFDM_BITS_AHEAD,
            tail_s=OFDM_EXTENSION_S,
        )
    return Phy(
        slot_s=slot_s,
        sifs_s=10e-6,
        window_min=15,
        window_max=1023,
        header_rate=rates[6.0],
        rates=rates,
        bandwidth_hz=20e6,
    )


def answer_mbps(data_mbps: float) -> float:
    """The rate of an acknowledgement: the fastest basic rate that is not faster than the data."""
    return max(basic for basic in OFDM_BASIC_MBPS if basic <= data_mbps or basic == OFDM_BASIC_MBPS[0])
