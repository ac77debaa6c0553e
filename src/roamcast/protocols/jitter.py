"""Random times, so that nodes do not act in step."""

from roamcast.seeds import Random


def jittered(period_s: float, jitter: float, random: Random) -> float:
    """A time that differs from `period_s` by up to the share `jitter` of it, shorter or longer."""
    return period_s * (1 + jitter * (2 * random.random() - 1))


def shortened(period_s: float, jitter: float, random: Random) -> float:
    """A time that is shorter than `period_s` by up to the share `jitter` of it."""
    return period_s * (1 - jitter + jitter * random.random())
