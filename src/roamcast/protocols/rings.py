"""Searches in widening rings: the radii as users write them."""

from itertools import pairwise

from roamcast.errors import ConfigurationError

RING_HOPS_MAX = 64


def parse_rings(text: str) -> tuple[int, ...]:
    """`1,3,5,7` as radii in hops."""
    parts = text.replace(" ", "").split(",")
    rings = tuple(int(part) for part in parts if part.isdigit())
    ascending = all(inner < outer for inner, outer in pairwise(rings))
    if len(rings) != len(parts) or not ascending or not 1 <= rings[0] <= rings[-1] <= RING_HOPS_MAX:
        raise ConfigurationError(
            f"search_rings_hops = {text!r}: must be ascending numbers of 1 to {RING_HOPS_MAX} hops, as in 1,3,5,7"
        )
    return rings
