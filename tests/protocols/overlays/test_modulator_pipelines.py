"""Modulators as pipelines of operators, and the state that they take along."""

import struct
from collections.abc import Iterable

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roamcast.errors import ConfigurationError, PeerError
from roamcast.events import Content, Event, event_id
from roamcast.protocols.overlays.modulators import Modulator, compile_modulator


def events(contents: Iterable[Content], payload: bytes = b"") -> list[Event]:
    return [Event(event_id(2, number + 1), float(number), content, payload) for number, content in enumerate(contents)]


def outputs(modulator: Modulator, given_events: list[Event]) -> list[Event]:
    return [output for event in given_events for output in modulator.process(event).outputs]


def contents(text: str, given_contents: Iterable[Content]) -> list[Content]:
    return [event.content for event in outputs(compile_modulator(text), events(given_contents))]


def test_filter_passes_what_the_expression_holds_for() -> None:
    assert contents("filter(content >= 3)", range(6)) == [3, 4, 5]


def test_sample_passes_the_first_of_every_few() -> None:
    assert contents("sample(3)", range(8)) == [0, 3, 6]


def test_transform_replaces_the_content_and_drops_what_makes_nothing() -> None:
    assert contents("transform(10 / content)", [5, 0, 2]) == [2.0, 5.0]


@pytest.mark.parametrize(
    ("function", "value"), [("mean", 2.0), ("sum", 6.0), ("min", 1.0), ("max", 3.0), ("count", 3.0)]
)
def test_aggregate_replaces_a_window_by_one_event_with_the_id_of_its_last(function: str, value: float) -> None:
    modulator = compile_modulator(f"aggregate({function}, content, 3)")
    kept = [modulator.process(event) for event in events([1, 3, 2, 9])]
    assert [outcome.is_kept for outcome in kept] == [True, True, False, True]
    (output,) = kept[2].outputs
    assert (output.content, output.number) == (value, 3)


def test_project_keeps_only_the_named_fields() -> None:
    (output,) = outputs(compile_modulator("project(a, c)"), events([0], b'{"a": 1, "b": 2, "c": [3]}'))
    assert msgspec.json.decode(output.payload) == {"a": 1, "c": [3]}


def test_assign_sets_a_field_that_later_operators_see() -> None:
    modulator = compile_modulator("assign(depth, rain * 2) | filter(depth > 5) | project(depth)")
    (output,) = outputs(modulator, events([0], b'{"rain": 3}'))
    assert msgspec.json.decode(output.payload) == {"depth": 6.0}


def test_crop_cuts_a_bounding_box_out_of_a_grid_of_doubles() -> None:
    grid = struct.pack("<12d", *range(12))  # three rows of four
    (output,) = outputs(compile_modulator("crop(4, 1, 1, 3, 3)"), events([0], grid))
    assert struct.unpack("<4d", output.payload) == (5.0, 6.0, 9.0, 10.0)
    assert outputs(compile_modulator("crop(4, 1, 1, 3, 3)"), events([0], b"odd")) == []


def test_a_tenth_of_the_flood_watch_grid_is_a_tenth_of_its_bytes() -> None:
    (output,) = outputs(compile_modulator("crop(100, 0, 0, 32, 31)"), events([0], bytes(80_000)))
    assert len(output.payload) == 32 * 31 * 8


def test_operators_compose_from_left_to_right() -> None:
    assert contents("filter(content > 1) | transform(content * 10) | sample(2)", range(6)) == [20.0, 40.0]


def test_work_is_declared_and_everything_costs_something() -> None:
    event = events([1])[0]
    assert compile_modulator("work(0.25)").cost_s(event) == 0.25
    assert 0 < compile_modulator("filter(content > 1)").cost_s(event) < 0.001
    assert compile_modulator("crop(4, 0, 0, 1, 1)").cost_s(events([1], bytes(80_000))[0]) > 1e-4


@settings(deadline=None, derandomize=True, max_examples=80)
@given(
    st.sampled_from(
        [
            "sample(3)",
            "aggregate(mean, content, 4)",
            "aggregate(max, content, 2) | sample(2)",
            "filter(content > 3) | aggregate(sum, content, 3)",
        ]
    ),
    st.lists(st.integers(0, 9), max_size=20),
    st.integers(0, 20),
)
def test_a_modulator_that_moves_at_any_point_goes_on_as_if_it_had_not(text: str, given: list[int], at: int) -> None:
    whole = contents(text, given)
    first, second = compile_modulator(text), compile_modulator(text)
    series = events(given)
    before = outputs(first, series[:at])
    second.restore(first.state())
    assert [event.content for event in before + outputs(second, series[at:])] == whole


@pytest.mark.parametrize(
    "state",
    [
        b"",
        b"\xc1",
        b"\x90",
        bytes(5000),
        *(msgspec.msgpack.encode(part) for part in ([[9.0]], [[1.5]], [[1.0, 2.0]], ["x"])),
    ],
)
def test_a_state_that_does_not_fit_is_a_peers_nonsense(state: bytes) -> None:
    with pytest.raises(PeerError):
        compile_modulator("sample(3)").restore(state)


@pytest.mark.parametrize(
    "text",
    [
        "filter()",
        "filter(1) |",
        "filter(1) filter(2)",
        "explode(1)",
        "sample(0)",
        "sample(1.5)",
        "sample(99999999)",
        "aggregate(median, content, 3)",
        "aggregate(mean, content)",
        "crop(4, 0, 0, 5, 1)",
        "crop(4, 0, 0)",
        "project()",
        "work(61)",
        " | ".join(["sample(2)"] * 17),
        "import os",
    ],
)
def test_other_pipelines_are_refused(text: str) -> None:
    with pytest.raises(ConfigurationError, match=r"^modulator: "):
        compile_modulator(text)


def test_a_changed_event_loses_the_signature_of_its_publisher() -> None:
    signed = Event(event_id(2, 1), 0.0, 5, signature=bytes(64))
    (same,) = compile_modulator("filter(content >= 3)").process(signed).outputs
    (changed,) = compile_modulator("transform(10 / content)").process(signed).outputs
    assert same == signed
    assert (changed.content, changed.signature) == (2.0, None)
