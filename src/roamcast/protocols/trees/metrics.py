"""Parent evaluation metrics (thesis, section 4.2.2): how a joining node ranks candidate parents.

Each metric gives an offer a rank; the lowest wins. Ties go to the lower level, then to the lower address, so that the
choice never depends on the order in which the replies came in.
"""

from typing import Final, NamedTuple, Protocol

from roamcast.protocols.trees.standing import Standing

Rank = tuple[float, int, int]


class ParentOffer(NamedTuple):
    """A candidate parent."""

    parent: int
    root: int
    standing: Standing
    overhead: float = 0.0  # events per published event that joining here would add on the path to the root


class Metric(Protocol):
    def __call__(self, offer: ParentOffer) -> Rank: ...


def shortest_path(offer: ParentOffer) -> Rank:
    """SM: as near to the root as possible."""
    return (offer.standing.level, offer.standing.level, offer.parent)


def publication_overhead(offer: ParentOffer) -> Rank:
    """PM: as few additional transmissions per event as possible."""
    return (offer.overhead, offer.standing.level, offer.parent)


def combination(offer: ParentOffer) -> Rank:
    """CM: the product of both. A level of 0 would make every root win at once, hence the added one."""
    return ((offer.standing.level + 1) * offer.overhead, offer.standing.level, offer.parent)


METRICS: Final[dict[str, Metric]] = {"SM": shortest_path, "PM": publication_overhead, "CM": combination}
