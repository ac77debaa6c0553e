"""Every figure by the name that users type."""

from roamcast.errors import ConfigurationError
from roamcast.papers import georendezvous, odmrp, overlays, somer
from roamcast.papers.figure import Figure

_PAPERS = (somer, odmrp, georendezvous, overlays)
EVERYTHING = "all"
FIGURES: dict[str, Figure] = {figure.id: figure for paper in _PAPERS for figure in paper.FIGURES}


def figures_named(name: str) -> list[Figure]:
    """A figure by its own name, or all figures of a paper, or really all."""
    found = [figure for figure in FIGURES.values() if name in (figure.id, figure.paper, EVERYTHING)]
    if not found:
        papers = dict.fromkeys(figure.paper for figure in FIGURES.values())
        raise ConfigurationError(f"figure: {name!r} is unknown; allowed: {', '.join([*FIGURES, *papers, EVERYTHING])}")
    return found
