"""Windows that slide, windows per key, and what of them travels."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roamcast.errors import ConfigurationError, PeerError
from roamcast.events import Event, event_id
from roamcast.protocols.overlays.modulators import compile_modulator
from roamcast.protocols.overlays.modulators.pipeline import STATE_BYTES_MAX


def reading(number: int, station: str, level: Any, time_s: float = 0.0) -> Event:
    return Event(event_id(1, number), time_s, "water", json.dumps({"station": station, "level": level}).encode())


def contents(text: str, events: list[Event]) -> list[Any]:
    modulator = compile_modulator(text)
    return [output.content for event in events for output in modulator.process(event).outputs]


def test_a_moving_average_per_station() -> None:
    levels = [("north", 1), ("south", 10), ("north", 3), ("north", 5), ("south", 20), ("north", 7)]
    events = [reading(number, *each) for number, each in enumerate(levels, 1)]
    assert contents("moving(mean, level, 3, station)", events) == [1.0, 10.0, 2.0, 3.0, 15.0, 5.0]
    assert contents("moving(max, level, 2)", events) == [1.0, 10.0, 10.0, 5.0, 20.0, 20.0]


def test_a_result_may_go_into_a_field_so_that_the_topic_stays() -> None:
    modulator = compile_modulator("moving(sum, level, 2, station, both)")
    last = [modulator.process(reading(number, "north", number)).outputs[0] for number in (1, 2, 3)][-1]
    assert last.content == "water"
    assert json.loads(last.payload) == {"station": "north", "level": 3, "both": 5.0}


def test_a_window_of_time_forgets_what_is_old() -> None:
    events = [reading(number, "a", number, time_s) for number, time_s in enumerate((0.0, 5.0, 9.0, 11.0, 40.0), 1)]
    assert contents("within(count, level, 10, station)", events) == [1.0, 2.0, 3.0, 3.0, 1.0]


def test_batches_per_key() -> None:
    levels = [("a", 1), ("b", 10), ("a", 2), ("a", 3), ("b", 20), ("a", 4)]
    events = [reading(number, *each) for number, each in enumerate(levels, 1)]
    assert contents("batch(sum, level, 2, station)", events) == [3.0, 30.0, 7.0]


def test_only_what_has_changed_passes() -> None:
    levels = [("a", 1.0), ("a", 1.4), ("a", 1.6), ("b", 1.6), ("a", 1.2), ("a", 1.0)]
    events = [reading(number, *each) for number, each in enumerate(levels, 1)]
    modulator = compile_modulator("changed(level, 0.5, station)")
    passed = [event.number for event in events if modulator.process(event).outputs]
    assert passed == [1, 3, 4, 6]


def test_an_event_without_a_value_passes_no_window() -> None:
    assert contents("moving(mean, level, 3)", [reading(1, "a", "high"), reading(2, "a", None)]) == []


def test_a_sum_that_overflows_is_no_event() -> None:
    events = [reading(number, "a", 1.5e308) for number in (1, 2)]
    assert contents("moving(sum, level, 2)", events) == []
    assert contents("transform(level)", events) == []


WINDOWS = ("moving(mean, level, 3, station)", "within(sum, level, 10, station)", "batch(max, level, 3, station)")


@settings(max_examples=30, deadline=None)
@given(
    st.sampled_from([*WINDOWS, "changed(level, 2, station)"]),
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(-9, 9)), max_size=20),
    st.integers(0, 20),
)
def test_a_window_that_moves_computes_what_it_would_have_computed_in_one_place(
    text: str, levels: list[tuple[str, int]], moves_after: int
) -> None:
    events = [reading(number, station, level, number * 3.0) for number, (station, level) in enumerate(levels, 1)]
    stays, first, second = (compile_modulator(text) for _ in range(3))
    expected = [stays.process(event) for event in events]
    found = [first.process(event) for event in events[:moves_after]]
    second.restore(first.state())
    found += [second.process(event) for event in events[moves_after:]]
    assert found == expected


def test_keys_cannot_grow_a_state_beyond_its_bound() -> None:
    modulator = compile_modulator("moving(mean, level, 4, station)")
    for number in range(1, 3000):
        modulator.process(reading(number, f"station-{number}" + "x" * 200, number))
    state = modulator.state()
    assert len(state) < STATE_BYTES_MAX
    other = compile_modulator("moving(mean, level, 4, station)")
    other.restore(state)
    assert other.state() == state
    with pytest.raises(PeerError):
        other.restore(state[: len(state) // 2])


@pytest.mark.parametrize(
    "text",
    [
        "moving(mean, level)",
        "moving(mean, level, 0)",
        "moving(mean, level, 1001)",
        "moving(median, level, 3)",
        "moving(mean, level, 3, station, 7)",
        "within(mean, level, 0)",
        "within(mean, level, 1e9)",
        "batch(mean, level, 1.5)",
        "changed(level)",
    ],
)
def test_other_windows_are_refused(text: str) -> None:
    with pytest.raises(ConfigurationError, match="modulator: "):
        compile_modulator(text)
