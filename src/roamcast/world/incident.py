"""Incidents: faults of single nodes and links with a time of their own, as a scenario lists them.

| what | the node, from `from_s` until `until_s` | `amount` |
|---|---|---|
| `crash` | is down; it returns at `until_s` with nothing remembered, after the end of the run never | |
| `join` | is switched on at `from_s`, not before | |
| `leave` | says goodbye at `from_s` and goes | |
| `pause` | handles nothing: messages and timers wait until it goes on | |
| `slow` | handles one message at a time | seconds per message |
| `deaf` | does not hear the frames of `peer`, which hears it | |
| `delay` | gets every message later, in order | seconds |
| `reorder` | gets every third message late, so that others overtake it | seconds at most |
| `duplicate` | gets messages again a little later | probability |
| `corrupt` | finds messages corrupt after their link acknowledged them, so they are not retransmitted | probability |
| `overflow` | drops what it wants to send, as a full queue does | probability |
| `clock-jump` | has a clock that jumps forward at `from_s` and stays ahead until its life ends | seconds |
| `clock-drift` | has a clock and timers that run fast, or slow | share, such as 0.01 |
"""

from typing import Final, Literal

from roamcast.protocols.api import NOBODY, require
from roamcast.world.settings import Settings

IncidentKind = Literal[
    "crash", "join", "leave", "pause", "slow", "deaf", "delay", "reorder", "duplicate", "corrupt", "overflow",
    "clock-jump", "clock-drift",
]  # fmt: skip
LIVES: Final = ("crash", "join", "leave")
"""Incidents that begin or end a life of the node; they are part of the fault plan."""

AMOUNTS: Final[dict[str, tuple[float, float]]] = {
    "slow": (0.0, 10.0),
    "delay": (0.0, 60.0),
    "reorder": (0.0, 60.0),
    "duplicate": (0.0, 1.0),
    "corrupt": (0.0, 1.0),
    "overflow": (0.0, 1.0),
    "clock-jump": (0.0, 86_400.0),
    "clock-drift": (-0.5, 1.0),
}
"""What is allowed; the other kinds have no amount."""


class Incident(Settings, frozen=True):
    """Something that goes wrong with one node or link for a time. The module's table says what."""

    what: IncidentKind
    node: int
    from_s: float
    until_s: float = 1e9
    peer: int = NOBODY  # deaf: to whom
    amount: float = 0.0

    def __post_init__(self) -> None:
        require(self.node >= 0, "node", self.node, "at least 0")
        require(0 <= self.from_s < self.until_s, "until_s", self.until_s, "after from_s")
        low, high = AMOUNTS.get(self.what, (0.0, 0.0))
        require(low <= self.amount <= high, "amount", self.amount, f"between {low:g} and {high:g} for {self.what}")
        names_peer = (self.peer >= 0 and self.peer != self.node) if self.what == "deaf" else self.peer == NOBODY
        require(names_peer, "peer", self.peer, "another node for deaf, and none otherwise")


def check_incidents(incidents: tuple[Incident, ...], nodes: int, visitors: int) -> None:
    """Incidents name nodes that exist, and the lives of a node do not overlap."""
    ends_s: dict[int, float] = {}
    for incident in sorted(incidents, key=lambda each: (each.from_s, each.until_s)):
        node = incident.node
        require(max(node, incident.peer) < nodes, "faults.incidents", max(node, incident.peer), f"a node below {nodes}")
        if incident.what not in LIVES:
            continue
        require(not visitors, "faults.incidents", incident.what, "none that begins or ends a life, with `present`")
        is_free = incident.from_s > ends_s.get(node, -1.0)
        require(is_free, "faults.incidents", incident, f"one after another for node {node}")
        first = incident.what != "join" or node not in ends_s
        require(first, "faults.incidents", incident, f"node {node}'s first to begin or end a life")
        ends_s[node] = {"crash": incident.until_s, "join": incident.from_s, "leave": 1e300}[incident.what]
