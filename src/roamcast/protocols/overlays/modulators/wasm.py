"""Modulators as WebAssembly: any function that a consumer can compile, in a sandbox.

The source is `wasm:` and the binary in base64. The module exports

| export | meaning |
|---|---|
| `memory` | its memory |
| `process: () -> ()` | takes one event: reads it and emits what shall be delivered |
| `state: () -> i32`, `state_size: () -> i32` | optional: the stretch of memory that travels on relocation |

and may import these functions from `roamcast`, and nothing else:

| import | meaning |
|---|---|
| `content: () -> f64` | the event's content; NaN if it is a text |
| `time: () -> f64` | when it was published, s |
| `publisher: () -> i64`, `number: () -> i64` | who published it, and the how-manieth of its publisher it is |
| `text_size: () -> i32`, `text_read: (at) -> ()` | the content if it is a text, UTF-8 |
| `payload_size: () -> i32`, `payload_read: (at, from, length) -> ()` | the payload, copied to memory at `at` |
| `input_size: (index) -> i32`, `input_read: (index, at, from, length) -> ()` | static data, in the order of its names |
| `emit: (content: f64, at, length) -> ()` | delivers an event: this content (NaN: as it was), this payload |
| `keep: () -> ()` | the event may contribute to a later output: it is held until then |

**Limits** (`SandboxLimits`): instructions per event, memory, outputs, their bytes, calls of imports. A module that
exceeds one, or traps, is stopped, and its consumer is told why. There is no clock, no randomness and no file in reach;
floats are canonical, so a module computes the same everywhere. `wasm_format` bounds what compiling takes.

This module is not compiled with mypyc: it is loaded by name only where a module arrives, so that a node without
`wasmtime` (`pip install 'roamcast[wasm]'`) refuses such modulators and runs all others.
"""

import math
from collections.abc import Callable
from typing import Any

import msgspec
import wasmtime
from msgspec.structs import replace

from roamcast.errors import ConfigurationError, PeerError
from roamcast.events import Event
from roamcast.protocols.overlays.modulators.api import Modulator, Outcome
from roamcast.protocols.overlays.modulators.wasm_format import IMPORTS_FROM, wasm_binary

PAGE_BYTES = 65_536


class SandboxLimits(msgspec.Struct, frozen=True):
    """What a module may use."""

    fuel: int = 20_000_000  # instructions per event
    memory_bytes: int = 16 * PAGE_BYTES
    table_elements: int = 256
    outputs: int = 16  # per event
    output_bytes: int = 131_072  # per event
    calls: int = 4096  # of imports, per event
    copied_bytes: int = 4 * 1024 * 1024  # by imports, per event
    state_bytes: int = 65_536
    fuel_s: float = 1e-9  # CPU time of an instruction, where it cannot be measured


LIMITS = SandboxLimits()
FEATURES_OFF = (
    *("threads", "relaxed_simd", "simd", "memory64", "multi_memory", "exceptions", "tail_call", "gc"),
    *("function_references", "bulk_memory"),
)
"""Features that are switched off: fuel does not bound them (one bulk instruction fills all memory), or nothing needs
them."""

_I32, _I64, _F64 = wasmtime.ValType.i32(), wasmtime.ValType.i64(), wasmtime.ValType.f64()


class ExceededError(Exception):
    """A module went beyond a limit."""


def _engine() -> wasmtime.Engine:
    config = wasmtime.Config()
    config.consume_fuel = True
    config.cranelift_nan_canonicalization = True
    config.cranelift_opt_level = "none"  # compiling must be quick, whatever is compiled
    config.parallel_compilation = False
    config.max_wasm_stack = 256 * 1024
    for feature in FEATURES_OFF:
        setattr(config, f"wasm_{feature}", False)
    return wasmtime.Engine(config)


_ENGINE: list[wasmtime.Engine] = []  # made when it is first needed


class Sandbox(Modulator):
    """One module with its memory."""

    def __init__(self, binary: bytes, inputs: list[bytes], limits: SandboxLimits = LIMITS) -> None:
        self._limits = limits
        self._inputs = inputs
        self._event: Event | None = None
        self._fuel_used = 0
        self._is_whole = False  # it has started
        self._begin(None)
        if not _ENGINE:
            _ENGINE.append(_engine())
        self._store = wasmtime.Store(_ENGINE[0])
        self._store.set_limits(
            memory_size=limits.memory_bytes, table_elements=limits.table_elements, instances=1, tables=1, memories=1
        )
        try:
            module = wasmtime.Module(_ENGINE[0], binary)
            self._store.set_fuel(limits.fuel)
            exports = self._linker().instantiate(self._store, module).exports(self._store)
        except (wasmtime.WasmtimeError, wasmtime.Trap, ExceededError) as error:
            raise ConfigurationError(f"modulator: WebAssembly: {_one_line(error)}") from None
        self._is_whole = True
        self._memory = _export(exports, "memory", wasmtime.Memory)
        self._process = self._function(exports, "process", [])
        self._state = self._size = None
        if "state" in exports or "state_size" in exports:
            self._state = self._function(exports, "state", [_I32])
            self._size = self._function(exports, "state_size", [_I32])

    # -- What a broker asks ----------------------------------------------------------------------------------------

    def process(self, event: Event) -> Outcome:
        self._begin(event)
        try:
            self._call(self._process)
        except (wasmtime.WasmtimeError, wasmtime.Trap, ExceededError) as error:
            return Outcome((), failure=f"modulator: WebAssembly: {_one_line(error)}")
        return Outcome(tuple(self._outputs), self._is_kept)

    def cost_s(self, event: Event) -> float:
        return self._fuel_used * self._limits.fuel_s

    def state(self) -> bytes:
        """The size of the memory in pages, and the stretch that the module wants to keep; empty if there is none."""
        try:
            stretch = self._stretch()
            kept = b"" if stretch is None else bytes(self._memory.read(self._store, *stretch))
        except (wasmtime.WasmtimeError, wasmtime.Trap, ExceededError):
            return b""
        return b"" if stretch is None else self._memory.size(self._store).to_bytes(4, "little") + kept

    def restore(self, state: bytes) -> None:
        if not state:
            return
        pages, kept = int.from_bytes(state[:4], "little"), state[4:]
        try:
            missing = pages - self._memory.size(self._store)
            if missing > self._limits.memory_bytes // PAGE_BYTES:
                raise ExceededError(f"{pages} pages")
            if missing > 0:
                self._memory.grow(self._store, missing)
            stretch = self._stretch()
            if stretch is None or stretch[1] - stretch[0] != len(kept):
                raise ExceededError("another size than the module says")
            self._memory.write(self._store, kept, stretch[0])
        except (wasmtime.WasmtimeError, wasmtime.Trap, ExceededError) as error:
            raise PeerError(f"modulator: its state cannot be restored: {_one_line(error)}") from None

    # -- Calls into the module -------------------------------------------------------------------------------------

    def _begin(self, event: Event | None) -> None:
        self._event = event
        self._outputs: list[Event] = []
        self._output_bytes = 0
        self._is_kept = False
        self._calls = 0
        self._copied_bytes = 0

    def _call(self, function: wasmtime.Func) -> Any:
        self._store.set_fuel(self._limits.fuel)
        try:
            return function(self._store)
        finally:
            self._fuel_used = self._limits.fuel - self._store.get_fuel()

    def _stretch(self) -> tuple[int, int] | None:
        """Where the state begins and ends; None if there is none."""
        if self._state is None or self._size is None:
            return None
        begin, size = self._call(self._state), self._call(self._size)
        if not 0 <= size <= self._limits.state_bytes:
            raise ExceededError(f"a state of {size} bytes; allowed: at most {self._limits.state_bytes}")
        self._require_room(begin, size)
        return begin, begin + size

    def _function(self, exports: Any, name: str, results: list[Any]) -> wasmtime.Func:
        function: wasmtime.Func = _export(exports, name, wasmtime.Func)
        kind = function.type(self._store)
        if kind.params or [str(result) for result in kind.results] != [str(result) for result in results]:
            raise ConfigurationError(f"modulator: WebAssembly: {name} has the wrong parameters or results")
        return function

    # -- What the module may call ----------------------------------------------------------------------------------

    def _linker(self) -> wasmtime.Linker:
        linker = wasmtime.Linker(_ENGINE[0])
        reading = [_I32, _I32, _I32]
        for name, parameters, results, function in (
            ("content", [], [_F64], self._content),
            ("time", [], [_F64], lambda: self._current().time_s),
            ("publisher", [], [_I64], lambda: self._current().publisher),
            ("number", [], [_I64], lambda: self._current().number),
            ("text_size", [], [_I32], lambda: len(self._text())),
            ("text_read", [_I32], [], lambda at: self._write(at, self._text())),
            ("payload_size", [], [_I32], lambda: len(self._current().payload)),
            ("payload_read", reading, [], lambda *where: self._copy(self._current().payload, *where)),
            ("input_size", [_I32], [_I32], lambda index: len(self._input(index))),
            ("input_read", [_I32, *reading], [], lambda index, *where: self._copy(self._input(index), *where)),
            ("emit", [_F64, _I32, _I32], [], self._emit),
            ("keep", [], [], self._keep),
        ):
            kind = wasmtime.FuncType(parameters, results)
            linker.define_func(IMPORTS_FROM, name, kind, self._counted(function))
        return linker

    def _counted(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            if not self._is_whole:
                raise ExceededError("calls an import while it starts")
            self._calls += 1
            if self._calls > self._limits.calls:
                raise ExceededError(f"more than {self._limits.calls} calls of imports")
            return function(*arguments)

        return call

    def _current(self) -> Event:
        if self._event is None:
            raise ExceededError("there is no event yet")
        return self._event

    def _content(self) -> float:
        content = self._current().content
        return math.nan if isinstance(content, str) else float(content)

    def _text(self) -> bytes:
        content = self._current().content
        return content.encode() if isinstance(content, str) else b""

    def _input(self, index: int) -> bytes:
        return self._inputs[index] if 0 <= index < len(self._inputs) else b""

    def _copy(self, data: bytes, at: int, begin: int, length: int) -> None:
        if begin < 0 or length < 0 or begin + length > len(data):
            raise ExceededError(f"reads {length} bytes from {begin} of {len(data)}")
        self._write(at, data[begin : begin + length])

    def _write(self, at: int, data: bytes) -> None:
        self._copied_bytes += len(data)
        if self._copied_bytes > self._limits.copied_bytes:
            raise ExceededError(f"copies more than {self._limits.copied_bytes} bytes")
        self._require_room(at, len(data))
        self._memory.write(self._store, data, at)

    def _emit(self, content: float, at: int, length: int) -> None:
        event = self._current()
        self._require_room(at, length)
        self._output_bytes += length
        if len(self._outputs) >= self._limits.outputs or self._output_bytes > self._limits.output_bytes:
            most = f"{self._limits.outputs} outputs and {self._limits.output_bytes} bytes"
            raise ExceededError(f"emits more than {most} for one event")
        payload = bytes(self._memory.read(self._store, at, at + length))
        if math.isnan(content):
            self._outputs.append(replace(event, payload=payload, signature=None))
        elif abs(content) <= 1e300:
            self._outputs.append(replace(event, content=content, payload=payload, signature=None))
        else:
            raise ExceededError("emits a content that is not finite")

    def _keep(self) -> None:
        self._is_kept = True

    def _require_room(self, at: int, length: int) -> None:
        if at < 0 or length < 0 or at + length > self._memory.data_len(self._store):
            raise ExceededError(f"{length} bytes at {at} are not in its memory")


def compile_wasm(source: str, inputs: dict[str, bytes]) -> Sandbox:
    return Sandbox(wasm_binary(source), [inputs[name] for name in sorted(inputs)])


def _export(exports: Any, name: str, kind: type[Any]) -> Any:
    found = exports.get(name)
    if not isinstance(found, kind):
        raise ConfigurationError(f"modulator: WebAssembly: exports no {kind.__name__.lower()} named {name}")
    return found


def _one_line(error: Exception) -> str:
    """The reason, without the backtrace."""
    text = str(error)
    for known in ("all fuel consumed by WebAssembly", "call stack exhausted", "memory minimum size", "table minimum"):
        if known in text:
            return known
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    causes = [line for line in lines if line.startswith("wasm trap:") or "0: wasm trap:" in line]
    return (causes or lines or ["it failed"])[-1 if causes else 0][:200]
