"""Every figure by the name that users type."""

from roamcast.errors import ConfigurationError
from roamcast.papers import georendezvous, odmrp, overlays, somer
from roamcast.papers.figure import EMULATED, Figure, Platform

_PAPERS = (somer, odmrp, georendezvous, overlays)
EVERYTHING = "all"
FIGURES: dict[str, Figure] = {figure.id: figure for paper in _PAPERS for figure in paper.FIGURES}


def figures_named(name: str, on: Platform = "simulator") -> list[Figure]:
    """A figure by its own name, or all figures of a paper, or really all; those of one platform."""
    there = {
        figure.id.removesuffix(EMULATED): figure
        for figure in FIGURES.values()
        if (figure.emulation is not None) == (on == "emulator")
    }
    found = [figure for own, figure in there.items() if name in (own, figure.paper, EVERYTHING)]
    if not found:
        papers = dict.fromkeys(figure.paper for figure in there.values())
        allowed = ", ".join([*there, *papers, EVERYTHING])
        raise ConfigurationError(f"figure: {name!r} is unknown on the {on}; allowed: {allowed}")
    return found
