"""The hunt with real nodes: healing cases of ten nodes in the emulator, judged by the accountant.

Faults are those that the emulator knows: a crash is `kill -9`, a pause `SIGSTOP`, and frames are lost, late, doubled
and out of order. Checkers cannot look into processes. What applications got is judged as in the simulator: nothing
twice in a life, nothing that is not wanted, and after the time to heal everything, `SLACK_S` later than simulated nodes
promise. A run in which the machine fell behind real time by more than `BEHIND_S_MAX` says nothing about the nodes, and
is not judged.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from roamcast.emulator.emulation import INCIDENTS, emulate
from roamcast.hunt.accountant import account
from roamcast.hunt.case import Case
from roamcast.hunt.draw import draw_healing
from roamcast.hunt.judge import CaseFailure, objections
from roamcast.trace.files import read_trace

NODES = 10
SLACK_S = 1.0
GRACE_S = 0.25  # in which a node that is told to unsubscribe does so, and what it has delivered is told
BEHIND_S_MAX = 0.5


class LiveEntry(msgspec.Struct, frozen=True):
    """How a case with real nodes went."""

    number: int
    protocol: str
    seed: int
    node_hours: float
    faults: dict[str, int]
    owed: int
    paid: int
    promised: int
    behind_s: float
    failure: str = ""
    detail: str = ""

    @property
    def is_judged(self) -> bool:
        return self.behind_s <= BEHIND_S_MAX


def live_case(seed: int, number: int, protocol: str) -> Case | None:
    """The case of this number; None: the protocol promises nothing."""
    return draw_healing(seed, number, protocol, nodes=NODES, kinds=INCIDENTS, slack_s=SLACK_S)


def judge_live(case: Case, seed: int, number: int) -> LiveEntry:
    """Runs the case in real time. This process must be in a network of its own."""
    with TemporaryDirectory() as directory:
        out = Path(directory) / "trace"
        result = emulate(case.run, out)
        table = read_trace(out).sort_by("t")
    books = account(table, GRACE_S)
    found, promised = objections(case, books)
    failure = next(iter(found), CaseFailure("", ""))
    faults: dict[str, int] = {}
    for incident in case.run.scenario.faults.incidents:
        faults[incident.what] = faults.get(incident.what, 0) + 1
    faults["frame struck"] = result.struck
    is_judged = result.behind_s <= BEHIND_S_MAX
    return LiveEntry(
        number=number,
        protocol=case.run.protocol,
        seed=seed,
        node_hours=case.node_hours,
        faults=faults,
        owed=books.owed,
        paid=books.paid,
        promised=promised,
        behind_s=round(result.behind_s, 3),
        failure=failure.kind if is_judged else "",
        detail=failure.detail if is_judged else "",
    )


def read_live(path: Path) -> list[LiveEntry]:
    if not path.exists():
        return []
    return [msgspec.json.decode(line, type=LiveEntry) for line in path.read_bytes().splitlines()]


def add_live(entry: LiveEntry, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        file.write(msgspec.json.encode(entry) + b"\n")
