"""How signals fade with distance, as settings of a radio: `[scenario.radio.signal]` with a `model`.

`range_m` of the radio is where the mean signal is just strong enough to be received, whatever the model. So a scenario
keeps its meaning when its signal changes, and no transmit power has to be chosen: only ratios matter.
"""

from typing import ClassVar, Literal

from roamcast.protocols.api import require
from roamcast.world.radio.propagation import DiscLoss, LogDistanceLoss, PathLoss, TwoRayLoss
from roamcast.world.settings import Settings


class Signal(Settings, frozen=True, tag_field="model"):
    """What every model has."""

    summary: ClassVar[str] = ""

    fading: Literal["none", "rayleigh", "nakagami"] = "none"  # of each frame at each receiver, independently
    nakagami_shape: float = 3.0  # nakagami: 1 is Rayleigh, larger is milder
    shadowing_db: float = 0.0  # standard deviation of a link's lasting gain; 0: none
    symmetric: bool = True  # whether both directions of a link have the same shadowing
    correlation_m: float = 20.0  # shadowing decorrelates to 1/e when the two ends have moved this far altogether
    update_period_s: float | None = None  # how often moving links are computed; None: by speed and correlation_m
    links_db: tuple[tuple[int, int, float], ...] = ()  # measured shadowing (from, to, dB) instead of drawn

    def __post_init__(self) -> None:
        require(self.nakagami_shape >= 0.5, "nakagami_shape", self.nakagami_shape, "at least 0.5")
        require(0 <= self.shadowing_db <= 20, "shadowing_db", self.shadowing_db, "between 0 and 20")
        require(self.correlation_m > 0, "correlation_m", self.correlation_m, "above 0")
        period = self.update_period_s
        require(period is None or period > 0, "update_period_s", period, "above 0")

    def path_loss(self, range_m: float) -> PathLoss:
        raise NotImplementedError


class Disc(Signal, frozen=True, tag="disc"):
    summary: ClassVar[str] = "equally strong up to the range, nothing beyond; frames overlap by the radio's own rule"

    def __post_init__(self) -> None:
        super().__post_init__()
        plain = self.fading == "none" and not self.shadowing_db and not self.links_db
        require(plain, "model", "disc", "two-ray or log-distance with fading or shadowing")

    def path_loss(self, range_m: float) -> PathLoss:
        return DiscLoss(range_m)


class TwoRay(Signal, frozen=True, tag="two-ray"):
    summary: ClassVar[str] = "free space up to the crossover distance, then the fourth power (ns-2's two-ray ground)"

    antenna_height_m: float = 1.5
    frequency_mhz: float = 2400.0

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.antenna_height_m > 0, "antenna_height_m", self.antenna_height_m, "above 0")
        require(self.frequency_mhz > 0, "frequency_mhz", self.frequency_mhz, "above 0")

    def path_loss(self, range_m: float) -> PathLoss:
        return TwoRayLoss(range_m, self.antenna_height_m, self.frequency_mhz)


class LogDistance(Signal, frozen=True, tag="log-distance"):
    summary: ClassVar[str] = "falls with a power of the distance: 2 in free space, 3 to 4 among buildings and trees"

    exponent: float = 3.0

    def __post_init__(self) -> None:
        super().__post_init__()
        require(1 <= self.exponent <= 8, "exponent", self.exponent, "between 1 and 8")

    def path_loss(self, range_m: float) -> PathLoss:
        return LogDistanceLoss(range_m, self.exponent)


SIGNALS: dict[str, type[Signal]] = {
    str(kind.__struct_config__.tag): kind for kind in (Disc, TwoRay, LogDistance)
}
AnySignal = Disc | TwoRay | LogDistance
