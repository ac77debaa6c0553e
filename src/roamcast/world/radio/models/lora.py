"""`lora`: the settings of LoRa (`radio/lora.py`)."""

from typing import ClassVar

from roamcast.protocols.api import require
from roamcast.world.radio.lora import LoraMedium, LoraSettings, capture_ratio
from roamcast.world.radio.medium import Medium
from roamcast.world.radio.power import SX1276, Power
from roamcast.world.radio.settings import Radio, Surroundings


class Lora(Radio, frozen=True, tag="lora"):
    summary: ClassVar[str] = "LoRa on one channel: frames of at most 255 bytes, ALOHA or carrier detection, duty cycle"

    range_m: float = 2000.0
    power: Power = SX1276
    spreading_factor: int = 7  # 6 to 12: each step doubles the length of a symbol
    bandwidth_khz: float = 125.0  # of the channel
    coding_rate: int = 1  # 1 to 4: 4/5 to 4/8
    preamble_symbols: int = 8  # before every frame
    duty_cycle: float = 0.01  # share of the time that a node may send; 1: no limit
    carrier_detection: bool = False  # listen before sending
    capture_db: float | None = 6.0  # a frame this much stronger than the sum of all others survives; none: never
    overhead_bytes: int = 8  # addresses, type and number; part of the 255
    queue_frames: int = 50  # that wait to be sent; overflow is dropped
    tries: int = 3  # of a unicast
    backoff_s: float = 1.0  # a repetition waits a uniform time up to this, twice as long each time
    turnaround_s: float = 0.001  # between receiving and sending

    def __post_init__(self) -> None:
        super().__post_init__()
        require(6 <= self.spreading_factor <= 12, "spreading_factor", self.spreading_factor, "between 6 and 12")
        require(self.bandwidth_khz > 0, "bandwidth_khz", self.bandwidth_khz, "above 0")
        require(1 <= self.coding_rate <= 4, "coding_rate", self.coding_rate, "between 1 and 4")
        require(self.preamble_symbols >= 6, "preamble_symbols", self.preamble_symbols, "at least 6")
        require(0 < self.duty_cycle <= 1, "duty_cycle", self.duty_cycle, "above 0 and at most 1")
        require(self.capture_db is None or self.capture_db >= 0, "capture_db", self.capture_db, "at least 0")
        require(0 <= self.overhead_bytes <= 64, "overhead_bytes", self.overhead_bytes, "between 0 and 64")
        for field in ("queue_frames", "tries"):
            require(getattr(self, field) >= 1, field, getattr(self, field), "at least 1")
        for field in ("backoff_s", "turnaround_s"):
            require(getattr(self, field) > 0, field, getattr(self, field), "above 0")

    @property
    def floor_db(self) -> float:
        return 6.0 if self.capture_db is None else self.capture_db

    def medium(self, around: Surroundings) -> Medium:
        settings = LoraSettings(
            spreading_factor=self.spreading_factor,
            bandwidth_hz=self.bandwidth_khz * 1000,
            coding_rate=self.coding_rate,
            preamble_symbols=self.preamble_symbols,
            duty_cycle=self.duty_cycle,
            carrier_detection=self.carrier_detection,
            capture_ratio=capture_ratio(self.capture_db),
            overhead_bytes=self.overhead_bytes,
            queue_frames=self.queue_frames,
            tries=self.tries,
            backoff_s=self.backoff_s,
            turnaround_s=self.turnaround_s,
        )
        return LoraMedium(
            scheduler=around.scheduler,
            topology=around.topology,
            random=around.random,
            loss=self.loss,
            settings=settings,
            links=around.links,
            nakagami_shape=self.fading_shape,
        )
