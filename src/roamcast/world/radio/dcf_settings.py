"""The constants of 802.11 DCF, and the two presets: as ns-2 ran it, and as ns-3 does.

Timing is 802.11b's at 1 and 2 Mbit/s (long preamble), the same in both. What differs is how far carrier sense reaches,
what an overlapping frame destroys, and the rates of broadcasts and of the link's own frames.
"""

from typing import Final, Literal, NamedTuple

from roamcast.world.scenario import Radio

SLOT_S: Final = 20e-6
SIFS_S: Final = 10e-6
DIFS_S: Final = SIFS_S + 2 * SLOT_S
PREAMBLE_S: Final = 192e-6  # 144 bits preamble and 48 bits header at 1 Mbit/s
HEADER_S: Final = 48e-6  # the part of it that carries information
WINDOW_MIN: Final = 31
WINDOW_MAX: Final = 1023
TRIES_SHORT: Final = 7  # of an RTS, or of a frame sent without one
TRIES_LONG: Final = 4  # of a frame sent after an RTS
ACK_BYTES: Final = 14
CTS_BYTES: Final = 14
RTS_BYTES: Final = 20
SENSE_S: Final = 1e-6  # a transmission is sensed this long after it starts: two that start in the same slot collide
DETECT_S: Final = 4e-6  # a frame that starts within this time of another spoils its preamble


class DcfSettings(NamedTuple):
    range_m: float
    carrier_sense_range_m: float
    capture: Literal["threshold", "bit-errors", "none"]
    data_rate_bps: float
    broadcast_rate_bps: float
    control_rate_bps: float
    rts_threshold_bytes: int
    overhead_bytes: int
    queue_frames: int
    window_inclusive: bool  # whether a backoff may be the whole window (ns-3) or ends one slot short of it (ns-2)

    @property
    def extended_ifs_s(self) -> float:
        """EIFS: silence after a broken frame, long enough for the ACK that its receiver may be sending."""
        return SIFS_S + DIFS_S + PREAMBLE_S + ACK_BYTES * 8 / min(self.control_rate_bps, 1e6)


def dcf_settings(radio: Radio) -> DcfSettings:
    """The radio's settings, with the preset's values where the scenario leaves them open."""
    ns2 = radio.preset == "ns2"

    def either(given: float | None, ns2_value: float, ns3_value: float) -> float:
        return given if given is not None else ns2_value if ns2 else ns3_value

    return DcfSettings(
        range_m=radio.range_m,
        carrier_sense_range_m=either(radio.carrier_sense_range_m, 2.2 * radio.range_m, radio.range_m),
        capture=radio.capture or ("threshold" if ns2 else "bit-errors"),
        data_rate_bps=either(radio.data_rate_mbps, 2, 2) * 1e6,
        broadcast_rate_bps=either(radio.broadcast_rate_mbps, 1, 2) * 1e6,
        control_rate_bps=either(radio.control_rate_mbps, 1, 2) * 1e6,
        rts_threshold_bytes=int(either(radio.rts_threshold_bytes, 0, 2347)),
        overhead_bytes=int(either(radio.overhead_bytes, 28, 36)),
        queue_frames=int(either(radio.queue_frames, 50, 500)),
        window_inclusive=not ns2,
    )
