"""Counts what became of events, from two lists alone: what was published and what applications received.

It knows nothing of protocols, journals or repair, so it can judge all of them.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from roamcast.events import NUMBER_BITS


class ReceiptCounts(NamedTuple):
    expected: int  # pairs of a wanted event and its subscriber
    lost: int  # of them, those never received
    twice: int  # receipts of an event that the subscriber had before
    disordered: int  # receipts after one with a higher number of the same publisher
    unasked: int  # receipts of events that were not expected

    @property
    def is_perfect(self) -> bool:
        return not (self.lost or self.twice or self.disordered or self.unasked)


def judge(wanted: Mapping[int, Iterable[int]], received: Mapping[int, Sequence[int]]) -> ReceiptCounts:
    """`wanted`: by subscriber, the ids of the events it should get; `received`: those that it got, in order."""
    expected = lost = twice = disordered = unasked = 0
    for subscriber in sorted({*wanted, *received}):
        should = set(wanted.get(subscriber, ()))
        got = Counter(received.get(subscriber, ()))
        expected += len(should)
        lost += len(should - got.keys())
        unasked += len(got.keys() - should)
        twice += sum(count - 1 for count in got.values())
        highest: dict[int, int] = {}
        for each in received.get(subscriber, ()):
            publisher = each >> NUMBER_BITS
            disordered += each < highest.get(publisher, 0)
            highest[publisher] = max(each, highest.get(publisher, 0))
    return ReceiptCounts(expected, lost, twice, disordered, unasked)
