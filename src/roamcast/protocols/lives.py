"""Numbers that never repeat, though a node that starts again remembers none."""

from typing import Final

NUMBERS_PER_LIFE: Final = 1 << 24
LIVES: Final = 1 << 37
"""A number fits 62 bits; live nodes count lives in seconds of the clock, which takes 37 bits for 4,000 years."""


def first_number(life: int) -> int:
    """Above all numbers that the node used in its earlier lives, if it used fewer than `NUMBERS_PER_LIFE` in each."""
    return (life % LIVES) * NUMBERS_PER_LIFE
