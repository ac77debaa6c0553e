"""Topics: the event is a path of names such as `fire/north/hall`, the interest a set of patterns of such paths.

In a pattern `*` stands for exactly one level and `**` for any number of levels, none included. A name may contain any
printable characters except `*`, `/` and white space. The text form is the patterns, separated by spaces.

Normal form: within a run of wildcards only their number and the presence of a `**` count, so `**/*` is written `*/**`
and `**/**` is written `**`; since every topic has a level, `*/**` alone is `**`. The patterns of an interest are
sorted, and none is covered by another one.

How covering is decided
-----------------------
A pattern is a sequence of steps: a name, one arbitrary level, or a *gap* "n or more levels" (a run of n `*` with a
`**`). It covers another pattern exactly when its steps can be laid over the levels of the other so that names fall on
equal names, single levels on anything but a `**`, and a gap on any stretch that has n levels besides its `**`. (A
stretch with a `**` can be arbitrarily long, so only a gap may cover it; and it can be as short as its other levels, so
only those count.) It is enough to know which positions of the other pattern the first i steps can reach, so the work is
the product of the two lengths, however many `**` there are. A topic is a pattern without wildcards, so matching is the
same question, with the same cached answer.

This is exact for two patterns. Between interests `covers` asks whether each pattern of the other is covered by a single
one of ours: it never says yes wrongly, but misses patterns that only several together cover, as `a a/*/**` covers
`a/**`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

import msgspec

from roamcast.errors import ConfigurationError, PeerError
from roamcast.events import Event

if TYPE_CHECKING:
    from collections.abc import Iterable

    from roamcast.interests import Interest

PATTERN_CHARACTERS_MAX: Final = 255
LEVELS_MAX: Final = 32
PATTERNS_MAX: Final = 256  # in an interest; a union of more asks for everything
WILD_MAX: Final = 64  # patterns with wildcards that are compared with all others, to leave out what they cover
NAMES_PER_LEVEL: Final = 4
"""What `extra_share` assumes, since no node knows all topics: each name in a pattern leaves one event in this many."""

_CACHED: Final = 1 << 16


class Topics(msgspec.Struct, frozen=True, array_like=True, tag=2):
    """A set of topics; build it with `of` unless the patterns are known to be in normal form."""

    patterns: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        # It is not checked that no pattern is covered by another: a peer could then cause work quadratic in what
        # it sends, and nothing but the size of an interest depends on it.
        if len(self.patterns) > PATTERNS_MAX:
            raise PeerError(f"patterns: {len(self.patterns)}; allowed: at most {PATTERNS_MAX}")
        previous = ""
        for pattern in self.patterns:
            mistake = _mistake(pattern)
            if mistake:
                raise PeerError(f"patterns: {pattern[:PATTERN_CHARACTERS_MAX]!r} {mistake}")
            if not previous < pattern or _normalised(pattern) != pattern:
                raise PeerError(f"patterns: {self.patterns!r} are not in normal form")
            previous = pattern

    @staticmethod
    def of(*patterns: str) -> Topics:
        """Any patterns, in any order, covering each other or not, brought into normal form."""
        if len(patterns) > PATTERNS_MAX:
            raise ConfigurationError(f"interest: {len(patterns)} patterns; allowed: at most {PATTERNS_MAX}")
        for pattern in patterns:
            mistake = _mistake(pattern)
            if mistake:
                raise ConfigurationError(f"interest: {pattern[:PATTERN_CHARACTERS_MAX]!r} {mistake}")
        return Topics(_reduced(_normalised(pattern) for pattern in patterns))

    @staticmethod
    def parse(text: str) -> Topics:
        return Topics.of(*text.split())

    def __str__(self) -> str:
        return " ".join(self.patterns)

    @property
    def is_empty(self) -> bool:
        return not self.patterns

    def matches(self, event: Event) -> bool:
        return self.contains(event.content)

    def contains(self, topic: object) -> bool:
        if isinstance(topic, str):
            for pattern in self.patterns:
                if _covers(pattern, topic):
                    return True
        return False

    def covers(self, other: Interest) -> bool:
        """Whether each pattern of `other` is covered by one of ours; see above for what that misses."""
        if not isinstance(other, Topics):
            return False
        return all(self.contains(pattern) for pattern in other.patterns)

    def overlaps(self, other: Interest) -> bool:
        if not isinstance(other, Topics):
            return False
        return any(_overlap(ours, theirs) for ours in self.patterns for theirs in other.patterns)

    def union(self, other: Interest) -> Topics:
        if not isinstance(other, Topics):
            raise PeerError(f"interest: {other!r} is not of the language 'topics'")
        return Topics(_reduced(self.patterns + other.patterns))

    def extra_share(self, other: Interest | None, pool: float) -> float:
        """An estimate of the share of all events that this interest attracts and `other` does not, if the events are
        spread evenly over `pool` topics. A pattern counts for `NAMES_PER_LEVEL` to the power of minus its names, less
        what `other` asks for inside it; patterns that merely overlap count in full, so it errs on the high side."""
        theirs = other.patterns if isinstance(other, Topics) else ()
        extra = 0.0
        for pattern in self.patterns:
            if not any(_covers(their, pattern) for their in theirs):
                inside = sum(_share(their, pool) for their in theirs if _covers(pattern, their))
                extra += max(0.0, _share(pattern, pool) - inside)
        return min(1.0, extra)


@lru_cache(_CACHED)
def _mistake(pattern: str) -> str:
    """Why this is not a pattern, or nothing."""
    if len(pattern) > PATTERN_CHARACTERS_MAX:
        return f"is too long; allowed: {PATTERN_CHARACTERS_MAX} characters"
    levels = pattern.split("/")
    if len(levels) > LEVELS_MAX:
        return f"is too deep; allowed: {LEVELS_MAX} levels"
    for level in levels:
        if not level:
            return "has an empty level; write names, * or ** between slashes, as in fire/*/hall"
        if "*" in level and level not in ("*", "**"):
            return f"has a wildcard inside the name {level!r}; * and ** stand for whole levels"
        if not level.isprintable() or " " in level:
            return f"has white space or unprintable characters in {level!r}"
    return ""


@lru_cache(_CACHED)
def _normalised(pattern: str) -> str:
    if "**" not in pattern:
        return pattern
    levels: list[str] = []
    gap = False
    for level in [*pattern.split("/"), ""]:
        if level == "**":
            gap = True
            continue
        if gap and level != "*":
            levels.append("**")
            gap = False
        levels.append(level)
    levels.pop()
    return "**" if levels == ["*", "**"] else "/".join(levels)


def _reduced(patterns: Iterable[str]) -> tuple[str, ...]:
    """Sorted, without duplicates and without patterns that another one covers. A pattern without wildcards covers only
    itself. The work is bounded: with more than `WILD_MAX` patterns with wildcards, what they cover may stay."""
    distinct = sorted(set(patterns))
    if len(distinct) > PATTERNS_MAX:
        return ("**",)
    if sum("*" in pattern for pattern in distinct) > WILD_MAX:
        return tuple(distinct)
    wild: dict[str, list[str]] = {}  # by first level: a name there covers only patterns that begin with it
    for pattern in distinct:
        if "*" in pattern:
            wild.setdefault(_first(pattern), []).append(pattern)
    return tuple(
        pattern
        for pattern in distinct
        if not any(
            other != pattern and _covers(other, pattern)
            for first in {_first(pattern): None, "*": None, "**": None}
            for other in wild.get(first, ())
        )
    )


def _first(pattern: str) -> str:
    return pattern.partition("/")[0]


@lru_cache(_CACHED)
def _steps(pattern: str) -> tuple[str | int, ...]:
    """Names and `*` as they are, a run of n `*` that ends in a `**` as the number n."""
    steps: list[str | int] = []
    for level in pattern.split("/"):
        if level == "**":
            width = 0
            while steps and steps[-1] == "*":
                steps.pop()
                width += 1
            steps.append(width)
        else:
            steps.append(level)
    return tuple(steps)


@lru_cache(_CACHED)
def _covers(pattern: str, other: str) -> bool:
    """Whether every topic that matches `other` matches `pattern`; both in normal form."""
    levels = other.split("/")
    reached = [0]  # ascending positions in `levels` before which the steps so far can end
    for step in _steps(pattern):
        if isinstance(step, int):
            nearest = reached[0]
            while step and nearest < len(levels):
                step -= levels[nearest] != "**"
                nearest += 1
            if step:
                return False
            reached = list(range(nearest, len(levels) + 1))
        elif step == "*":
            reached = [at + 1 for at in reached if at < len(levels) and levels[at] != "**"]
        else:
            reached = [at + 1 for at in reached if at < len(levels) and levels[at] == step]
        if not reached:
            return False
    return reached[-1] == len(levels)


@lru_cache(_CACHED)
def _overlap(one: str, other: str) -> bool:
    """Whether some topic matches both."""
    levels = other.split("/")
    # possible[j]: the levels of `one` so far and the first j of `other` can stand for the same path
    possible = [True] + [False] * len(levels)
    for j, theirs in enumerate(levels):
        possible[j + 1] = possible[j] and theirs == "**"
    for ours in one.split("/"):
        before = possible
        possible = [before[0] and ours == "**"]
        for j, theirs in enumerate(levels):
            if ours == "**" or theirs == "**":
                possible.append(before[j + 1] or possible[j])
            else:
                possible.append(before[j] and (ours == theirs or "*" in (ours, theirs)))
    return possible[-1]


def _share(pattern: str, pool: float) -> float:
    names = sum(step != "*" for step in _steps(pattern) if isinstance(step, str))
    return max(float(NAMES_PER_LEVEL) ** -names, 1 / pool)
