"""Retained messages: the last one of each topic, for clients that subscribe later.

Of two messages on a topic the later publication counts, whatever order they arrive in; equal times are decided by the
event's id. An empty payload deletes, and is remembered too, so that an older message does not come back. Whoever
publishes a retained message at a door makes this node its *origin*.

A node that begins to want topics publishes what it wants on `ASK`. Every origin that has such messages publishes them
again, with the stamp of the original, so nodes that have them already ignore them.
"""

import msgspec

from roamcast.doors.gate import INTERNAL
from roamcast.errors import ConfigurationError
from roamcast.interests.topics import Topics

ASK = f"{INTERNAL}retained"
"""The topic of questions. MQTT clients can neither publish nor subscribe below `$`."""

RETAIN = "retain"  # attribute of a retained message
STAMP = "stamp"  # attribute of one that is published again: time and id of the original
PATTERNS_MAX = 64  # in one question; more ask for everything

Stamp = tuple[float, int]


class RetainedValue(msgspec.Struct, frozen=True):
    content: str
    payload: bytes  # empty: deleted
    stamp: Stamp
    is_own: bool  # published at a door of this node


class Retained:
    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: dict[str, RetainedValue] = {}  # by topic, the one that changed last at the end

    def __len__(self) -> int:
        return len(self._kept)

    @property
    def has_own(self) -> bool:
        return any(kept.is_own for kept in self._kept.values())

    def keep(self, kept: RetainedValue) -> tuple[bool, list[str]]:
        """Whether it is new, and the topics that were removed to make room."""
        before = self._kept.get(kept.content)
        if before is not None and before.stamp >= kept.stamp:
            return False, []
        self._kept.pop(kept.content, None)
        self._kept[kept.content] = kept
        gone = []
        while len(self._kept) > self._most:
            gone.append(next(iter(self._kept)))
            del self._kept[gone[-1]]
        return True, gone

    def own_within(self, wanted: Topics) -> list[RetainedValue]:
        """The requested messages of which this node is the origin, including deletions."""
        return [kept for kept in self._kept.values() if kept.is_own and wanted.contains(kept.content)]


def question(patterns: list[str]) -> bytes:
    return " ".join(patterns if len(patterns) <= PATTERNS_MAX else ["**"]).encode()


def asked(payload: bytes) -> Topics | None:
    """What a question asks for; None if it makes no sense."""
    try:
        return Topics.parse(payload.decode())
    except (UnicodeDecodeError, ConfigurationError):
        return None


def written_stamp(stamp: Stamp) -> str:
    return f"{stamp[0]!r} {stamp[1]}"


def read_stamp(text: str, otherwise: Stamp) -> Stamp:
    """The stamp of the original; a peer's nonsense counts as none."""
    time_s, _, number = text.partition(" ")
    try:
        stamp = float(time_s), int(number)
    except ValueError:
        return otherwise
    return min(stamp, otherwise) if stamp[0] == stamp[0] else otherwise
