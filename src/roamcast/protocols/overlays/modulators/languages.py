"""The languages in which modulators are written.

| source begins with | language |
|---|---|
| the name of an operator | a pipeline of operators (`pipeline`, `operators`) |
"""

from roamcast.protocols.modulation import Modulation
from roamcast.protocols.overlays.modulators.api import Modulator
from roamcast.protocols.overlays.modulators.pipeline import compile_modulator


def compile_modulation(modulation: Modulation) -> Modulator:
    """The modulator that is described, with no memory yet; `ConfigurationError` if there is none, or it cannot run."""
    return compile_modulator(modulation.source)
