"""What the course map shows: messages in the order of time, live or recorded, from real nodes or from the simulator.

| kind | says |
|---|---|
| `course` | holes, people, range, and where people's pages are; first and once |
| `places` | where everyone is |
| `published` | a node published an event |
| `heard` | a node heard an event for the first time, and from which neighbour |
| `delivered` | a subscriber got an event, with hops, latency and the reasons |
| `home` | a device found its broker, or lost it |
| `device` | a device became a broker, a client or a constrained client |

Every message but the first has its time `t` in seconds since the beginning. A page may be served live, or hold the
whole story in one file that needs nothing else.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from roamcast.events import NUMBER_BITS

WEB = Path(__file__).parent / "web"
MESSAGES_MAX = 50_000
EVENTS_MAX = 10_000


class Story:
    """Collects messages and passes them on."""

    def __init__(self, course: dict[str, Any], now: Callable[[], float]) -> None:
        self.messages: list[dict[str, Any]] = [{"kind": "course", **course}]
        self.listener: Callable[[dict[str, Any]], None] = lambda message: None
        self.published = 0
        self.delivered = 0
        self._now = now
        self._heard: dict[int, set[int]] = {}  # event -> nodes

    def tell(self, kind: str, **fields: Any) -> None:
        message = {"kind": kind, "t": round(self._now(), 3), **fields}
        self.published += kind == "published"
        self.delivered += kind == "delivered"
        if len(self.messages) < MESSAGES_MAX:
            self.messages.append(message)
        self.listener(message)

    def heard(self, event: int, sender: int, receiver: int, label: str) -> None:
        """Only the first time counts: the path on which it came. A publisher that hears its own event does not."""
        nodes = self._heard.setdefault(event, {event >> NUMBER_BITS})
        if receiver not in nodes:
            nodes.add(receiver)
            self.tell("heard", event=str(event), sender=sender, receiver=receiver, label=label)
        if len(self._heard) > EVENTS_MAX:
            del self._heard[next(iter(self._heard))]

    def snapshot(self) -> list[dict[str, Any]]:
        return [{"kind": "story", "messages": self.messages}]


def recorded_page(messages: list[dict[str, Any]]) -> str:
    """The map with its story, in one file."""
    page = (WEB / "course.html").read_text("utf-8")
    story = json.dumps(messages, separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c")
    style = "\n".join((WEB / name).read_text("utf-8") for name in ("golf.css", "course.css"))
    script = (WEB / "course.js").read_text("utf-8")
    for mark, content in (
        ('<link rel="stylesheet" href="/web/golf.css">', f"<style>\n{style}</style>"),
        ('<link rel="stylesheet" href="/web/course.css">', ""),
        (
            '<script type="module" src="/web/course.js"></script>',
            f'<script id="story" type="application/json">{story}</script>\n<script type="module">\n{script}</script>',
        ),
    ):
        assert page.count(mark) == 1, mark
        page = page.replace(mark, content)
    return page
