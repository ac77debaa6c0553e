"""What is asked for: the interest languages.

A language is one frozen struct that offers `matches(event)`, `covers(other)`, `overlaps(other)`, `union(other)`,
`is_empty`, `extra_share(other, pool)` and a text form (`str(interest)`, `parse`). Protocols use only these, so every
protocol runs every language. A network uses one language. Comparing interests of two languages answers "no"; uniting
them raises a `PeerError`, because only a peer can bring in another language.

`a.extra_share(b, pool)` is the share of all events that `a` attracts and `b` does not, if events are spread evenly over
`pool` different contents; with `None` for `b` it is the share that `a` attracts.

Adding a language: write its struct with a tag of its own and add it to `Interest` and `LANGUAGES` below.
"""

from collections.abc import Iterable
from typing import Final

from roamcast.errors import ConfigurationError
from roamcast.interests.content.xpaths import XPaths
from roamcast.interests.intervals import Intervals
from roamcast.interests.topics import Topics

__all__ = ["LANGUAGES", "Interest", "Intervals", "Topics", "XPaths", "parse_interest", "union_all"]

Interest = Intervals | Topics | XPaths

LANGUAGES: Final[dict[str, type[Intervals] | type[Topics] | type[XPaths]]] = {
    "intervals": Intervals,
    "topics": Topics,
    "content": XPaths,
}


def parse_interest(language: str, text: str) -> Interest:
    """The interest that `text` describes; `ConfigurationError` if it is not one."""
    if language not in LANGUAGES:
        raise ConfigurationError(f"language: {language!r} is unknown; allowed: {', '.join(LANGUAGES)}")
    return LANGUAGES[language].parse(text)


def union_all(interests: Iterable[Interest]) -> Interest | None:
    """The union of all interests, or `None` if there are none. Unites in pairs, then pairs of the results, so that no
    interest is walked once for each of the others."""
    united = list(interests)
    while len(united) > 1:
        pairs = [united[at].union(united[at + 1]) for at in range(0, len(united) - 1, 2)]
        united = [*pairs, united[-1]] if len(united) % 2 else pairs
    return united[0] if united else None
