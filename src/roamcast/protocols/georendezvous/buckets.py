"""Interests onto topics: what has no name to hash is sorted into buckets that do.

GeoRendezvous meets at the hash of a topic's name. An interest language is brought to that by two questions:

- `of_event(event)`: the buckets under which the event is published;
- `of_interest(interest)`: the buckets that a subscriber has to follow so that no matching event is missed.

Every matching event shares at least one bucket with the interest. Most buckets also bring events that do not match;
the subscriber drops those and the trace counts them.

| language | an event's buckets | an interest's buckets |
|---|---|---|
| topics | its first level by name, and the bucket of wildcards | the first levels of its patterns; for a pattern that begins with a wildcard, the bucket of wildcards |
| intervals | the one of `interval_buckets` stretches of the pool that holds the number | all stretches that the ranges touch |
| content | its type, the name of its root element | the types that its expressions are about |

The bucket of wildcards costs little while nobody is in it: publishers learn that and stay away.
"""  # noqa: E501 - the table

from typing import Final

from roamcast.events import Event
from roamcast.interests import Interest, Intervals, Topics
from roamcast.interests.content import record_of
from roamcast.protocols.georendezvous.parameters import GeoRendezvousParameters

WILDCARDS: Final = "topic:*"


class Buckets:
    """The mapping that all nodes of a network share."""

    def __init__(self, parameters: GeoRendezvousParameters) -> None:
        self._stretches = parameters.interval_buckets
        self._stretch = parameters.interval_pool / parameters.interval_buckets

    def of_event(self, event: Event) -> list[str]:
        content = event.content
        if not isinstance(content, str):
            return [_stretch_name(self._index(content))]
        document = record_of(content) if "<" in content else None
        return [_of_pattern(content), WILDCARDS] if document is None else [_type_name(document[0])]

    def of_interest(self, interest: Interest) -> list[str]:
        """The buckets to follow, sorted, each once."""
        if isinstance(interest, Topics):
            return sorted({_of_pattern(pattern) for pattern in interest.patterns})
        if isinstance(interest, Intervals):
            return [_stretch_name(index) for index in self._touched(interest)]
        return sorted({_type_name(term.type) for term in interest.terms})

    def of_advertisement(self, interest: Interest) -> list[str]:
        """The buckets that a publisher of such events can tell beforehand; others it finds when it publishes."""
        if isinstance(interest, Topics):
            return sorted({WILDCARDS, *(_of_pattern(pattern) for pattern in interest.patterns)})
        return self.of_interest(interest)

    def _touched(self, interest: Intervals) -> list[int]:
        touched: set[int] = set()
        for low, high in interest.ranges:
            last = self._index(high)
            if last * self._stretch >= high and last > self._index(low):
                last -= 1  # the range ends where this stretch begins
            touched.update(range(self._index(low), last + 1))
        return sorted(touched)

    def _index(self, value: float) -> int:
        if value != value:
            return 0  # matches no interest, but must be somewhere
        return int(min(max(value // self._stretch, 0), self._stretches - 1))


def _of_pattern(pattern: str) -> str:
    level = pattern.partition("/")[0]
    return WILDCARDS if "*" in level else f"topic:{level}"


def _stretch_name(index: int) -> str:
    return f"interval:{index}"


def _type_name(event_type: str) -> str:
    return f"content:{event_type}"
