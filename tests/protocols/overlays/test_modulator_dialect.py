"""Python expressions that become pipelines; nothing of them is ever run."""

import contextlib
import json
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roamcast.errors import ConfigurationError
from roamcast.events import Event, event_id
from roamcast.protocols.overlays.modulators import compile_modulator
from roamcast.protocols.overlays.modulators.dialect import is_python, translate

SAME = {
    "events.where(level > 2 and station != 'north').every(5)": 'filter(level > 2 and station != "north") | sample(5)',
    "events.where(1 < level <= 3)": "filter(1 < level and level <= 3)",
    "events.where('oo' in kind and 'r' not in kind)": 'filter(contains(kind, "oo") and not contains(kind, "r"))',
    "events.average(level, last=10, by=station)": "moving(mean, level, 10, station)",
    "events.highest(level, seconds=2.5, into='peak')": "within(max, level, 2.5, 1, peak)",
    "events.total(level, batch=4, by=publisher)": "batch(sum, level, 4, publisher)",
    "events.select('a', 'b').put(c=a + 1, d=-a)": "project(a, b) | assign(c, a + 1) | assign(d, -a)",
    "events.emit(abs(level - 3) * 2 % 5)": "transform((abs(level - 3) * 2) % 5)",
    "events.emit(len(kind))": "transform(length(kind))",
    "events.changed(level, 0.5, key=station)": "changed(level, 0.5, station)",
}
ON_GRIDS = {
    "events.crop(columns=4, box=(0, 0, 3, 2))": "crop(4, 0, 0, 3, 2)",
    "events.downsample(4, 2, 'max').measure('max')": "downsample(4, 2, max) | measure(max)",
    "events.stencil(4, 2, 0.5, 0.1, -0.025)": "stencil(4, 2, 0.5, 0.1, -0.025)",
    "events.runoff(columns=4, terrain=ground, seconds=60, steps=3)": "runoff(4, ground, 60, 3)",
    "events.add(ground).multiply(input=ground)": "combine(add, ground) | combine(multiply, ground)",
}
INPUTS = {"ground": struct.pack("<16d", *range(16))}


@pytest.mark.parametrize("source", [*SAME, *ON_GRIDS])
def test_an_expression_means_what_its_pipeline_means(source: str) -> None:
    assert is_python(source)
    pipeline = (SAME | ON_GRIDS)[source]
    one, other = compile_modulator(translate(source), INPUTS), compile_modulator(pipeline, INPUTS)
    passed = 0
    for number in range(1, 12):
        kind = "flood drill"[: number * 2]
        record = {"level": number / 2, "station": "north" if number % 3 else "south", "kind": kind, "a": number}
        grid = struct.pack("<16d", *range(number, number + 16))
        payload = grid if source in ON_GRIDS else json.dumps(record).encode()
        outcome = one.process(Event(event_id(1, number), float(number), 1.0, payload))
        assert outcome == other.process(Event(event_id(1, number), float(number), 1.0, payload))
        passed += len(outcome.outputs)
    assert passed


TREES = st.recursive(
    st.sampled_from(["level", "depth", "2", "0.5", "-3"]),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from("+-*/"), inner).map(lambda parts: f"({' '.join(parts)})"),
        st.tuples(st.sampled_from(["abs", "-"]), inner).map(lambda parts: f"{parts[0]}({parts[1]})"),
    ),
    max_leaves=12,
)


@settings(max_examples=100, deadline=None)
@given(TREES, st.integers(-5, 5), st.integers(-5, 5))
def test_arithmetic_is_pythons(source: str, level: int, depth: int) -> None:
    event = Event(event_id(1, 1), 0.0, 1.0, json.dumps({"level": level, "depth": depth}).encode())
    outputs = compile_modulator(translate(f"events.emit({source})")).process(event).outputs
    try:
        expected = [eval(source, {"__builtins__": {}}, {"level": float(level), "depth": float(depth), "abs": abs})]
    except ZeroDivisionError:
        expected = []
    assert [output.content for output in outputs] == pytest.approx(expected)


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=40).map(lambda text: f"events.{text}"))
def test_any_text_becomes_a_pipeline_or_is_refused(source: str) -> None:
    with contextlib.suppress(ConfigurationError):
        compile_modulator(translate(source))
