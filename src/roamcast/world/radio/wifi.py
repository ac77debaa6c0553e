"""What the 802.11 radios share: DCF on discs, or with signals of different strength."""

from roamcast.protocols.api import require
from roamcast.world.radio.dcf import DcfMedium
from roamcast.world.radio.dcf_settings import FRAME_BYTES_MAX, DcfSettings
from roamcast.world.radio.interference import Interference
from roamcast.world.radio.medium import Medium
from roamcast.world.radio.settings import Radio, Surroundings
from roamcast.world.radio.snir import SnirMedium


class Wifi(Radio, frozen=True):
    noise_margin_db: float = 12.0  # with a signal model: a signal at range_m is this much above thermal noise
    interference_floor_db: float = 10.0  # with a signal model: weaker signals, down to here below, still disturb

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.noise_margin_db > 4, "noise_margin_db", self.noise_margin_db, "above 4, which detection needs")
        require(self.interference_floor_db >= 0, "interference_floor_db", self.interference_floor_db, "at least 0")

    @property
    def floor_db(self) -> float:
        return self.interference_floor_db

    def dcf(self) -> DcfSettings:
        """Everything that decides how stations share the channel."""
        raise NotImplementedError

    def medium(self, around: Surroundings) -> Medium:
        settings = self.dcf()
        interference = Interference(settings, around.movements, around.random)
        common = (around.scheduler, around.topology, around.random, self.loss, FRAME_BYTES_MAX, settings, interference)
        if around.links is None:
            return DcfMedium(*common)
        return SnirMedium(*common, around.links, 10 ** (-self.noise_margin_db / 10), self.fading_shape)
