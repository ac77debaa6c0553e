"""`ideal`: the settings of the radio without contention (`radio/ideal.py`)."""

from typing import ClassVar

from roamcast.protocols.api import require
from roamcast.world.radio.ideal import IdealMedium
from roamcast.world.radio.medium import Medium
from roamcast.world.radio.settings import Radio, Surroundings


class Ideal(Radio, frozen=True, tag="ideal"):
    summary: ClassVar[str] = "a frame reaches every node in range after a fixed delay; nothing collides"

    delay_s: float = 0.001  # from sending to hearing
    rate_mbps: float = 2.0  # for the airtime figures only
    overhead_bytes: int = 36  # headers, for the airtime figures only
    frame_bytes_max: int = 1376  # the largest message, encoded, that travels in one frame

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.signal.fading == "none", "signal.fading", self.signal.fading, "none")
        require(self.delay_s > 0, "delay_s", self.delay_s, "above 0")
        require(self.rate_mbps > 0, "rate_mbps", self.rate_mbps, "above 0")
        require(self.overhead_bytes >= 0, "overhead_bytes", self.overhead_bytes, "at least 0")
        require(self.frame_bytes_max >= 64, "frame_bytes_max", self.frame_bytes_max, "at least 64")

    def medium(self, around: Surroundings) -> Medium:
        return IdealMedium(
            scheduler=around.scheduler,
            topology=around.topology,
            random=around.random,
            loss=self.loss,
            frame_bytes_max=self.frame_bytes_max,
            delay_s=self.delay_s,
            rate_bps=self.rate_mbps * 1e6,
            overhead_bytes=self.overhead_bytes,
        )
