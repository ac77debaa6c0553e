"""SOMER's figures (thesis, chapter 6)."""

from roamcast.papers.figure import Figure

FIGURES: tuple[Figure, ...] = ()
