"""Opportunistic Overlays: a broker network and home brokers that follow the nodes."""

from roamcast.protocols.overlays.overlays import Overlays
from roamcast.protocols.overlays.parameters import OverlaysParameters

__all__ = ["Overlays", "OverlaysParameters"]
