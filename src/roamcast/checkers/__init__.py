"""Invariants: what must hold at every instant of a simulation, or after it, whatever the network suffers.

A checker is a function of a `Simulation` that raises `InvariantError`; one that remembers something between instants
is an object with `__call__`. `Watch` runs a simulation and calls its checkers at every step. Checkers look at protocols
only through what these document for that purpose (`protocols/trees/tree.py`) and at the trace.
"""

from roamcast.checkers.deliveries import check_deliveries, check_served
from roamcast.checkers.trees import Agreement, CoverageChecker, check_coverage, check_no_cycles, check_roles
from roamcast.checkers.watch import Checker, InvariantError, Watch
from roamcast.checkers.waymark import OwnWords, check_bounds, check_no_circles

__all__ = [
    "Agreement",
    "Checker",
    "CoverageChecker",
    "InvariantError",
    "OwnWords",
    "Watch",
    "check_bounds",
    "check_coverage",
    "check_deliveries",
    "check_no_circles",
    "check_no_cycles",
    "check_roles",
    "check_served",
]
