"""Which checkers look at a case. Each protocol's come from its paper; `checkers/` says what they ask."""

from collections.abc import Callable, Iterator

from roamcast.checkers import (
    Agreement,
    Checker,
    CoverageChecker,
    OwnWords,
    check_bounds,
    check_no_circles,
    check_no_cycles,
    check_roles,
)
from roamcast.checkers.floods import SentOnce
from roamcast.checkers.soft_state import (
    check_cursor_bounds,
    check_mesh_bounds,
    check_mesh_expiry,
    check_rendezvous,
    check_shelf_bounds,
    check_shelf_expiry,
)
from roamcast.checkers.trees_at_rest import check_one_tree, check_roots_exist
from roamcast.hunt.case import Case
from roamcast.protocols.trees.parameters import TreeParameters
from roamcast.world.simulator import Simulation

SINGLE_TREES = ("ps-maodv", "sp-combo", "dsapst")
TREES = (*SINGLE_TREES, "somer", "somer-plus")
REPORTED_S = 1.0
"""A changed interest climbs a hop each 20 ms, and a new root comes down as fast as the refresh."""

STEP_S_MAX = 1.0
"""Between rarer looks, two short disagreements would count as one long one."""

GENTLE = {"crash", "join", "leave", "duplicate"}
"""Incidents that do not change how soon a node notices that a neighbour has gone."""


class Late:
    """A checker that holds from `from_s` on."""

    def __init__(self, from_s: float, checker: Checker) -> None:
        self._from_s = from_s
        self._checker = checker
        self.name = name_of(checker)

    def __call__(self, simulation: Simulation) -> None:
        if simulation.scheduler.now >= self._from_s:
            self._checker(simulation)


def name_of(checker: Checker) -> str:
    named: str | None = getattr(checker, "name", None) or getattr(checker, "__name__", None)
    return (named or type(checker).__name__).removeprefix("check_")


def checkers_of(case: Case, simulation: Simulation) -> list[Checker]:
    """All that have something to say about this case."""
    protocol = case.run.protocol
    of: dict[str, Callable[[Case, Simulation], Iterator[Checker]]] = {
        **dict.fromkeys(("flooding", "gossip"), _floods),
        **dict.fromkeys(TREES, _trees),
        "odmrp": _odmrp,
        "georendezvous": _georendezvous,
        "overlays": _overlays,
        "waymark": _waymark,
    }
    rule = of.get(protocol)
    return [] if rule is None else list(rule(case, simulation))


def _floods(case: Case, simulation: Simulation) -> Iterator[Checker]:
    crashing = {incident.node for incident in case.run.scenario.faults.incidents if incident.what == "crash"}
    yield SentOnce(simulation, crashing)


def _trees(case: Case, simulation: Simulation) -> Iterator[Checker]:
    yield check_no_cycles
    yield check_roles
    parameters = simulation.parameters
    assert isinstance(parameters, TreeParameters)
    refresh_s = parameters.refresh_period_s * (1 + parameters.jitter)
    agreement_s = parameters.silence_s + refresh_s + parameters.linger_s + 5.0
    is_gentle = {incident.what for incident in case.run.scenario.faults.incidents} <= GENTLE
    if is_gentle and case.step_s <= STEP_S_MAX:
        yield Agreement(agreement_s)
    if case.settled_s is not None:
        yield Late(case.settled_s, Agreement(agreement_s))
        yield CoverageChecker(REPORTED_S, from_s=case.settled_s)
        yield Late(case.settled_s, check_roots_exist)
        if case.run.protocol in SINGLE_TREES:
            yield Late(case.settled_s, check_one_tree)


def _on_time(case: Case) -> bool:
    """Whether all nodes look at their state when they should, on a clock that runs true."""
    late = {"pause", "clock-jump", "clock-drift"}
    return not late & {str(incident.what) for incident in case.run.scenario.faults.incidents}


def _odmrp(case: Case, simulation: Simulation) -> Iterator[Checker]:
    yield check_mesh_bounds
    if _on_time(case):
        yield check_mesh_expiry


def _georendezvous(case: Case, simulation: Simulation) -> Iterator[Checker]:
    yield check_shelf_bounds
    if _on_time(case):
        yield check_shelf_expiry
    if case.settled_s is not None:
        yield Late(case.settled_s, check_rendezvous)


def _overlays(case: Case, simulation: Simulation) -> Iterator[Checker]:
    yield check_cursor_bounds


def _waymark(case: Case, simulation: Simulation) -> Iterator[Checker]:
    yield OwnWords()
    yield check_no_circles
    yield check_bounds
