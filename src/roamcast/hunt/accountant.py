"""The accountant: what applications got and what they should have got, from the rows of a trace alone.

It shares no code with the measures (`trace/measures.py`, `trace/pairs.py`, `analysis/`): it reads the texts of
interests itself, walks through the rows one at a time and keeps its books in dictionaries. It is slow and obvious. The
hunt holds the measures against it after every run.

| word | what it counts |
|---|---|
| owed | pairs of an event and a node that wanted it when it was published, without the publisher |
| paid | owed pairs that were delivered, once or more often |
| lost | owed pairs that were never delivered |
| duplicated | deliveries of an event to a node beyond the first |
| repeated | of these, those within one life of the node |
| reordered | deliveries of an event after a later one of the same publisher, within one life |
| unexpected | deliveries of an event that was never published, is the node's own, or is not wanted then |
"""

from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

COLUMNS = ["t", "kind", "node", "peer", "event_id", "value", "category", "detail", "shortest_hops"]
KINDS = pa.array(["subscribed", "unsubscribed", "published", "delivered", "fault"])


class Debt(NamedTuple):
    """An owed pair."""

    event_id: int
    node: int
    published_s: float
    hops: int  # of the shortest path at that time; -1: there was none


class Books(NamedTuple):
    owed: int
    paid: int
    lost: int
    duplicated: int
    repeated: int
    reordered: int
    unexpected: list[str]  # each as a sentence
    open_debts: list[Debt]  # those that were not paid
    delays_s: dict[tuple[int, int], float]  # of the paid ones: (event, node) -> first delivery after publication
    debts: list[Debt]


def account(table: pa.Table, grace_s: float = 0.0) -> Books:
    """The books of a run. `grace_s`: how long after the end of an interest a delivery is in order. Applications of
    real nodes need a moment for one to take effect."""
    kinds = table["kind"].cast(pa.string())
    return _Clerk(grace_s).account(table.select(COLUMNS).filter(pc.is_in(kinds, value_set=KINDS)).to_pylist())


class _Clerk:
    def __init__(self, grace_s: float) -> None:
        self._grace_s = grace_s
        self._ended: list[tuple[float, int, str, str]] = []  # interests: when, node, language, text
        self._wanted: dict[int, dict[tuple[str, str], None]] = {}
        self._published: dict[int, dict[str, Any]] = {}
        self._unsettled: list[dict[str, Any]] = []  # publications of this instant
        self._first_s: dict[tuple[int, int], float] = {}
        self._in_this_life: dict[int, set[int]] = {}
        self._highest: dict[tuple[int, int], int] = {}  # (node, publisher) -> latest event in this life
        self._duplicated = self._repeated = self._reordered = 0
        self._unexpected: list[str] = []
        self._debts: list[Debt] = []

    def account(self, rows: list[dict[str, Any]]) -> Books:
        for row in rows:
            node = row["node"]
            self._settle(row["t"])
            match row["kind"]:
                case "subscribed":
                    self._wanted.setdefault(node, {})[row["category"], row["detail"]] = None
                case "unsubscribed":
                    self._wanted.get(node, {}).pop((row["category"], row["detail"]), None)
                    self._ended.append((row["t"], node, row["category"], row["detail"]))
                case "published":
                    self._published[row["event_id"]] = row
                    self._unsettled.append(row)
                case "delivered":
                    self._receive(row)
                case "fault":
                    self._in_this_life.pop(node, None)
                    self._highest = {key: value for key, value in self._highest.items() if key[0] != node}
        self._settle(float("inf"))
        lost = [debt for debt in self._debts if (debt.event_id, debt.node) not in self._first_s]
        paid = {key: self._first_s[key] for debt in self._debts if (key := (debt.event_id, debt.node)) in self._first_s}
        delays_s = {key: t_s - self._published[key[0]]["t"] for key, t_s in paid.items()}
        return Books(
            owed=len(self._debts),
            paid=len(paid),
            lost=len(lost),
            duplicated=self._duplicated,
            repeated=self._repeated,
            reordered=self._reordered,
            unexpected=self._unexpected,
            open_debts=lost,
            delays_s=delays_s,
            debts=self._debts,
        )

    def _settle(self, t_s: float) -> None:
        """Who wants what is settled at the end of an instant, and so is who should get what was published in it."""
        while self._unsettled and self._unsettled[0]["t"] < t_s:
            self._owe(self._unsettled.pop(0))

    def _owe(self, row: dict[str, Any]) -> None:
        hops = row["shortest_hops"]
        for node in sorted(self._wanted):
            if node != row["node"] and self._wants(node, row):
                self._debts.append(Debt(row["event_id"], node, row["t"], -1 if hops is None else hops[node]))

    def _receive(self, row: dict[str, Any]) -> None:
        node, event = row["node"], row["event_id"]
        publication = self._published.get(event)
        if publication is None:
            self._unexpected.append(f"{node} got event {event}, which was not published before {row['t']:.3f} s")
            return
        if publication["node"] == node:
            self._unexpected.append(f"{node} got its own event {event}")
        elif not self._wants(node, publication) and not self._wanted_lately(node, publication, row["t"]):
            self._unexpected.append(f"{node} got event {event} at {row['t']:.3f} s and did not want it")
        if (event, node) in self._first_s:
            self._duplicated += 1
        self._first_s.setdefault((event, node), row["t"])
        got = self._in_this_life.setdefault(node, set())
        if event in got:
            self._repeated += 1
        got.add(event)
        key = node, publication["node"]
        if event < self._highest.get(key, -1):
            self._reordered += 1
        self._highest[key] = max(event, self._highest.get(key, -1))

    def _wants(self, node: int, publication: dict[str, Any]) -> bool:
        return any(_matches(asked, text, publication) for asked, text in self._wanted.get(node, {}))

    def _wanted_lately(self, node: int, publication: dict[str, Any], t_s: float) -> bool:
        return any(
            t_s - ended_s <= self._grace_s and whose == node and _matches(asked, text, publication)
            for ended_s, whose, asked, text in self._ended
        )


def _matches(asked: str, text: str, publication: dict[str, Any]) -> bool:
    language, topic, number = publication["category"], publication["detail"], publication["value"]
    return bool(asked == language and is_wanted(language, text, topic if number is None else number))


def is_wanted(language: str, text: str, content: Any) -> bool:
    """Whether an interest, as the trace writes it, matches; documents are matched by the language's own code."""
    if language == "intervals":
        ranges = [part.partition("..") for part in text.split()]
        return any(float(low) <= content < float(high) for low, _, high in ranges)
    if language == "topics":
        return any(_fits(pattern.split("/"), content.split("/")) for pattern in text.split())
    from roamcast.interests import parse_interest

    return parse_interest("content", text).contains(content)


def _fits(pattern: list[str], names: list[str]) -> bool:
    if not pattern:
        return not names
    if pattern[0] == "**":
        return any(_fits(pattern[1:], names[taken:]) for taken in range(len(names) + 1))
    return bool(names) and pattern[0] in ("*", names[0]) and _fits(pattern[1:], names[1:])
