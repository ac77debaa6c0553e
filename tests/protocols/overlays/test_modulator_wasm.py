"""Modulators in WebAssembly: the kit's example, what travels, and what every import does."""

import math
import struct
from pathlib import Path

import pytest
import wasmtime

from roamcast.errors import ConfigurationError, PeerError
from roamcast.events import Event, event_id
from roamcast.protocols.modulation import Modulation
from roamcast.protocols.overlays.modulators import Modulator, compile_modulation
from roamcast.protocols.overlays.modulators.wasm_format import wasm_source

KIT = Path(__file__).parents[3] / "examples" / "modulators"


def assembled(text: str, inputs: dict[str, bytes] | None = None) -> Modulator:
    source = wasm_source(bytes(wasmtime.wat2wasm(text)))
    return compile_modulation(Modulation(source, tuple((inputs or {}).items())))


def reading(number: int, station: int, level: float) -> Event:
    return Event(event_id(1, number), 5.0, "water", struct.pack("<id", station, level))


def test_the_binary_of_the_kit_is_made_of_its_source() -> None:
    source = (KIT / "moving_average.wat").read_text(encoding="utf-8")
    assert bytes(wasmtime.wat2wasm(source)) == (KIT / "moving_average.wasm").read_bytes()


def test_a_moving_average_per_station_whose_state_travels() -> None:
    source = wasm_source((KIT / "moving_average.wasm").read_bytes())
    levels = [(number % 3, float(number * number % 17)) for number in range(60)]
    expected = []
    for at, (here, _) in enumerate(levels):
        recent = [level for station, level in levels[: at + 1] if station == here][-8:]
        expected.append(math.fsum(recent) / len(recent))
    modulator = compile_modulation(Modulation(source))
    found = []
    for number, (station, level) in enumerate(levels, 1):
        (output,) = modulator.process(reading(number, station, level)).outputs
        assert output.payload == struct.pack("<i", station)
        found.append(output.content)
        if number % 7 == 0:
            another = compile_modulation(Modulation(source))
            another.restore(modulator.state())
            modulator = another
    assert found == pytest.approx(expected)


ECHO = """(module
  (import "roamcast" "content" (func $content (result f64)))
  (import "roamcast" "time" (func $time (result f64)))
  (import "roamcast" "publisher" (func $publisher (result i64)))
  (import "roamcast" "number" (func $number (result i64)))
  (import "roamcast" "text_size" (func $text_size (result i32)))
  (import "roamcast" "text_read" (func $text_read (param i32)))
  (import "roamcast" "input_size" (func $input_size (param i32) (result i32)))
  (import "roamcast" "input_read" (func $input_read (param i32 i32 i32 i32)))
  (import "roamcast" "emit" (func $emit (param f64 i32 i32)))
  (import "roamcast" "keep" (func $keep))
  (memory (export "memory") 1)
  (func (export "process")
    (f64.store (i32.const 0) (call $content))
    (f64.store (i32.const 8) (call $time))
    (i64.store (i32.const 16) (call $publisher))
    (i64.store (i32.const 24) (call $number))
    (call $text_read (i32.const 32))
    (call $emit (f64.const nan) (i32.const 32) (call $text_size))
    (call $input_read (i32.const 1) (i32.const 64) (i32.const 1) (i32.const 2))
    (call $emit (f64.convert_i32_s (call $input_size (i32.const 1))) (i32.const 0) (i32.const 66))
    (call $keep)))"""


def test_every_import_does_what_the_table_says() -> None:
    modulator = assembled(ECHO, {"a": b"first", "b": b"xyz"})
    outcome = modulator.process(reading(9, 1, 2.0))
    text, numbers = outcome.outputs
    assert (text.content, text.payload, outcome.is_kept, outcome.failure) == ("water", b"water", True, "")
    assert numbers.content == 3.0
    content, time_s, publisher, number = struct.unpack("<ddqq", numbers.payload[:32])
    assert (math.isnan(content), time_s, publisher, number) == (True, 5.0, 1, 9)
    assert numbers.payload[64:] == b"yz"
    assert modulator.cost_s(reading(9, 1, 2.0)) > 0


def test_a_module_without_state_starts_afresh_and_a_state_that_does_not_fit_is_refused() -> None:
    modulator = assembled(ECHO)
    assert modulator.state() == b""
    modulator.restore(b"")
    with pytest.raises(PeerError, match="another size"):
        modulator.restore(bytes(10))
    average = compile_modulation(Modulation(wasm_source((KIT / "moving_average.wasm").read_bytes())))
    for state in (bytes(3), bytes(100), (10**6).to_bytes(4, "little") + average.state()[4:], average.state()[:-1]):
        with pytest.raises(PeerError):
            average.restore(state)


def test_memory_that_has_grown_is_there_after_a_move() -> None:
    text = """(module
      (import "roamcast" "emit" (func $emit (param f64 i32 i32)))
      (memory (export "memory") 1)
      (func (export "state") (result i32) (i32.const 65536))
      (func (export "state_size") (result i32)
        (if (result i32) (i32.gt_u (memory.size) (i32.const 1)) (then (i32.const 8)) (else (i32.const 0))))
      (func (export "process")
        (if (i32.eq (memory.size) (i32.const 1)) (then (drop (memory.grow (i32.const 1)))))
        (f64.store (i32.const 65536) (f64.add (f64.const 1) (f64.load (i32.const 65536))))
        (call $emit (f64.load (i32.const 65536)) (i32.const 0) (i32.const 0))))"""
    one, other = assembled(text), assembled(text)
    for number in (1, 2):
        one.process(reading(number, 1, 1.0))
    other.restore(one.state())
    assert other.process(reading(3, 1, 1.0)).outputs[0].content == 3.0


def test_a_source_must_be_a_module_in_base64() -> None:
    for source in ("wasm:", "wasm:!!!", "wasm:AAAA"):
        with pytest.raises(ConfigurationError, match="modulator: "):
            compile_modulation(Modulation(source))
