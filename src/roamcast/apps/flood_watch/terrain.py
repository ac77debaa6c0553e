"""A landscape from a seed: hills of all sizes, and a valley with a river bed that winds through them."""

import numpy as np

from roamcast.protocols.overlays.modulators.runoff import CELL_M, Grid

SIZE = 100
"""Cells on each side."""

AREA_M = SIZE * CELL_M
RELIEF_M = 140.0
ROUGHNESS = 2.3  # the larger, the smoother: power falls with this power of the frequency
BED_M = 14.0  # of the river, below its banks
FALL_M = 45.0  # of the valley, from north to south


def terrain(seed: int) -> Grid:
    """Heights in metres, from 0; the first row is the north."""
    random = np.random.default_rng(seed)
    ground = _hills(random)
    across = np.arange(SIZE)[None, :] - _course(random)[:, None]
    ground = ground * (1.0 - np.exp(-((across / 22.0) ** 2)))  # hills keep away from the valley
    ground = ground * RELIEF_M + (np.abs(across) / SIZE) * 60.0
    ground += np.linspace(FALL_M, 0.0, SIZE)[:, None]
    ground -= BED_M * np.exp(-((across / 1.8) ** 2))
    heights: Grid = np.round(ground - ground.min(), 2)
    return heights


def terrain_bytes(ground: Grid) -> bytes:
    """As it travels to a broker."""
    return ground.astype("<f8").tobytes()


def _hills(random: np.random.Generator) -> Grid:
    """Noise whose power falls with its frequency, between 0 and 1."""
    frequency = np.hypot(np.fft.fftfreq(SIZE)[:, None], np.fft.fftfreq(SIZE)[None, :])
    frequency[0, 0] = 1.0
    spectrum = np.fft.fft2(random.standard_normal((SIZE, SIZE))) / frequency ** (ROUGHNESS / 2 + 0.5)
    spectrum[0, 0] = 0.0
    noise = np.fft.ifft2(spectrum).real
    hills: Grid = (noise - noise.min()) / np.ptp(noise)
    return hills


def _course(random: np.random.Generator) -> Grid:
    """The river's column in each row."""
    rows = np.linspace(0.0, 1.0, SIZE)
    course = np.full(SIZE, SIZE * random.uniform(0.42, 0.58))
    for waves, width in ((1.0, 12.0), (2.3, 6.0), (4.1, 2.5)):
        course += width * np.sin(2 * np.pi * (waves * rows + random.uniform()))
    return course
