"""A tournament in the simulator, as a story for the course map: the same course and protocol, with a modelled radio.

Movements are those of the live demonstration, but players carry devices as well. Who publishes and asks for what is the
simulator's golf workload (`roamcast.world.golf`): random announcements and subscriptions, drawn from the seed.
"""

from typing import Any

import roamcast
from roamcast.apps.golf_forum import forms
from roamcast.apps.golf_forum.course import Course
from roamcast.apps.golf_forum.story import Story
from roamcast.errors import ConfigurationError
from roamcast.interests import XPaths
from roamcast.interests.content import matches

PLACES_PERIOD_S = 0.25
WORKLOAD = {"language": "content", "publishers": 10, "rate_per_s": 0.04, "selectivity": 0.15}
PARAMETERS = {"refresh_interval_s": 4.0, "forwarding_timeout_s": 12.0, "refresh_max_s": 8.0, "broker_share": 0.7}


def simulated_story(course: Course, *, duration_s: float, seed: int) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The messages of the story, and how many events were published, expected and delivered."""
    if duration_s < 15:
        raise ConfigurationError(f"duration = {duration_s:g}: must be at least 15 s in the simulator")
    trace = roamcast.simulate(
        course.scenario,
        protocol="odmrp",
        parameters=PARAMETERS,
        seed=seed,
        raw_frames=True,
        duration_s=duration_s,
        workload=WORKLOAD,
        radio={"model": "802.11b", "range_m": course.range_m},
    )
    teller = _Teller(course)
    rows = [row for row in trace.table.to_pylist() if row["kind"] in _KINDS]
    for row in sorted(rows, key=lambda row: row["t"]):
        teller.tell_places(row["t"])
        teller.tell(row)
    teller.tell_places(duration_s)
    summary = {"nodes": len(course.people), "published": teller.story.published, "expected": len(teller.expected)}
    return teller.story.messages, summary | {"delivered": len(teller.expected & teller.delivered)}


_KINDS = ("published", "delivered", "frame", "subscribed", "structure")


class _Teller:
    """Turns the rows of a trace into messages, in the order of time."""

    def __init__(self, course: Course) -> None:
        described = course.described() | {"mode": "simulated"}
        for person in described["people"]:
            person["device"] = "client"  # until it says that it is a broker
        self.story = Story(described, lambda: self._t_s)
        self.expected: set[tuple[int, int]] = set()  # event and node
        self.delivered: set[tuple[int, int]] = set()
        self._course = course
        self._t_s = 0.0
        self._places_due_s = 0.0
        self._interests: dict[int, list[XPaths]] = {}
        self._documents: dict[int, str] = {}

    def tell_places(self, until_s: float) -> None:
        while self._places_due_s <= until_s:
            self._t_s = self._places_due_s
            self.story.tell("places", at=self._course.places(self._t_s))
            self._places_due_s += PLACES_PERIOD_S

    def tell(self, row: dict[str, Any]) -> None:
        self._t_s, node = row["t"], row["node"]
        match row["kind"]:
            case "subscribed":
                self._interests.setdefault(node, []).append(XPaths.parse(row["detail"]))
            case "published":
                self._published(node, row["event_id"], row["detail"])
            case "delivered":
                self._delivered(node, row)
            case "frame" if row["event_id"] is not None:
                near = (
                    self._course.in_range(self._t_s, with_players=True)[node] if row["peer"] is None else [row["peer"]]
                )
                for receiver in near:
                    self.story.heard(row["event_id"], node, receiver, row["detail"])
            case "structure" if row["category"] == "broker":
                self.story.tell("device", node=node, device="broker")
            case "structure" if row["category"] == "home":
                self.story.tell("home", node=node, broker=row["peer"])

    def _published(self, node: int, event: int, document: str) -> None:
        self._documents[event] = document
        for other, interests in self._interests.items():
            if other != node and any(interest.contains(document) for interest in interests):
                self.expected.add((event, other))
        self.story.tell("published", node=node, event=str(event), **forms.published_values(document))

    def _delivered(self, node: int, row: dict[str, Any]) -> None:
        self.delivered.add((row["event_id"], node))
        found = [
            {"subscription": number + 1, "xpath": str(interest), "reasons": forms.reasons(match)}
            for number, interest in enumerate(self._interests.get(node, []))
            for match in matches(interest, self._documents[row["event_id"]])
        ]
        latency_ms = round(1000 * row["value"], 1)
        event = str(row["event_id"])
        self.story.tell("delivered", node=node, event=event, hops=row["hops"], latency_ms=latency_ms, matches=found)
