"""Whether today's sources still make the runs of a stored result: its witnesses, simulated again.

Digests of the sources (`sources`) change with every edit, also with one that only makes a run faster. Therefore a
summary keeps *witnesses*: for each contender, the cheapest run of the first seed and the hash of its whole trace. If
all of them come out the same again, `renewed` gives the summary the digests of today. Witnesses do not prove that every
run is the same. They show it for every contender in the figure's own setting, row by row.
"""

from collections.abc import Iterable

import msgspec

from roamcast.campaign.plan import decode_run
from roamcast.campaign.store import Store
from roamcast.papers.catalogue import FIGURES
from roamcast.papers.sources import changed, sources_of
from roamcast.papers.summary import Summary, Witness
from roamcast.world.simulator import simulate


def witnesses(store: Store) -> tuple[Witness, ...]:
    """The cheapest run of the lowest seed, of each contender."""
    outcomes = store.outcomes()
    rows = store.plan().select(["run_id", "protocol", "seed", "run"]).to_pylist()
    first = min(row["seed"] for row in rows)
    found: dict[str, tuple[float, Witness]] = {}
    for row in rows:
        outcome = outcomes.get(row["run_id"])
        if row["seed"] != first or outcome is None or outcome.failed:
            continue
        best = found.get(row["protocol"])
        if best is None or outcome.wall_s < best[0]:
            witness = Witness(contender=row["protocol"], run=row["run"], trace_hash=outcome.detail)
            found[row["protocol"]] = (outcome.wall_s, witness)
    return tuple(witness for _, witness in found.values())


def is_same(witness: Witness) -> bool:
    """Whether the run gives the same trace as when the result was made."""
    return simulate(decode_run(witness.run)).recorder.trace_hash() == witness.trace_hash


def differing(found: Iterable[Witness]) -> list[str]:
    """The contenders whose witnesses do something else today."""
    return [witness.contender for witness in found if not is_same(witness)]


def renewed(summary: Summary) -> Summary | None:
    """The summary with today's digests, if its sources changed but its witnesses do the same. `None`: as it was."""
    figure = FIGURES.get(summary.figure)
    if figure is None or figure.emulation is not None or not summary.witnesses:
        return None
    today = sources_of(figure.campaign(summary.scale))
    if not changed(summary.sources, today) or differing(summary.witnesses):
        return None
    return msgspec.structs.replace(summary, sources=today)
