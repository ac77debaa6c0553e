"""The event queue against its slow twin: a list that is searched for the earliest entry each time."""

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roamcast.errors import CallerError
from roamcast.world.scheduler import SPANS_PER_S, ScheduledCall, Scheduler


class SlowScheduler:
    def __init__(self) -> None:
        self.now = 0.0
        self.entries: list[tuple[float, Callable[[Any], None], Any]] = []

    def at(self, t: float, callback: Callable[[Any], None], argument: Any) -> None:
        self.entries.append((t, callback, argument))

    def run(self, until_s: float) -> None:
        while due := [entry for entry in self.entries if entry[0] <= until_s]:
            first = min(due, key=lambda entry: entry[0])  # of several, the one that was asked for first
            self.entries.remove(first)
            self.now = first[0]
            first[1](first[2])
        self.now = until_s


class HeapScheduler:
    """Another twin, for more entries than can be searched."""

    def __init__(self) -> None:
        self.now = 0.0
        self.entries: list[tuple[float, int, Callable[[Any], None], Any]] = []
        self.asked = 0

    def at(self, t: float, callback: Callable[[Any], None], argument: Any) -> None:
        self.asked += 1
        heappush(self.entries, (t, self.asked, callback, argument))

    def run(self, until_s: float) -> None:
        while self.entries and self.entries[0][0] <= until_s:
            self.now, _, callback, argument = heappop(self.entries)
            callback(argument)
        self.now = until_s


def story(
    scheduler: Scheduler | SlowScheduler | HeapScheduler, plan: list[tuple[float, list[float]]], steps_s: list[float]
) -> list[Any]:
    """What is called when, if each call of the plan asks for further ones after its delays."""
    told: list[Any] = []

    def call(what: tuple[str, list[float]]) -> None:
        name, delays_s = what
        told.append((scheduler.now, name))
        for number, delay_s in enumerate(delays_s):
            scheduler.at(scheduler.now + delay_s, call, (f"{name}.{number}", delays_s[number + 1 :]))

    for number, (t_s, delays_s) in enumerate(plan):
        scheduler.at(t_s, call, (str(number), delays_s))
    until_s = 0.0
    for step_s in steps_s:
        until_s += step_s
        scheduler.run(until_s)
        told.append(("until", scheduler.now))
    return told


# Few different times, many ties; borders of spans and what lies just beside them.
SPAN_S = 1 / SPANS_PER_S
TIMES_S = st.sampled_from([0.0, 1e-5, SPAN_S - 1e-9, SPAN_S, SPAN_S + 1e-9, 0.3, 5 * SPAN_S, 1.0, 40.0])


@settings(deadline=None, derandomize=True, max_examples=200)
@given(st.lists(st.tuples(TIMES_S, st.lists(TIMES_S, max_size=3)), max_size=8), st.lists(TIMES_S, max_size=5))
def test_calls_come_in_the_order_of_a_list_that_is_searched(
    plan: list[tuple[float, list[float]]], steps_s: list[float]
) -> None:
    assert story(Scheduler(), plan, steps_s) == story(SlowScheduler(), plan, steps_s)


def test_the_next_instant_is_told_without_reaching_it() -> None:
    scheduler = Scheduler()
    assert scheduler.next_s(7.0) == 7.0
    scheduler.at(3.0, lambda _: None, None)
    scheduler.at(2.5, lambda _: None, None)
    assert scheduler.next_s(1.0) == 1.0
    assert scheduler.next_s(7.0) == 2.5
    assert scheduler.events == 0
    scheduler.run(2.7)
    assert (scheduler.now, scheduler.events, scheduler.next_s(7.0)) == (2.7, 1, 3.0)


def test_many_calls_in_a_span_make_more_slots_and_keep_their_order() -> None:
    plan = [((number * 7919 % 3001) / 3001 * 3 * SPAN_S, [SPAN_S / 3]) for number in range(3001)]
    steps_s = [SPAN_S / 2, 4 * SPAN_S]
    assert story(Scheduler(), plan, steps_s) == story(HeapScheduler(), plan, steps_s)


def test_what_is_in_the_queue_already_is_refused() -> None:
    scheduler = Scheduler()
    call = ScheduledCall(lambda _: None, None)
    scheduler.put(1.0, call)
    with pytest.raises(CallerError, match="is in the queue already"):
        scheduler.put(2.0, call)
    scheduler.run(1.0)
    scheduler.put(2.0, call)
    scheduler.run(2.0)
    assert scheduler.events == 2
