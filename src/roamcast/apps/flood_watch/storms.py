"""Rain from a seed: storm cells that drift over the land, grow and die."""

import numpy as np

from roamcast.apps.flood_watch.terrain import SIZE
from roamcast.protocols.overlays.modulators.runoff import Grid

CELLS = 7
PEAK_MM_H = (50.0, 140.0)
LIFE_MIN = (25.0, 70.0)
RADIUS = (8.0, 20.0)  # grid cells
DRIFT = (0.5, 1.2)  # grid cells a minute
GAP_MIN = 6.0  # from the birth of one storm cell to that of the next


class Storms:
    """`rain(minute)` is the intensity everywhere, mm/h; the same seed rains the same."""

    def __init__(self, seed: int) -> None:
        random = np.random.default_rng(seed + 1)
        heading = random.uniform(0.0, 2 * np.pi)
        self._cells = []
        for number in range(CELLS):
            life = random.uniform(*LIFE_MIN)
            centre = random.uniform(0.25, 0.75, 2) * SIZE
            speed = random.uniform(*DRIFT)
            turn = heading + random.normal(0.0, 0.25)
            velocity = speed * np.array([np.cos(turn), np.sin(turn)])
            birth = number * GAP_MIN - life * 0.35
            self._cells.append((birth, life, centre, velocity, random.uniform(*RADIUS), random.uniform(*PEAK_MM_H)))
        self._cycle = CELLS * GAP_MIN

    def rain(self, minute: float) -> Grid:
        rows, columns = np.mgrid[0:SIZE, 0:SIZE]
        rain: Grid = np.zeros((SIZE, SIZE))
        for birth, life, centre, velocity, radius, peak in self._cells:
            age = (minute - birth) % max(self._cycle, life)
            if age < life:
                strength = peak * np.sin(np.pi * age / life)
                at = centre + velocity * (age - life / 2)
                distance = ((columns - at[0]) ** 2 + (rows - at[1]) ** 2) / radius**2
                rain += strength * np.exp(-distance)
        return np.where(rain > 0.5, np.round(rain, 2), 0.0)
