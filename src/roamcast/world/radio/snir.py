"""802.11 DCF where signals differ in strength: what is received depends on the ratio of signal to noise.

Access to the medium is that of `dcf.py`. This module replaces its discs: every frame arrives at every station with a
power of its own (`links.py`, and fading). Powers are ratios to the weakest signal that can be received.

- A station stays silent while a frame lasts that it has locked on, and while one of power `energy_detection` and above
  does. So weaker ones that it missed, for example because it was sending itself, do not keep it from sending.
- It locks on a frame of power 1 and above that is `DETECT_RATIO` stronger than everything else in its air, unless it
  is sending or locked already. A stronger frame that begins while the preamble is being detected takes its place.
- Every signal that begins or ends meanwhile changes the ratio of signal to noise. The station keeps the logarithm of
  the probability that all bits so far are right, and brings it up to date at each change. Noise is thermal noise plus
  the sum of all other signals, weak ones included. Noise too weak to turn a bit is not accounted for.

So a frame costs what it does on discs, plus one addition at each station that it disturbs without being received there.
"""

import math
from collections.abc import Callable
from typing import Final

from roamcast.protocols.api import NOBODY
from roamcast.seeds import Random
from roamcast.world.radio.dcf import DcfMedium
from roamcast.world.radio.dcf_settings import DETECT_S, DcfSettings
from roamcast.world.radio.interference import Interference
from roamcast.world.radio.links import RadioLinks
from roamcast.world.radio.station import Arrival, DcfFrame, Station
from roamcast.world.scheduler import Scheduler
from roamcast.world.topology import Topology

DETECT_RATIO: Final = 10**0.4
"""A preamble is detected at 4 dB above the noise, as in ns-3."""

CERTAIN: Final = -1e-9
"""Above this logarithm of a probability, no random number is drawn."""


class SnirMedium(DcfMedium):
    def __init__(
        self,
        scheduler: Scheduler,
        topology: Topology,
        random: Random,
        loss: float,
        frame_bytes_max: int,
        settings: DcfSettings,
        interference: Interference,
        links: RadioLinks,
        thermal_noise: float,
        nakagami_shape: float,
    ) -> None:
        super().__init__(
            scheduler=scheduler,
            topology=topology,
            random=random,
            loss=loss,
            frame_bytes_max=frame_bytes_max,
            settings=settings,
            interference=interference,
        )
        self._links = links
        self._thermal = thermal_noise
        self._energy_detection = settings.energy_detection
        self._header_rate = settings.phy.header_rate
        self._nakagami_shape = nakagami_shape  # 0: no fading
        self._gamma: Callable[[float, float], float] = random.gammavariate

    def _look_around(self, station: Station) -> None:
        """The station's links may have changed."""
        station.topology_version = self.topology.version
        station.heard_by = self.topology.hear[station.node]
        reached = station.heard_by + self.topology.sense[station.node]
        powers = self._links.powers(station.node, reached)
        station.arrivals = [Arrival(self._stations[node], power) for node, power in zip(reached, powers, strict=True)]

    def _faded(self, arrivals: list[Arrival]) -> list[Arrival]:
        shape = self._nakagami_shape
        if shape == 1:
            return [Arrival(each.station, -each.power * math.log(1.0 - self.draw())) for each in arrivals]
        return [Arrival(each.station, each.power * self._gamma(shape, 1 / shape)) for each in arrivals]

    def _start(self, frame: DcfFrame) -> None:
        """The hot path: a frame begins."""
        sender = self._begin(frame)
        now, end = frame.start, frame.end
        arrivals = sender.arrivals if not self._nakagami_shape else self._faded(sender.arrivals)
        frame.arrivals = arrivals
        thermal, airtime_s, energy_detection = self._thermal, frame.airtime_s, self._energy_detection
        collisions = halved = 0
        for arrival in arrivals:
            station, power = arrival.station, arrival.power
            if power >= 1.0:
                if station.lock is not None:
                    if not self._disturb(station, frame, power, now):
                        collisions += 1
                elif station.sending_until > now:
                    halved += 1
                elif power >= DETECT_RATIO * (station.power + thermal):
                    station.lock = frame
                    station.receive_s += airtime_s
                    station.signal = power
                    station.since = now
                    station.log_survival = 0.0
                else:
                    collisions += 1
                if station.lock is frame or power >= energy_detection:  # else the station does not notice
                    if station.busy_until <= now:
                        if station.counts:
                            self._freeze(station, now)
                        station.busy_until = end
                    elif end > station.busy_until:
                        station.busy_until = end
            elif station.lock is not None:
                self._disturb(station, frame, power, now)
            station.power += power
            station.signals += 1
        self._collisions += collisions
        self._half_duplex += halved
        self._count(frame)

    def _disturb(self, station: Station, frame: DcfFrame, power: float, now: float) -> bool:
        """`frame` begins at a station that is locked on another; returns whether the station turns to it."""
        locked = station.lock
        assert locked is not None
        if now - locked.start >= DETECT_S:
            self._settle(station, now)
            return False
        noise = station.power + self._thermal  # with the locked frame itself
        if power > station.signal:
            self._collisions += 1
            station.receive_s -= locked.end - now
            station.lock = None
            if power >= 1.0 and power >= DETECT_RATIO * noise:
                station.lock = frame
                station.receive_s += frame.end - now
                station.signal = power
                station.since = now
                station.log_survival = 0.0
                return True
        elif station.signal < DETECT_RATIO * (noise - station.signal + power):
            station.receive_s -= locked.end - now
            station.lock = None
            self._collisions += 1
        return False

    def _settle(self, station: Station, now: float) -> None:
        """Accounts for the bits of the locked frame since the last change of the noise."""
        frame = station.lock
        assert frame is not None
        rate = frame.rate
        begin = station.since
        station.since = now
        noise = (station.power - station.signal + self._thermal) / station.signal
        if noise < self._header_rate.clean_noise and noise < rate.clean_noise:
            return
        payload = frame.start + rate.preamble_s
        if begin < payload:
            header = payload - rate.header_s
            from_s = begin if begin > header else header
            until_s = now if now < payload else payload
            if until_s > from_s:
                header_rate = self._header_rate
                station.log_survival += (until_s - from_s) * header_rate.bps * header_rate.log_bit_survival_at(noise)
            begin = payload
        until_s = frame.end - rate.tail_s
        if now < until_s:
            until_s = now
        if until_s > begin:
            station.log_survival += (until_s - begin) * rate.bps * rate.log_bit_survival_at(noise)

    def _end(self, frame: DcfFrame) -> list[Station]:
        """The frame ends; returns who received it."""
        frame.is_on_air = False
        now = self.scheduler.now
        received = []
        for arrival in frame.arrivals:
            station = arrival.station
            locked = station.lock
            if locked is not None:
                self._settle(station, now)
                if locked is frame:
                    station.lock = None
                    if self._survives(station):
                        received.append(station)
            station.signals -= 1
            station.power = station.power - arrival.power if station.signals else 0.0
        return received

    def _survives(self, station: Station) -> bool:
        """Whether the frame that ends at the station was received; sets the silence it must keep now."""
        reason = ""
        if station.log_survival < CERTAIN and self.draw() >= math.exp(station.log_survival):
            reason = "bit-errors"
        elif self.loss and self.draw() < self.loss:
            reason = "loss"
        if reason:
            self._fail(reason)
            station.defer = self._eifs_s
            return False
        station.defer = self._difs_s
        return True

    def end_broadcast(self, frame: DcfFrame) -> None:
        message = frame.message
        assert message is not None
        self._finish(self._stations[frame.sender])
        received = self._end(frame)
        self.receptions += len(received)
        for station in received:
            listener = station.listener
            if listener is not None:
                listener.on_message(frame.sender, message)

    def end_unicast(self, frame: DcfFrame) -> None:
        receiver = frame.receiver
        assert receiver != NOBODY
        reserved_until = self.scheduler.now + frame.nav_s
        goes_on = False
        for station in self._end(frame):
            if station.node == receiver:
                goes_on = self._answer(station, frame)
            elif reserved_until > station.busy_until:
                station.busy_until = reserved_until
        if not goes_on:
            self._break_off(frame)
