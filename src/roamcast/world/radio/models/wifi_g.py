"""`802.11g`: OFDM at 6 to 54 Mbit/s, in a network without 802.11b stations."""

from math import inf
from typing import ClassVar, Literal

from roamcast.protocols.api import require
from roamcast.world.radio.dcf_settings import DcfSettings
from roamcast.world.radio.phy import OFDM_BASIC_MBPS, OFDM_RATES, answer_mbps, dsss, erp_ofdm
from roamcast.world.radio.power import ONE_ANTENNA, Power
from roamcast.world.radio.wifi import Wifi

SLOTS_S = {"short": 9e-6, "long": 20e-6}


class Wifi80211g(Wifi, frozen=True, tag="802.11g"):
    summary: ClassVar[str] = "802.11 DCF with OFDM at 6 to 54 Mbit/s"

    power: Power = ONE_ANTENNA
    carrier_sense_range_m: float | None = None  # on discs; None: range_m
    capture: Literal["bit-errors", "none"] = "bit-errors"  # what decides when frames overlap on discs
    data_rate_mbps: float = 24.0  # of unicasts: 6, 9, 12, 18, 24, 36, 48 or 54
    broadcast_rate_mbps: float = 6.0  # a basic rate: 6, 12 or 24
    control_rate_mbps: float | None = None  # ACK, RTS, CTS; None: the fastest basic rate that is no faster than data
    slot: Literal["short", "long"] = "long"  # 9 or 20 µs; 802.11 prescribes the long slot for ad hoc networks
    energy_detection_db: float = 20.0  # with a signal model: missed frames this much above the weakest are sensed
    extended_ifs: bool = False  # wait for EIFS after broken frames, as 802.11 says; ns-3's results are closer without
    rts_threshold_bytes: int = 2347  # unicasts of this size and above ask first
    overhead_bytes: int = 36  # MAC header, FCS and LLC
    queue_frames: int = 500  # that wait to be sent; overflow is dropped
    queue_lifetime_s: float = 0.5  # a frame that waited longer is dropped; 0: never

    def __post_init__(self) -> None:
        super().__post_init__()
        sense = self.carrier_sense_range_m
        require(sense is None or sense >= self.range_m, "carrier_sense_range_m", sense, "at least range_m")
        is_rate = self.data_rate_mbps in OFDM_RATES
        require(is_rate, "data_rate_mbps", self.data_rate_mbps, "one of 6, 9, 12, 18, 24, 36, 48, 54")
        for field in ("broadcast_rate_mbps", "control_rate_mbps"):
            rate = getattr(self, field)
            require(rate is None or rate in OFDM_BASIC_MBPS, field, rate, "6, 12 or 24")
        for field in ("energy_detection_db", "rts_threshold_bytes", "overhead_bytes", "queue_lifetime_s"):
            require(getattr(self, field) >= 0, field, getattr(self, field), "at least 0")
        require(self.queue_frames > 0, "queue_frames", self.queue_frames, "at least 1")

    @property
    def sense_range_m(self) -> float:
        return self.carrier_sense_range_m or self.range_m

    def dcf(self) -> DcfSettings:
        phy = erp_ofdm(SLOTS_S[self.slot])
        control_mbps = self.control_rate_mbps or answer_mbps(self.data_rate_mbps)
        return DcfSettings(
            phy=phy,
            capture=self.capture,
            data_rate=phy.rates[self.data_rate_mbps],
            broadcast_rate=phy.rates[self.broadcast_rate_mbps],
            control_rate=phy.rates[control_mbps],
            eifs_rate=dsss().rates[1.0] if self.extended_ifs else None,  # the slowest mandatory rate
            rts_threshold_bytes=self.rts_threshold_bytes,
            overhead_bytes=self.overhead_bytes,
            queue_frames=self.queue_frames,
            queue_lifetime_s=self.queue_lifetime_s or inf,
            backoff_after_timeout=True,
            window_inclusive=True,
            energy_detection=10 ** (self.energy_detection_db / 10),
        )
