"""Floods over 802.11 in SimPy, written as its users write: every station is a process.

    python simpy_flood.py LOAD SEED

LOAD is a file that `roamcast bench peers` writes (src/roamcast/bench/load.py says what is in it); this program knows
floods only. The answer is one line of JSON.

What is modelled: the access of 802.11 DCF (send after DIFS if the air is free, otherwise count down random slots that
freeze while it is busy, and once more after every transmission; stations whose slots end together collide; EIFS after a
broken frame), half duplex, receivers that lock on the first frame they hear, and what overlapping frames do to it.
A node that hears a flood for the first time repeats it once after a uniform time.

It stands alone and is meant to be fair: one event per slot or per receiver would be simpler and several times slower.
A station's process sleeps through its whole countdown and is interrupted if the air becomes busy; a frame is one
loop over its hearers when it begins and one when it ends; timers are bare timeouts, not processes.

Measured is everything after the load was read: building the network and running it, in seconds of processor and of wall
clock.
"""

import json
import math
import random
import sys
import time
from collections.abc import Generator
from typing import Any

import simpy

SLOT_S = 20e-6
SIFS_S = 10e-6
DIFS_S = SIFS_S + 2 * SLOT_S
PREAMBLE_S = 192e-6
RATE_BPS = 2e6
HEADER_BYTES = 36
ACK_AT_1_MBPS_S = PREAMBLE_S + 14 * 8 / 1e6
EIFS_S = SIFS_S + ACK_AT_1_MBPS_S + DIFS_S
WINDOW = 31
SENSE_S = 1e-6  # a transmission is sensed this long after it began
DETECT_S = 4e-6  # a frame that begins within this time of another spoils its preamble

Step = Generator[simpy.Event, Any, None]


class Frame:
    __slots__ = ("end_s", "flood", "hops", "sender", "start_s")

    def __init__(self, sender: "Station", flood: int, hops: int) -> None:
        self.sender = sender
        self.flood = flood
        self.hops = hops
        self.start_s = 0.0
        self.end_s = 0.0


class Station:
    """One node: a queue, a process that empties it, and a receiver."""

    def __init__(self, network: "Network") -> None:
        self.network = network
        self.env = network.env
        self.hearers: list[Station] = []
        self.seen: set[int] = set()
        self.queue = simpy.Store(self.env)
        self.on_air = 0  # frames that are here now, its own too
        self.silence_s = DIFS_S  # to keep after them
        self.free_since_s = -1.0
        self.free: simpy.Event | None = None  # what its process waits for while the air is busy
        self.due_s: float | None = None  # when its process will send, while it counts down
        self.backoff = 0
        self.lock: Frame | None = None
        self.noise: list[Frame] = []
        self.process = self.env.process(self.run())

    def run(self) -> Step:
        while True:
            frame: Frame = yield self.queue.get()
            yield from self.access()
            self.network.begin(frame)
            yield self.env.timeout(frame.end_s - frame.start_s)
            self.network.finish(frame)
            self.backoff = random.randint(0, WINDOW)

    def access(self) -> Step:
        """Until this station may send."""
        env = self.env
        listened_s = env.now + DIFS_S
        if self.on_air and not self.backoff:
            self.backoff = random.randint(0, WINDOW)
        while True:
            if self.on_air:
                self.free = env.event()
                yield self.free
            counts_from_s = self.free_since_s + self.silence_s
            self.due_s = max(counts_from_s + self.backoff * SLOT_S, listened_s)
            try:
                yield env.timeout(max(0.0, self.due_s - env.now))
                self.due_s = None
                self.backoff = 0
                return
            except simpy.Interrupt:
                self.due_s = None
                if self.backoff:
                    passed = int((env.now - counts_from_s) / SLOT_S + 1e-6)
                    self.backoff = max(0, self.backoff - max(0, passed))
                else:
                    self.backoff = random.randint(0, WINDOW)

    def air_fills(self) -> None:
        """A frame begins here. Who would send before it is sensed sends all the same."""
        self.on_air += 1
        if self.on_air == 1:
            if self.due_s is not None:
                if self.due_s > self.env.now + SENSE_S:
                    self.process.interrupt()
            elif self.backoff:  # counts down after its last transmission, with nothing to send
                passed = int((self.env.now - self.free_since_s - self.silence_s) / SLOT_S + 1e-6)
                self.backoff = max(0, self.backoff - max(0, passed))

    def air_empties(self) -> None:
        self.on_air -= 1
        if not self.on_air:
            self.free_since_s = self.env.now
            if self.free is not None:
                self.free.succeed()
                self.free = None

    def hear(self, frame: Frame) -> None:
        """A whole frame has arrived."""
        if frame.flood in self.seen:
            return
        self.seen.add(frame.flood)
        self.network.arrived(frame)
        later = self.env.timeout(random.random() * self.network.jitter_s, Frame(self, frame.flood, frame.hops + 1))
        later.callbacks.append(self.send)

    def send(self, due: simpy.Event) -> None:
        self.queue.put(due.value)


class Network:
    def __init__(self, load: "Load") -> None:
        self.env = simpy.Environment()
        self.jitter_s = load.settings["jitter_s"]
        self.airtime_s = PREAMBLE_S + (load.settings["payload_bytes"] + HEADER_BYTES) * 8 / RATE_BPS
        self.began_s = [t_s for t_s, _ in load.floods]
        self.measured_before_s = load.settings["measured_before_s"]
        self.transmissions = self.deliveries = self.hops = 0
        self.delay_s = 0.0
        self.stations = [Station(self) for _ in load.positions_m]
        for station, place in zip(self.stations, load.positions_m, strict=True):
            near = (math.dist(place, other) <= load.settings["range_m"] for other in load.positions_m)
            pairs = zip(self.stations, near, strict=True)
            station.hearers = [other for other, is_near in pairs if is_near and other is not station]
        for flood, (t_s, source) in enumerate(load.floods):
            station = self.stations[source]
            station.seen.add(flood)
            self.env.timeout(t_s, Frame(station, flood, 1)).callbacks.append(station.send)

    def begin(self, frame: Frame) -> None:
        self.transmissions += 1
        sender = frame.sender
        frame.start_s = self.env.now
        frame.end_s = frame.start_s + self.airtime_s
        sender.lock = None
        sender.air_fills()
        for station in sender.hearers:
            if not station.on_air:
                station.lock = frame
                station.noise = []
            elif station.lock is not None:
                station.noise.append(frame)
            station.air_fills()

    def finish(self, frame: Frame) -> None:
        sender = frame.sender
        sender.silence_s = DIFS_S
        sender.air_empties()
        for station in sender.hearers:
            if station.lock is frame:
                station.lock = None
                if not station.noise or random.random() < survival(frame, station.noise):
                    station.silence_s = DIFS_S
                    station.hear(frame)
                else:
                    station.silence_s = EIFS_S
            station.air_empties()

    def arrived(self, frame: Frame) -> None:
        began_s = self.began_s[frame.flood]
        if began_s < self.measured_before_s:
            self.deliveries += 1
            self.hops += frame.hops
            self.delay_s += self.env.now - began_s


def survival(frame: Frame, others: list[Frame]) -> float:
    """The chance of `frame` beside others that are as strong: bit errors of DQPSK; two others at once destroy it."""
    chance = 1.0
    until_s = frame.start_s
    for other in others:  # in the order in which they began
        if other.start_s - frame.start_s < DETECT_S or other.start_s < until_s:
            return 0.0
        until_s = min(other.end_s, frame.end_s)
        overlap_s = until_s - max(other.start_s, frame.start_s + PREAMBLE_S)
        chance *= (1 - BIT_ERRORS) ** max(0.0, overlap_s * RATE_BPS)
    return chance


def bit_errors(ratio_of_signal_to_noise: float) -> float:
    energy = ratio_of_signal_to_noise * 22e6 / RATE_BPS
    scale = (math.sqrt(2) + 1) / math.sqrt(8 * math.pi * math.sqrt(2))
    return scale / math.sqrt(energy) * math.exp(-(2 - math.sqrt(2)) * energy)


BIT_ERRORS = bit_errors(1.0)


class Load:
    def __init__(self, path: str) -> None:
        self.settings: dict[str, float] = {}
        self.positions_m: list[tuple[float, float]] = []
        self.floods: list[tuple[float, int]] = []
        with open(path, encoding="utf-8") as file:
            for line in file:
                what, *values = line.split()
                if what == "node":
                    self.positions_m.append((float(values[0]), float(values[1])))
                elif what == "flood":
                    self.floods.append((float(values[0]), int(values[1])))
                elif what == "packet":
                    sys.exit("simpy_flood: packets are not modelled, floods only")
                else:
                    self.settings[what] = float(values[0])


def main() -> None:
    load = Load(sys.argv[1])
    random.seed(int(sys.argv[2]))
    cpu_began_s, wall_began_s = time.process_time(), time.perf_counter()
    network = Network(load)
    network.env.run(until=load.settings["duration_s"])
    cpu_s, wall_s = time.process_time() - cpu_began_s, time.perf_counter() - wall_began_s
    measured = sum(t_s < network.measured_before_s for t_s, _ in load.floods)
    answer = {
        "version": simpy.__version__,
        "cpu_s": cpu_s,
        "wall_s": wall_s,
        "transmissions": network.transmissions,
        "reach": network.deliveries / (measured * (len(network.stations) - 1)),
        "delay_ms_mean": 1000 * network.delay_s / max(1, network.deliveries),
        "hops_mean": network.hops / max(1, network.deliveries),
    }
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
