"""Every figure by the name that users type."""

from roamcast.errors import ConfigurationError
from roamcast.papers import georendezvous, somer
from roamcast.papers.figure import Figure

_PAPERS = (somer, georendezvous)
FIGURES: dict[str, Figure] = {figure.id: figure for paper in _PAPERS for figure in paper.FIGURES}


def figure_named(name: str) -> Figure:
    if name not in FIGURES:
        raise ConfigurationError(f"figure: {name!r} is unknown; allowed: {', '.join(FIGURES)}")
    return FIGURES[name]
