"""Deadlines and utility curves, as traces hold them; `roamcast.utility` defines them."""

from roamcast.utility import POINTS_MAX, Points, canonical, parse_utility

__all__ = ["POINTS_MAX", "Points", "canonical", "parse_utility"]
