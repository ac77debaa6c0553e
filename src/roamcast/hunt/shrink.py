"""Shrinking a failure: fewer faults, nodes and seconds, as long as it fails in the same way.

Each round tries changes from the coarse to the fine: half of the faults less, the end earlier, fewer nodes, single
faults, simpler parameters. The first that still fails in the same way is kept, and the round begins again. Random
draws differ between scenarios, so the smaller case may fail for another reason of the same kind. That is a failure too.
"""

from collections.abc import Callable, Iterator
from time import process_time
from typing import Any

import msgspec

from roamcast.hunt.case import Case
from roamcast.hunt.judge import Verdict, judge
from roamcast.world.scenario import Faults, Scenario

TRIES_MAX = 150
PATIENCE_S = 120.0  # of processor time; a case of hours would take an afternoon


def shrink(case: Case, kind: str, judged: Callable[[Case], Verdict] = judge, tries_max: int = TRIES_MAX) -> Case:
    """The smallest case found that fails in this way."""
    tries = 0
    progress = True
    began_s = process_time()
    while progress:
        progress = False
        for smaller in _smaller(case):
            if tries >= tries_max or process_time() > began_s + PATIENCE_S:
                return case
            tries += 1
            failure = judged(smaller).failure
            if failure is not None and failure.kind == kind:
                case = smaller
                progress = True
                break
    return case


def _smaller(case: Case) -> Iterator[Case]:
    scenario = case.run.scenario
    faults = scenario.faults
    incidents = faults.incidents
    if faults.partitions:
        yield _with_faults(case, partitions=())
    if len(incidents) > 1:
        half = len(incidents) // 2
        yield _with_faults(case, incidents=incidents[:half])
        yield _with_faults(case, incidents=incidents[half:])
    if case.settled_s is None:
        for share in (0.5, 0.8):
            duration_s = round(scenario.duration_s * share, 1)
            if duration_s >= 1.0:
                yield from _changed(case, duration_s=duration_s)
    for nodes in (scenario.nodes // 2, scenario.nodes - 1):
        if nodes >= 2:
            kept = tuple(each for each in incidents if max(each.node, each.peer) < nodes)
            yield from _changed(case, nodes=nodes, faults=msgspec.structs.replace(faults, incidents=kept))
    for at in range(len(incidents)):
        yield _with_faults(case, incidents=incidents[:at] + incidents[at + 1 :])
    for name in case.run.parameters:
        simpler = {key: value for key, value in case.run.parameters.items() if key != name}
        if case.settled_s is None:  # a promise depends on the parameters
            yield msgspec.structs.replace(case, run=msgspec.structs.replace(case.run, parameters=simpler))


def _with_faults(case: Case, **changes: Any) -> Case:
    faults: Faults = msgspec.structs.replace(case.run.scenario.faults, **changes)
    return next(_changed(case, faults=faults))


def _changed(case: Case, **changes: Any) -> Iterator[Case]:
    """The case with another scenario, if there can be such a one."""
    try:
        scenario: Scenario = msgspec.structs.replace(case.run.scenario, **changes)
    except ValueError:
        return
    yield msgspec.structs.replace(case, run=msgspec.structs.replace(case.run, scenario=scenario))
