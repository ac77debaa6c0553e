"""What consumers might send to do harm: each is refused with a reason in one line, or stopped within its limits.

Modules that want more time, memory, output or access than they may have; broken and mutated binaries; expressions that
are too deep, too long or want Python itself. What counts is the sandbox's own account (instructions, bytes, outputs),
not the clock of the machine that runs this test.
"""

import struct
from pathlib import Path

import pytest
import wasmtime

from roamcast.errors import ConfigurationError
from roamcast.events import Event, event_id
from roamcast.protocols.modulation import Modulation
from roamcast.protocols.overlays.modulators import Outcome, compile_modulation, compile_modulator
from roamcast.protocols.overlays.modulators.dialect import translate
from roamcast.protocols.overlays.modulators.wasm import LIMITS, Sandbox
from roamcast.protocols.overlays.modulators.wasm_format import MODULE_BYTES_MAX, wasm_source
from roamcast.seeds import Random

EXAMPLE = (Path(__file__).parents[3] / "examples" / "modulators" / "moving_average.wasm").read_bytes()
EVENT = Event(event_id(1, 1), 0.0, 1.0, struct.pack("<id", 3, 4.0))

EMIT = '(import "roamcast" "emit" (func $emit (param f64 i32 i32)))'
READ = '(import "roamcast" "payload_read" (func $read (param i32 i32 i32)))'
INPUT = '(import "roamcast" "input_read" (func $input (param i32 i32 i32 i32)))'
TIME = '(import "roamcast" "time" (func $time (result f64)))'


def module(body: str, imports: str = "", more: str = "", pages: str = "1") -> str:
    return f'(module {imports} (memory (export "memory") {pages}) {more} (func $process (export "process") {body}))'


LOOP = "(loop $on {} (br $on))"
CASCADE = "".join(f"(func $f{n} (call $f{n - 1}) (call $f{n - 1}))" for n in range(1, 10))
CASCADE += f"(func $f0 {LOOP.format('')})"
COUNT = "(local.set $x (i64.add (local.get $x) (i64.const 1)))"
STATE = '(func (export "state") (result {0}) ({0}.const 0)) (func (export "state_size") (result i32) (i32.const 0))'
WHOLE = '(memory (export "memory") 1) (func (export "process")'
STOPPED = {
    "loop": module(LOOP.format("")),
    "loop that computes": module(
        "(local $x i64) " + LOOP.format("(local.set $x (i64.add (local.get $x) (i64.const 1)))")
    ),
    "recursion": module("(call $process)"),
    "mutual recursion": module("(call $other)", more="(func $other (call $process))"),
    "recursion with a large frame": module("(local i64 i64 i64 i64 i64 i64 i64 i64) (call $process)"),
    "exponential calls": module("(call $f9)", more=CASCADE),
    "unreachable": module("(unreachable)"),
    "division by zero": module("(drop (i32.div_u (i32.const 1) (i32.const 0)))"),
    "overflow": module("(drop (i32.trunc_f64_s (f64.const 1e300)))"),
    "read beyond memory": module("(drop (i32.load (i32.const 65536)))"),
    "read far beyond memory": module("(drop (i32.load offset=4294967295 (i32.const -1)))"),
    "write beyond memory": module("(i64.store (i32.const 65533) (i64.const 1))"),
    "wild call": module("(call_indirect (i32.const 7))", more="(table 1 funcref)"),
    "call of the wrong type": module(
        "(call_indirect (param i32) (i32.const 1) (i32.const 0))",
        more="(table 1 funcref) (elem (i32.const 0) $process)",
    ),
    "flood of outputs": module(LOOP.format("(call $emit (f64.const 1) (i32.const 0) (i32.const 0))"), EMIT),
    "outputs of 64 KiB": module("(call $emit (f64.const 1) (i32.const 0) (i32.const 65536))" * 3, EMIT),
    "output beyond memory": module("(call $emit (f64.const 1) (i32.const 65530) (i32.const 100))", EMIT),
    "output of negative length": module("(call $emit (f64.const 1) (i32.const 0) (i32.const -1))", EMIT),
    "output at a negative place": module("(call $emit (f64.const 1) (i32.const -8) (i32.const 4))", EMIT),
    "infinite content": module("(call $emit (f64.const inf) (i32.const 0) (i32.const 0))", EMIT),
    "immense content": module("(call $emit (f64.const -1e308) (i32.const 0) (i32.const 0))", EMIT),
    "payload beyond its end": module("(call $read (i32.const 0) (i32.const 0) (i32.const 13))", READ),
    "payload before its begin": module("(call $read (i32.const 0) (i32.const -4) (i32.const 4))", READ),
    "payload of negative length": module("(call $read (i32.const 0) (i32.const 8) (i32.const -1))", READ),
    "payload to no memory": module("(call $read (i32.const 65530) (i32.const 0) (i32.const 12))", READ),
    "input that is not there": module("(call $input (i32.const 9) (i32.const 0) (i32.const 0) (i32.const 1))", INPUT),
    "negative input": module("(call $input (i32.const -1) (i32.const 0) (i32.const 0) (i32.const 1))", INPUT),
    "flood of calls": module(LOOP.format("(drop (call $time))"), TIME),
    "flood of copies": module(LOOP.format("(call $read (i32.const 0) (i32.const 0) (i32.const 12))"), READ),
    "outputs, then a trap": module("(call $emit (f64.const 1) (i32.const 0) (i32.const 8)) (unreachable)", EMIT),
}
REFUSED = {
    "start that never ends": module("", more="(func $begin " + LOOP.format("") + ") (start $begin)"),
    "start that traps": module("", more="(func $begin (unreachable)) (start $begin)"),
    "start that calls out": module("", TIME, more="(func $begin (drop (call $time))) (start $begin)"),
    "start that reads an input": module(
        "", INPUT, more=f"(func $begin (call $input {'(i32.const 0)' * 4})) (start $begin)"
    ),
    "too much memory": module("", pages="17"),
    "all memory": module("", pages="65536"),
    "huge table": module("", more="(table 10000000 funcref)"),
    "two memories": '(module (memory (export "memory") 1) (memory 1) (func (export "process")))',
    "64-bit memory": '(module (memory (export "memory") i64 1) (func (export "process")))',
    "shared memory": '(module (memory (export "memory") 1 2 shared) (func (export "process")))',
    "no memory": '(module (func (export "process")))',
    "no process": '(module (memory (export "memory") 1))',
    "memory that is a function": '(module (func (export "memory")) (func (export "process")))',
    "process that is a memory": '(module (memory (export "memory") (export "process") 1))',
    "process with a parameter": '(module (memory (export "memory") 1) (func (export "process") (param i32)))',
    "process with a result": f"(module {WHOLE} (result i32) (i32.const 0)))",
    "state without a size": module("", more='(func (export "state") (result i32) (i32.const 0))'),
    "size without a state": module("", more='(func (export "state_size") (result i32) (i32.const 0))'),
    "state of the wrong type": module("", more=STATE.format("i64")),
    "files": module("", '(import "wasi_snapshot_preview1" "fd_write" (func (param i32 i32 i32 i32) (result i32)))'),
    "clock": module("", '(import "wasi_snapshot_preview1" "clock_time_get" (func (param i32 i64 i32) (result i32)))'),
    "randomness": module("", '(import "wasi_snapshot_preview1" "random_get" (func (param i32 i32) (result i32)))'),
    "environment": module("", '(import "env" "system" (func (param i32) (result i32)))'),
    "unknown import": module("", '(import "roamcast" "publish" (func (param f64)))'),
    "import of another type": module("", '(import "roamcast" "emit" (func (param i32)))'),
    "imported memory": '(module (import "roamcast" "memory" (memory 1)) (func (export "process")))',
    "imported table": f'(module (import "roamcast" "t" (table 1 funcref)) {WHOLE}))',
    "imported global": f'(module (import "roamcast" "g" (global i32)) {WHOLE}))',
    "many imports": module("", "".join(f'(import "roamcast" "time" (func $t{n} (result f64)))' for n in range(40))),
    "many functions": module("", more="(func)" * 300),
    "many types": module("", more="".join(f"(type (func (param {'i32 ' * n})))" for n in range(1, 260))),
    "locals without end": module("(local " + "i64 " * 3000 + ")"),
    "locals in many functions": module("", more=("(func (local " + "i64 " * 20 + "))") * 200),
    "filling memory at once": module("(memory.fill (i32.const 0) (i32.const 1) (i32.const 65536))"),
    "copying memory at once": module("(memory.copy (i32.const 0) (i32.const 1) (i32.const 65000))"),
    "vectors": module("(drop (v128.const i64x2 0 0))"),
    "tail calls": module("(return_call $process)"),
    "data beyond memory": module("", more='(data (i32.const 65535) "xxxx")'),
    "element beyond its table": module("", more="(table 1 funcref) (elem (i32.const 5) $process)"),
    "garbage collection": '(module (type (array i8)) (memory (export "memory") 1) (func (export "process")))',
}


def judged(binary: bytes) -> str:
    """Tries a module on one event. Returns why it was refused or stopped, empty if it ran; checks the limits."""
    try:
        sandbox = compile_modulation(Modulation(wasm_source(binary)))
    except ConfigurationError as error:
        return one_line(error)
    assert isinstance(sandbox, Sandbox)
    outcome = sandbox.process(EVENT)
    check_limits(sandbox, outcome)
    assert len(sandbox.state()) <= LIMITS.state_bytes + 4
    return outcome.failure


def one_line(error: ConfigurationError) -> str:
    text = str(error)
    assert "\n" not in text
    assert text.startswith("modulator: ")
    return text


def check_limits(sandbox: Sandbox, outcome: Outcome) -> None:
    assert sandbox.cost_s(EVENT) <= LIMITS.fuel * LIMITS.fuel_s
    assert sandbox._memory.data_len(sandbox._store) <= LIMITS.memory_bytes
    assert len(outcome.outputs) <= LIMITS.outputs
    assert sum(len(output.payload) for output in outcome.outputs) <= LIMITS.output_bytes
    if outcome.failure:
        assert outcome.outputs == ()
        assert "\n" not in outcome.failure


@pytest.mark.parametrize("name", STOPPED)
def test_a_module_that_goes_too_far_is_stopped(name: str) -> None:
    assert judged(bytes(wasmtime.wat2wasm(STOPPED[name]))).startswith("modulator: WebAssembly: ")


@pytest.mark.parametrize("name", REFUSED)
def test_a_module_that_may_not_be_is_refused(name: str) -> None:
    with pytest.raises(ConfigurationError, match="modulator: "):
        compile_modulation(Modulation(wasm_source(bytes(wasmtime.wat2wasm(REFUSED[name])))))


def test_memory_does_not_grow_beyond_its_limit() -> None:
    text = module(LOOP.format("(drop (memory.grow (i32.const 1)))"))
    assert "fuel" in judged(bytes(wasmtime.wat2wasm(text)))


STATES = {
    "large": ("(i32.const 0)", "(i32.const 65537)"),
    "negative": ("(i32.const 0)", "(i32.const -1)"),
    "elsewhere": ("(i32.const 65000)", "(i32.const 1000)"),
    "before": ("(i32.const -8)", "(i32.const 8)"),
    "endless": (f"{LOOP.format('')} (unreachable)", "(i32.const 8)"),
    "trapped": ("(i32.const 0)", "(unreachable)"),
}


@pytest.mark.parametrize("name", STATES)
def test_a_state_that_cannot_be_taken_along_is_left_behind(name: str) -> None:
    begin, size = STATES[name]
    more = f'(func (export "state") (result i32) {begin}) (func (export "state_size") (result i32) {size})'
    sandbox = compile_modulation(Modulation(wasm_source(bytes(wasmtime.wat2wasm(module("", more=more))))))
    assert sandbox.state() == b""


TRUNCATIONS = range(0, 320, 5)  # behind that are only names
MUTATIONS = range(200)


@pytest.mark.parametrize("length", TRUNCATIONS)
def test_a_module_that_is_cut_off_is_refused(length: int) -> None:
    assert judged(EXAMPLE[:length])


def test_mutated_modules_are_refused_or_keep_to_their_limits() -> None:
    refused = 0
    for seed in MUTATIONS:
        random = Random(seed)
        mutated = bytearray(EXAMPLE)
        for _ in range(1 + seed % 4):
            mutated[random.randrange(8, len(mutated))] = random.randrange(256)
        refused += bool(judged(bytes(mutated)))
    assert refused > len(MUTATIONS) // 2


def test_a_bomb_of_locals_is_refused_before_it_is_compiled() -> None:
    """Forty functions of 50 000 local variables each, in a few hundred bytes."""
    types, bodies = b"\x01\x60\x00\x00", b""
    for _ in range(40):
        body = b"\x01\xd0\x86\x03\x7e\x0b"  # one group: 50000 of i64; end
        bodies += bytes([len(body)]) + body
    sections = bytes([1, len(types)]) + types + bytes([3, 41, 40]) + bytes(40)
    code = bytes([40]) + bodies
    sections += bytes([10, len(code) & 0x7F | 0x80, len(code) >> 7]) + code
    with pytest.raises(ConfigurationError, match="50000 local variables"):
        wasm_source(b"\0asm\1\0\0\0" + sections)


def test_a_large_module_is_refused_unread() -> None:
    with pytest.raises(ConfigurationError, match=f"at most {MODULE_BYTES_MAX}"):
        wasm_source(b"\0asm\1\0\0\0" + bytes(MODULE_BYTES_MAX))


PYTHON = [
    "events",
    "events.",
    "events.where",
    "events.where()",
    "events.where(1, 2)",
    "events.where(**{})",
    "events.where(*[1])",
    "events.explode(1)",
    "events.where(level > 2)[0]",
    "events.where(level > 2); events",
    "events.where(__import__('os').system('id'))",
    "events.where(open('/etc/passwd'))",
    "events.where(eval('1'))",
    "events.where(exec)(1)",
    "events.where(level.__class__)",
    "events.where(().__class__.__bases__[0])",
    "events.where(lambda: 1)",
    "events.where([x for x in y])",
    "events.where({1: 2})",
    "events.where({1, 2})",
    "events.where((yield))",
    "events.where(await level)",
    "events.where(level := 2)",
    "events.where(f'{level}')",
    "events.where(1 if level else 2)",
    "events.where(level is None)",
    "events.where(level in [1, 2] is True)",
    "events.where(level ** 1000000)",
    "events.where(level << 100)",
    "events.where(~level)",
    "events.where(level @ level)",
    "events.where(level // 2)",
    "events.where(level & 1)",
    "events.where(1j)",
    "events.where(b'bytes')",
    "events.where(...)",
    "events.where(10 ** 10 ** 10)",
    "events.where(" + "9" * 400 + ")",
    "events.where('\"')",
    "events.where('a\" or \"b' == 1)",
    "events.where(abs)(1)",
    "events.where(abs(1, 2))",
    "events.where(abs(x=1))",
    "events.where(events)",
    "events.where(level).where(" + "(" * 250 + "1" + ")" * 250 + ")",
    "events.where(" + "-" * 1500 + "1)",
    "events.where(" + "not " * 300 + "1)",
    "events.where(" + "abs(" * 90 + "1" + ")" * 90 + ")",
    "events.where(" + "+".join(["1"] * 600) + ")",
    "events" + ".every(2)" * 40,
    "events.every(2.5)",
    "events.every(-1)",
    "events.every(level)",
    "events.average(level)",
    "events.average(level, last=10**9)",
    "events.average(level, last=5, by=station, into='a b')",
    "events.select()",
    "events.select('a b')",
    "events.select(1)",
    "events.put()",
    "events.crop(columns=10, box=5)",
    "events.crop(columns=10, box=(0, 0, 99, 99))",
    "events.measure('median')",
    "events.runoff(columns=100, terrain=missing, seconds=60, steps=10)",
    "events.work(1e9)",
    "events.where(\0)",
    "events.where(\n\n)",
    "events.where(левел > 2)",
    "events.where('x' * 10**9)",
    "x" * 5000,
]
PIPELINES = [
    "",
    "filter",
    "filter(",
    "filter()",
    "filter(1))",
    "filter(1) |",
    "| filter(1)",
    "filter(1) filter(1)",
    "filter(1) | explode(1)",
    "filter(__import__)()",
    "filter(" + "(" * 33 + "1" + ")" * 33 + ")",
    "filter(" + "1+" * 300 + "1)",
    "filter(" + "9" * 2100 + ")",
    " | ".join(["sample(2)"] * 17),
    "sample(0)",
    "sample(1000001)",
    "sample(1e3)",
    "sample(-1)",
    "work(61)",
    "work(1e400)",
    "moving(mean, content, 1001)",
    "batch(mean, content, 0)",
    "within(mean, content, 1e99)",
    "stencil(5000, 1, 1, 1, 1)",
    "stencil(5, 1000, 1, 1, 1)",
    "runoff(100, plane, 60, 1000)",
    "runoff(4096, plane, 60, 1)",
    "downsample(0, 1, mean)",
    "crop(10, 5, 5, 5, 9)",
    "crop(10, 0, 0, 99999999999, 1)",
    "combine(add, /etc/passwd)",
    "assign(1, 2)",
    "project()",
    'filter("unfinished)',
    "filter(a.b)",
    "filter(a[0])",
    "filter(a; b)",
    "filter(`id`)",
    "filter(\x00)",
    "filter(\u202e1)",
]


@pytest.mark.parametrize("source", PYTHON)
def test_a_hostile_python_expression_is_refused(source: str) -> None:
    with pytest.raises(ConfigurationError) as refusal:
        compile_modulator(translate(source))
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("source", PIPELINES)
def test_a_hostile_pipeline_is_refused(source: str) -> None:
    with pytest.raises(ConfigurationError) as refusal:
        compile_modulator(source)
    assert "\n" not in str(refusal.value)


def test_there_are_enough_of_them() -> None:
    modules = len(STOPPED) + len(REFUSED) + len(STATES) + len(TRUNCATIONS) + len(MUTATIONS)
    assert modules >= 200
    assert modules + len(PYTHON) + len(PIPELINES) >= 350
