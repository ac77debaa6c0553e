"""What a radio draws from its battery in each state, as a part of its settings."""

from roamcast.protocols.api import require
from roamcast.world.settings import Settings


class Power(Settings, frozen=True):
    """`[scenario.radio.power]`. A node that is switched off sleeps; one that neither sends nor receives idles."""

    transmit_mw: float
    receive_mw: float
    idle_mw: float
    sleep_mw: float
    battery_j: float = 36_000.0  # per node: 10 Wh, a phone's

    def __post_init__(self) -> None:
        for field in ("transmit_mw", "receive_mw", "idle_mw", "sleep_mw"):
            require(getattr(self, field) >= 0, field, getattr(self, field), "at least 0")
        require(self.battery_j > 0, "battery_j", self.battery_j, "above 0")


WAVELAN = Power(transmit_mw=1346.0, receive_mw=901.0, idle_mw=739.0, sleep_mw=47.0)
"""An 11 Mbit/s card of 2001: Feeney and Nilsson, "Investigating the energy consumption of a wireless network interface
in an ad hoc networking environment", table 1, at 4.74 V."""

ONE_ANTENNA = Power(transmit_mw=1140.0, receive_mw=939.0, idle_mw=819.0, sleep_mw=99.0)
"""A card of 2010 with one antenna at 3 V, which ns-3 has as its default: Halperin et al., "Demystifying 802.11n power
consumption"."""

SX1276 = Power(transmit_mw=95.7, receive_mw=38.0, idle_mw=38.0, sleep_mw=0.00066)
"""LoRa at 13 dBm and 3.3 V: Semtech's data sheet of the SX1276, table 10. An idle node of a mesh listens."""
