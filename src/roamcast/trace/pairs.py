"""Who should have got what: the expected pairs of a run, rebuilt from its `subscribed` and `published` rows.

Subscriptions
    Equal interests (language and text) of a node are one, and the last word counts: the interest is *open* at time t if
    the last `subscribed` or `unsubscribed` row of that node and interest up to and including t is a `subscribed` one;
    at equal times `unsubscribed` goes first. So a subscription that is made again, as after a return, changes nothing.
    Faults close no subscription: a crashed subscriber still should have got its events.
Expected pairs
    (publication, node) where the node is not the publisher and has an open interest of the publication's language that
    matches it. A pair is expected once, however many interests of the node match.

The work is done in blocks of publications against all *terms* (a range or a pattern of a subscription, with the node
and the period it is open), so that the memory is bounded and nothing loops over pairs.
"""

import math
from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np

from roamcast.interests import Intervals, Topics, parse_interest
from roamcast.trace.columns import Booleans, Integers, Rows

_BLOCK_CELLS = 1 << 20  # publications times terms that are compared at once


class OpenInterest(NamedTuple):
    """A node's interest and the period `[from_s, until_s)` in which it is open."""

    node: int
    language: str
    interest: str
    from_s: float
    until_s: float


def subscriptions(rows: Rows) -> list[OpenInterest]:
    """The periods of all interests, from the `subscribed` and `unsubscribed` rows."""
    columns = [rows[name].to_list() for name in ("t", "kind", "node", "category", "detail")]
    opened: dict[tuple[int, str, str], float] = {}
    periods: list[OpenInterest] = []
    for t, subscribes, *key in sorted((t, kind == "subscribed", *key) for t, kind, *key in zip(*columns, strict=True)):
        node, language, interest = key
        if subscribes:
            opened.setdefault((node, language, interest), t)
        else:
            from_s = opened.pop((node, language, interest), t)
            if from_s < t:
                periods.append(OpenInterest(node, language, interest, from_s, t))
    periods += (OpenInterest(*key, from_s, math.inf) for key, from_s in opened.items())
    return periods


class ExpectedPairs(NamedTuple):
    """The expected pairs by publication and node, both ascending."""

    publication: Integers  # its place among the `published` rows
    node: Integers


def expected_pairs(published: Rows, periods: list[OpenInterest]) -> ExpectedPairs:
    """All expected pairs, from the `published` rows and the periods of all interests."""
    languages = np.asarray(published["category"].to_list(), dtype=object)
    publication = [np.empty(0, dtype=np.int64)]
    node = [np.empty(0, dtype=np.int64)]
    for language, terms_of in (("intervals", _IntervalTerms), ("topics", _TopicTerms), ("content", _ContentTerms)):
        terms = terms_of([period for period in periods if period.language == language])
        places = np.flatnonzero(languages == language)
        block_rows = max(1, _BLOCK_CELLS // max(1, len(terms.node)))
        for start in range(0, len(places), block_rows):
            block = places[start : start + block_rows]
            found = _expected_in(published.taken(block), terms)
            publication.append(block[found.publication])
            node.append(found.node)
    pairs = ExpectedPairs(np.concatenate(publication), np.concatenate(node))
    del publication, node
    if (pairs.publication[1:] >= pairs.publication[:-1]).all():  # one language, as a rule: they are in order already
        return pairs
    order = np.lexsort((pairs.node, pairs.publication))
    return ExpectedPairs(pairs.publication[order], pairs.node[order])


def _expected_in(published: Rows, terms: "_Terms") -> ExpectedPairs:
    t = published.numbers("t")[:, None]
    publisher = published.numbers("node")[:, None]
    wanted = (terms.from_s <= t) & (t < terms.until_s) & (terms.node != publisher) & terms.matches(published)
    if not len(terms.node):
        return ExpectedPairs(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))
    order = np.argsort(terms.node, kind="stable")  # the terms of a node side by side
    nodes, starts = np.unique(terms.node[order], return_index=True)
    row, place = np.nonzero(np.logical_or.reduceat(wanted[:, order], starts, axis=1))
    return ExpectedPairs(row, nodes[place])


class _Terms(ABC):
    """Ranges or patterns side by side, each with the node that asks for it and the period it is open."""

    def __init__(self, owners: list[OpenInterest]) -> None:
        self.node = np.array([owner.node for owner in owners], dtype=np.int64)
        self.from_s = np.array([owner.from_s for owner in owners])
        self.until_s = np.array([owner.until_s for owner in owners])

    @abstractmethod
    def matches(self, published: Rows) -> Booleans:
        """Publications by terms: whether the content falls into the range or the pattern."""


class _IntervalTerms(_Terms):
    def __init__(self, periods: list[OpenInterest]) -> None:
        owners: list[OpenInterest] = []
        ranges: list[tuple[float, float]] = []
        for period in periods:
            interest = parse_interest("intervals", period.interest)
            assert isinstance(interest, Intervals)
            owners += [period] * len(interest.ranges)
            ranges += interest.ranges
        super().__init__(owners)
        self.low, self.high = np.array(ranges, dtype=np.float64).reshape(-1, 2).T

    def matches(self, published: Rows) -> Booleans:
        value = published.numbers("value")[:, None]
        return np.asarray((self.low <= value) & (value < self.high))


class _ContentTerms(_Terms):
    """Whole interests: their own evaluation is fast, and a run has few different ones."""

    def __init__(self, periods: list[OpenInterest]) -> None:
        super().__init__(periods)
        self._distinct = {text: parse_interest("content", text) for text in dict.fromkeys(p.interest for p in periods)}
        places = {text: place for place, text in enumerate(self._distinct)}
        self.interest = np.array([places[period.interest] for period in periods], dtype=np.int64)

    def matches(self, published: Rows) -> Booleans:
        rows = [
            [interest.contains(document) for interest in self._distinct.values()]
            for document in published["detail"].to_list()
        ]
        return np.array(rows, dtype=np.bool_).reshape(len(published), -1)[:, self.interest]


class _TopicTerms(_Terms):
    def __init__(self, periods: list[OpenInterest]) -> None:
        owners: list[OpenInterest] = []
        self._places: dict[str, int] = {}  # of distinct patterns
        pattern: list[int] = []
        for period in periods:
            interest = parse_interest("topics", period.interest)
            assert isinstance(interest, Topics)
            owners += [period] * len(interest.patterns)
            pattern += [self._places.setdefault(text, len(self._places)) for text in interest.patterns]
        super().__init__(owners)
        self.pattern = np.array(pattern, dtype=np.int64)
        self._wild = [(place, Topics((text,))) for text, place in self._places.items() if "*" in text]
        self._rows: dict[str, Booleans] = {}  # topic -> which distinct patterns match it

    def matches(self, published: Rows) -> Booleans:
        rows = [self._row(str(topic)) for topic in published["detail"].to_list()]
        return np.stack(rows)[:, self.pattern]  # blocks are never empty

    def _row(self, topic: str) -> Booleans:
        row = self._rows.get(topic)
        if row is None:
            row = self._rows[topic] = np.zeros(len(self._places), dtype=np.bool_)
            row[[place for place, pattern in self._wild if pattern.contains(topic)]] = True
            if topic in self._places:
                row[self._places[topic]] = True
        return row
