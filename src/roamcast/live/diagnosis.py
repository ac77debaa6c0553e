"""What a node reports if it hears no other node, or only nodes it cannot understand: once, with what to check. Pure."""

from collections.abc import Mapping

from roamcast.live.codec import DropReason
from roamcast.live.notices import Level, Notice

SILENCE_S = 15.0  # without a neighbour: seven beacons would have come
AGAIN_S = 600.0  # the same is not said more often

_ADVICE: dict[DropReason, str] = {
    DropReason.FORGED: "they have another key: compare the fingerprints that `roamcast key show` prints on both sides",
    DropReason.UNKNOWN_KEY: "their key file is newer or older: copy the current one to every node",
    DropReason.UNKNOWN_SENDER: "no certificate of theirs came, or one of another authority: certify all by the same",
    DropReason.EXPIRED: "their certificates are not valid now: renew them (`roamcast key certify`), or set the clocks",
    DropReason.REVOKED: "they were revoked: certify them again if they are to be members",
    DropReason.UNSEALED: "they have no key: start them with --key",
    DropReason.FOREIGN_MAGIC: "they have a key and this node has none, or are no Roamcast nodes: give this one --key",
    DropReason.FOREIGN_VERSION: "they run another version of Roamcast: install the same on all nodes",
    DropReason.FOREIGN_NETWORK: "their network or protocol has another name: compare --network and --protocol",
}
_AT_ONCE = (DropReason.FOREIGN_VERSION, DropReason.FOREIGN_NETWORK)
"""Waiting would not help. Keys and certificates may be there a moment later."""


class Diagnosis:
    """Is shown now and then how many neighbours there are and what was dropped; says something if it should."""

    def __init__(self, hearing: str) -> None:
        self._hearing = hearing  # what to check if nothing is heard at all
        self._alone_since_s: float | None = None
        self._before: dict[DropReason, int] = {}  # what was dropped when it became alone
        self._strangers: dict[DropReason, int] = {}  # of these reasons, what was dropped when they were last mentioned
        self._said_s: dict[str, float] = {}
        self._is_said: set[str] = set()  # since it became alone

    def examine(self, now_s: float, neighbours: int, dropped: Mapping[DropReason, int]) -> Notice | None:
        strangers = {drop: dropped.get(drop, 0) - self._strangers.get(drop, 0) for drop in _AT_ONCE}
        if any(strangers.values()) and now_s - self._said_s.get("strangers", -AGAIN_S) >= AGAIN_S:
            self._said_s["strangers"] = now_s
            self._strangers = dict(dropped)
            return _foreigners(strangers)
        if neighbours:
            self._alone_since_s = None
            return None
        if self._alone_since_s is None:
            self._alone_since_s = now_s
            self._before = dict(dropped)
            self._is_said.clear()
        if now_s - self._alone_since_s < SILENCE_S:
            return None
        foreign = {drop: dropped.get(drop, 0) - self._before.get(drop, 0) for drop in _ADVICE}
        if not any(foreign.values()):
            return self._silence(now_s)
        kept = {drop: count for drop, count in foreign.items() if drop not in _AT_ONCE}
        return _foreigners(kept) if any(kept.values()) and self._may_say("foreigners", now_s) else None

    def _silence(self, now_s: float) -> Notice | None:
        if not self._may_say("silence", now_s) or "foreigners" in self._is_said:
            return None
        return Notice(Level.WARNING, "silence", f"has heard no other node for {SILENCE_S:.0f} s: {self._hearing}")

    def _may_say(self, kind: str, now_s: float) -> bool:
        last_s = self._said_s.get(kind)
        if kind in self._is_said or (last_s is not None and now_s - last_s < AGAIN_S):
            return False
        self._is_said.add(kind)
        self._said_s[kind] = now_s
        return True


def _foreigners(foreign: dict[DropReason, int]) -> Notice:
    reason = max(foreign, key=lambda drop: foreign[drop])
    counts = {drop.value: count for drop, count in foreign.items() if count}
    heard = f"hears others, but accepted none of their {sum(counts.values())} datagrams ({_listed(counts)})"
    return Notice(Level.WARNING, "foreigners", f"{heard}: {_ADVICE[reason]}", {"dropped": counts})


def _listed(counts: dict[str, int]) -> str:
    return ", ".join(f"{reason} {count}" for reason, count in counts.items())
