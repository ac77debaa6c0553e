"""What DCF needs to know to run: the physical layer under it, and the choices of a radio's settings."""

from typing import Final, Literal, NamedTuple

from roamcast.world.radio.phy import Phy
from roamcast.world.radio.rate import Rate

ACK_BYTES: Final = 14
CTS_BYTES: Final = 14
RTS_BYTES: Final = 20
TRIES_SHORT: Final = 7  # of an RTS, or of a frame sent without one
TRIES_LONG: Final = 4  # of a frame sent after an RTS
SENSE_S: Final = 1e-6  # a transmission is sensed this long after it starts: two that start in the same slot collide
DETECT_S: Final = 4e-6  # a frame that starts within this time of another spoils its preamble
FRAME_BYTES_MAX: Final = 1376  # of a message, encoded, so that a live frame with all its headers fits Ethernet

Capture = Literal["threshold", "bit-errors", "none"]


class DcfSettings(NamedTuple):
    phy: Phy
    capture: Capture  # what decides when frames overlap on discs (`interference.py`)
    data_rate: Rate
    broadcast_rate: Rate
    control_rate: Rate  # of ACK, RTS and CTS
    eifs_rate: Rate | None  # of the ACK for which silence after a broken frame leaves room; None: it leaves none
    rts_threshold_bytes: int
    overhead_bytes: int
    queue_frames: int
    queue_lifetime_s: float  # a frame that has waited longer is dropped
    backoff_after_timeout: bool  # whether the backoff of a repetition begins when the answer is overdue (ns-3)
    window_inclusive: bool  # whether a backoff may be the whole window (ns-3) or ends one slot short of it (ns-2)
    energy_detection: float = 1.0  # with a signal model: frames this strong are sensed even if missed (`snir.py`)

    @property
    def extended_ifs_s(self) -> float:
        """EIFS: silence after a broken frame, long enough for the ACK that its receiver may be sending."""
        if self.eifs_rate is None:
            return self.phy.difs_s
        return self.phy.sifs_s + self.phy.difs_s + self.eifs_rate.duration_s(ACK_BYTES)
