"""The languages in which modulators are written.

| source begins with | language |
|---|---|
| the name of an operator | a pipeline of operators (`pipeline`, `operators`, `windows`, `grids`) |
| `wasm:` | a WebAssembly module in base64 (`wasm`) |

A third, Python expressions (`dialect`), becomes a pipeline before it travels.
"""

from importlib import import_module

from roamcast.errors import ConfigurationError
from roamcast.protocols.modulation import Modulation
from roamcast.protocols.overlays.modulators.api import Modulator
from roamcast.protocols.overlays.modulators.pipeline import compile_modulator
from roamcast.protocols.overlays.modulators.wasm_format import MARK, wasm_binary


def compile_modulation(modulation: Modulation) -> Modulator:
    """The modulator that is described, with no memory yet; `ConfigurationError` if there is none, or it cannot run."""
    inputs = dict(modulation.inputs)
    if not modulation.source.startswith(MARK):
        return compile_modulator(modulation.source, inputs)
    try:  # by name: neither mypyc nor a node without the extra gets to see wasmtime
        wasm = import_module("roamcast.protocols.overlays.modulators.wasm")
    except ModuleNotFoundError:
        raise ConfigurationError("modulator: this node runs no WebAssembly; pip install 'roamcast[wasm]'") from None
    modulator: Modulator = wasm.compile_wasm(modulation.source, inputs)
    return modulator


def check_modulation(modulation: Modulation) -> None:
    """Refuses what no broker would take, as far as a consumer can tell."""
    if modulation.source.startswith(MARK):
        wasm_binary(modulation.source)
    elif modulation.source:
        compile_modulator(modulation.source, dict(modulation.inputs))
