"""Invariants of what applications get, for any protocol: read from the trace alone."""

from typing import Any

import pyarrow as pa

from roamcast.checkers.watch import InvariantError
from roamcast.interests import Interest, parse_interest

Row = dict[str, Any]


def check_deliveries(table: pa.Table) -> None:
    """No application gets an event twice in one life of its node, its own, one that was never published, or one it does
    not want at that time."""
    contents: dict[int, Any] = {}
    wanted: dict[int, list[Interest]] = {}
    delivered: dict[int, set[int]] = {}  # by node
    for row in _rows(table, "published", "subscribed", "unsubscribed", "delivered", "fault"):
        node = row["node"]
        match row["kind"]:
            case "published":
                contents[row["event_id"]] = row["detail"] if row["value"] is None else row["value"]
            case "subscribed":
                wanted.setdefault(node, []).append(parse_interest(row["category"], row["detail"]))
            case "unsubscribed":
                wanted[node].remove(parse_interest(row["category"], row["detail"]))
            case "delivered":
                _check_delivery(row, contents, wanted.get(node, []))
                got = delivered.setdefault(node, set())
                if row["event_id"] in got:
                    raise InvariantError(f"{node} got event {row['event_id']} twice, again at {row['t']:.3f} s")
                got.add(row["event_id"])
            case "fault":
                delivered.pop(node, None)  # a life ends or begins, and a node that returns remembers nothing


def _check_delivery(row: Row, contents: dict[int, Any], wanted: list[Interest]) -> None:
    node, event = row["node"], row["event_id"]
    if event not in contents:
        raise InvariantError(f"{node} got event {event}, which was never published")
    if row["peer"] == node:
        raise InvariantError(f"{node} got its own event {event}")
    if not any(interest.contains(contents[event]) for interest in wanted):
        raise InvariantError(f"{node} got event {event} ({contents[event]}) at {row['t']:.3f} s and does not want it")


def check_served(table: pa.Table, since_s: float, within_s: float) -> int:
    """Every event published from `since_s` on reached, within `within_s`, every subscriber that a chain of contacts led
    to when it was published. Returns how many such pairs there were, so that a test can ask for some."""
    delivered = {(row["event_id"], row["node"]): row["value"] for row in _rows(table, "delivered")}
    wanted: dict[int, list[Interest]] = {}
    pairs = 0
    for row in _rows(table, "published", "subscribed", "unsubscribed"):
        node = row["node"]
        if row["kind"] == "subscribed":
            wanted.setdefault(node, []).append(parse_interest(row["category"], row["detail"]))
        elif row["kind"] == "unsubscribed":
            wanted[node].remove(parse_interest(row["category"], row["detail"]))
        elif row["t"] >= since_s:
            for subscriber in _entitled(row, wanted):
                pairs += 1
                latency_s = delivered.get((row["event_id"], subscriber))
                if latency_s is None or latency_s > within_s:
                    when = "never" if latency_s is None else f"after {latency_s:.3f} s"
                    event = f"event {row['event_id']} of {node}, published at {row['t']:.3f} s,"
                    raise InvariantError(f"{event} reached {subscriber} {when}")
    return pairs


def _entitled(publication: Row, wanted: dict[int, list[Interest]]) -> list[int]:
    """Who should get it: wants it, is not its publisher and could be reached."""
    content = publication["detail"] if publication["value"] is None else publication["value"]
    return [
        node
        for node, interests in wanted.items()
        if node != publication["node"]
        and publication["shortest_hops"][node] >= 0
        and any(interest.contains(content) for interest in interests)
    ]


def _rows(table: pa.Table, *kinds: str) -> list[Row]:
    chosen = table.select(["t", "kind", "node", "peer", "event_id", "value", "category", "detail", "shortest_hops"])
    return [row for row in chosen.to_pylist() if row["kind"] in kinds]
