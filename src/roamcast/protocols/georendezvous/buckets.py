"""Interests as topics: contents that have no name to hash are sorted into buckets that do.

GeoRendezvous meets at the hash of a topic's name. An interest language is brought to that by two questions:

- `of_event(event)`: the buckets under which the event is published;
- `of_interest(interest)`: the buckets that a subscriber has to follow so that no matching event is missed.

Every matching event shares at least one bucket with the interest. Most buckets also hold events that do not match; the
rendezvous point or the subscriber drops those.

| language | an event's buckets | an interest's buckets |
|---|---|---|
| topics | its first level by name, and the bucket of wildcards | the first levels of its patterns; for a pattern that begins with a wildcard, the bucket of wildcards |
| intervals | the one of `interval_buckets` stretches of the pool that holds the number | all stretches that the ranges touch |
| content | its type, and the one of `content_buckets` stretches that holds its *dividing value* | for each type that its expressions are about, the stretches that they allow |

The dividing value of a type is the required value with the most possibilities, as the schema tells (of several, the
first). All nodes have the schema, so they agree. A type without such a value has one bucket.

The bucket of wildcards costs little while it has no subscribers: publishers learn that and send nothing there.
"""  # noqa: E501 - the table

from functools import lru_cache
from math import inf
from typing import Final

from roamcast.events import Event
from roamcast.interests import Interest, Intervals, Topics
from roamcast.interests.content import Leaf, Term, event_types, record_of
from roamcast.interests.content.values import Numbers, Words
from roamcast.protocols.georendezvous.parameters import GeoRendezvousParameters

WILDCARDS: Final = "topic:*"


class Buckets:
    """The mapping that all nodes of a network share."""

    def __init__(self, parameters: GeoRendezvousParameters) -> None:
        self._stretches = parameters.interval_buckets
        self._pool = float(parameters.interval_pool)
        self._per_type = parameters.content_buckets

    def of_event(self, event: Event) -> list[str]:
        content = event.content
        if not isinstance(content, str):
            return [_stretch_name(_index(content, 0.0, self._pool, self._stretches))]
        document = record_of(content) if "<" in content else None
        if document is None:
            return [_of_pattern(content), WILDCARDS]
        kind, values = document
        leaf = dividing_leaf(kind) if self._per_type > 1 else None
        if leaf is None:
            return [_type_name(kind, 0)]
        value = values.get(leaf.path)
        if isinstance(leaf.domain, Words):
            place = float(leaf.domain.values.index(str(value)))
        else:
            place = 0.0 if value is None or isinstance(value, str) else float(value)
        return [_type_name(kind, _index(place, *_extent(leaf), self._per_type))]

    def of_interest(self, interest: Interest) -> list[str]:
        """The buckets to follow, sorted, each once."""
        if isinstance(interest, Topics):
            return sorted({_of_pattern(pattern) for pattern in interest.patterns})
        if isinstance(interest, Intervals):
            touched: set[int] = set()
            for low, high in interest.ranges:
                first = _index(low, 0.0, self._pool, self._stretches)
                last = _index(high, 0.0, self._pool, self._stretches)
                if last > first and last * self._pool / self._stretches >= high:
                    last -= 1  # the range ends where this stretch begins
                touched.update(range(first, last + 1))
            return [_stretch_name(index) for index in sorted(touched)]
        return sorted({name for term in interest.terms for name in self._of_term(term)})

    def of_advertisement(self, interest: Interest) -> list[str]:
        """The buckets that a publisher of such events can tell beforehand; others it finds when it publishes."""
        if isinstance(interest, Topics):
            return sorted({WILDCARDS, *(_of_pattern(pattern) for pattern in interest.patterns)})
        return self.of_interest(interest)

    def _of_term(self, term: Term) -> list[str]:
        leaf = dividing_leaf(term.type) if self._per_type > 1 else None
        if leaf is None:
            return [_type_name(term.type, 0)]
        low, high = _extent(leaf)
        allowed = dict(term.constraints).get(leaf.path)
        values = None if allowed is None else allowed.values
        touched: set[int] = set()
        if isinstance(values, Words) and isinstance(leaf.domain, Words):
            places = [leaf.domain.values.index(word) for word in values.values if word in leaf.domain.values]
            touched.update(_index(place, low, high, self._per_type) for place in places)
        elif isinstance(values, Numbers):
            for first, last in values.ranges:
                stretches = range(
                    _index(first, low, high, self._per_type), _index(last, low, high, self._per_type) + 1
                )
                touched.update(stretches)
        else:
            touched.update(range(self._per_type))
        return [_type_name(term.type, index) for index in sorted(touched)]


@lru_cache(256)
def dividing_leaf(kind: str) -> Leaf | None:
    """The required value of an event type with the most possibilities; None if there is none that is finite."""
    best: Leaf | None = None
    most = 1.0
    for leaf in event_types()[kind].leaves.values():
        if leaf.optional or leaf.domain is None:
            continue
        low, high = _extent(leaf)
        if most < high - low < inf:
            best, most = leaf, high - low
    return best


def _extent(leaf: Leaf) -> tuple[float, float]:
    """The half-open range that the values of a leaf lie in; words count by their place in the schema."""
    if isinstance(leaf.domain, Words):
        return 0.0, float(len(leaf.domain.values))
    assert isinstance(leaf.domain, Numbers)
    return float(leaf.domain.ranges[0][0]), float(leaf.domain.ranges[-1][1]) + leaf.domain.integral


def _index(value: float, low: float, high: float, stretches: int) -> int:
    """Which of equally long stretches of `[low, high)` holds a value; those at the ends take what lies outside."""
    if not value > low:  # also what is not a number: it matches no interest, but must be somewhere
        return 0
    if value >= high:
        return stretches - 1
    return min(stretches - 1, int((value - low) * stretches / (high - low)))


def _of_pattern(pattern: str) -> str:
    level = pattern.partition("/")[0][:256]
    return WILDCARDS if "*" in level else f"topic:{level}"


def _stretch_name(index: int) -> str:
    return f"interval:{index}"


def _type_name(event_type: str, index: int) -> str:
    return f"content:{event_type}:{index}"
