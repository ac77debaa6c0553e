"""SOMER's parameters: those of several trees (`trees/parameters.py`), and its own. Sections are those of the thesis."""

from roamcast.protocols.api import require
from roamcast.protocols.trees.parameters import RootParameters


class SomerParameters(RootParameters, frozen=True):
    # Inter-tree routes (4.3.2)
    routes_max: int = 256  # foreign trees that a node remembers; a bound on memory
    # Advertisements (4.3.2)
    relay_hold_s: float = 0.5  # mean time after which advertisements are relayed, together with those that came since
    first_advertisement_s: float = 1.0  # time until a new root advertises first
    entry_lifetime_periods: float = 3.0  # advertisement periods after which a silent root is forgotten
    entries_per_advertisement: int = 8  # further entries go into further advertisements
    # Causal dependencies (chapter 5)
    equal_potentials: bool = False  # a placebo: all trees have the same potential, so that levels alone decide

    def __post_init__(self) -> None:
        super().__post_init__()
        for field in ("routes_max", "entries_per_advertisement"):
            require(getattr(self, field) >= 1, field, getattr(self, field), "at least 1")
        require(self.first_advertisement_s >= 0, "first_advertisement_s", self.first_advertisement_s, "at least 0")
        require(self.entry_lifetime_periods > 0, "entry_lifetime_periods", self.entry_lifetime_periods, "above 0")
