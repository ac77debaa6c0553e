"""`802.11b`: DSSS and CCK at 1 to 11 Mbit/s, with the presets `ns2` and `ns3`.

Timing is the same in both presets. They differ in how far carrier sense reaches, in what an overlapping frame destroys
on discs, in the rates of broadcasts and of the link's own frames, and in their queues.
"""

from math import inf
from typing import ClassVar, Literal

from roamcast.protocols.api import require
from roamcast.world.radio.dcf_settings import DcfSettings
from roamcast.world.radio.phy import dsss
from roamcast.world.radio.wifi import Wifi


class Wifi80211b(Wifi, frozen=True, tag="802.11b"):
    """`None` takes the preset's value."""

    summary: ClassVar[str] = "802.11 DCF at 1 to 11 Mbit/s, as ns-2 or ns-3 models it"

    preset: Literal["ns2", "ns3"] = "ns3"  # the simulator whose settings are the defaults of the rest
    carrier_sense_range_m: float | None = None  # ns2: 2.2 times range_m; ns3: range_m
    capture: Literal["threshold", "bit-errors", "none"] | None = None  # on discs; ns2: threshold; ns3: bit-errors
    data_rate_mbps: float | None = None  # 1, 2, 5.5 or 11; both: 2
    broadcast_rate_mbps: float | None = None  # ns2: 1; ns3: 2
    control_rate_mbps: float | None = None  # ACK, RTS and CTS; ns2: 1; ns3: 2
    rts_threshold_bytes: int | None = None  # unicasts of this size and above ask first; ns2: 0; ns3: never (2347)
    overhead_bytes: int | None = None  # MAC header and FCS (ns3: also LLC); ns2: 28; ns3: 36
    queue_frames: int | None = None  # ns2: 50; ns3: 500
    extended_ifs: bool | None = None  # wait for EIFS after broken frames; ns2: yes; ns3: no
    queue_lifetime_s: float | None = None  # a frame that waited longer is dropped; ns2: never (0); ns3: 0.5
    backoff_after_timeout: bool | None = None  # a repetition's backoff begins when its ACK is overdue; ns3

    def __post_init__(self) -> None:
        super().__post_init__()
        sense = self.carrier_sense_range_m
        require(sense is None or sense >= self.range_m, "carrier_sense_range_m", sense, "at least range_m")
        for field in ("data_rate_mbps", "broadcast_rate_mbps", "control_rate_mbps"):
            rate = getattr(self, field)
            require(rate in (None, 1, 2, 5.5, 11), field, rate, "1, 2, 5.5 or 11")
        for field in ("rts_threshold_bytes", "overhead_bytes", "queue_lifetime_s"):
            size = getattr(self, field)
            require(size is None or size >= 0, field, size, "at least 0")
        require(self.queue_frames is None or self.queue_frames > 0, "queue_frames", self.queue_frames, "at least 1")

    @property
    def sense_range_m(self) -> float:
        return self._either(self.carrier_sense_range_m, 2.2 * self.range_m, self.range_m)

    def _either(self, given: float | None, ns2: float, ns3: float) -> float:
        return given if given is not None else ns2 if self.preset == "ns2" else ns3

    def dcf(self) -> DcfSettings:
        """With the preset's values where the scenario leaves them open."""
        phy = dsss()
        return DcfSettings(
            phy=phy,
            capture=self.capture or ("threshold" if self.preset == "ns2" else "bit-errors"),
            data_rate=phy.rates[self._either(self.data_rate_mbps, 2, 2)],
            broadcast_rate=phy.rates[self._either(self.broadcast_rate_mbps, 1, 2)],
            control_rate=phy.rates[self._either(self.control_rate_mbps, 1, 2)],
            eifs_rate=phy.rates[1] if self._either(self.extended_ifs, 1, 0) else None,
            rts_threshold_bytes=int(self._either(self.rts_threshold_bytes, 0, 2347)),
            overhead_bytes=int(self._either(self.overhead_bytes, 28, 36)),
            queue_frames=int(self._either(self.queue_frames, 50, 500)),
            queue_lifetime_s=self._either(self.queue_lifetime_s, 0, 0.5) or inf,
            backoff_after_timeout=bool(self._either(self.backoff_after_timeout, 0, 1)),
            window_inclusive=self.preset == "ns3",
        )
