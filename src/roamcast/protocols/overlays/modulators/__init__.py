"""Modulators: what a consumer has a broker do to its events before they are sent [2.1, 3.1]."""

from roamcast.protocols.overlays.modulators.api import Modulator, Outcome
from roamcast.protocols.overlays.modulators.languages import check_modulation, compile_modulation
from roamcast.protocols.overlays.modulators.pipeline import compile_modulator

__all__ = ["Modulator", "Outcome", "check_modulation", "compile_modulation", "compile_modulator"]
