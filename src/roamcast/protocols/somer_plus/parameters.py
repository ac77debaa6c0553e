"""SOMER's parameters. Sections and tables are those of the thesis; ranges it gives are quoted."""

from roamcast.protocols.api import require
from roamcast.protocols.trees.parameters import TreeParameters


class SomerPlusParameters(TreeParameters, frozen=True):
    linger_s: float = 5.0  # must outlast the spreading of an advertisement among all roots
    root_density: float = 0.09  # D_T, probability that a node starts as a root (section 4.3.1; 1-18 %, best 9 %)
    merging: bool = True  # trees whose roots are close merge (4.3.1)
    merging_threshold: int = 1  # hops between two roots up to which their trees merge (1-3)
    new_roots: bool = True  # nodes far from their root, or without one, may become roots (4.3.1)
    new_root_threshold: int = 7  # level above which a node draws, once per refresh (5-10)
    alpha: float = 2.0  # raises the probability of that draw above D_T
    out_period_s: float = 15.0  # a node without a tree for so long draws too
    advertisement_period_s: float = 10.0  # roots tell each other what their trees want (4.3.2)
    causality: bool = True  # trees contend for nodes where the site has causal dependencies (chapter 5)
    delta: float = 0.325  # potentials closer than this ratio do not contend (0.2-0.4, best 0.325)
    eta: float = 1.0  # keeps the factors of the potential from vanishing

    def __post_init__(self) -> None:
        super().__post_init__()
        require(0 <= self.root_density <= 1, "root_density", self.root_density, "between 0 and 1")
        require(self.merging_threshold >= 1, "merging_threshold", self.merging_threshold, "at least 1")
        require(self.new_root_threshold >= 1, "new_root_threshold", self.new_root_threshold, "at least 1")
        require(self.alpha >= 1, "alpha", self.alpha, "at least 1")
        for field in ("out_period_s", "advertisement_period_s", "eta"):
            require(getattr(self, field) > 0, field, getattr(self, field), "above 0")
        require(self.delta >= 0, "delta", self.delta, "at least 0")
