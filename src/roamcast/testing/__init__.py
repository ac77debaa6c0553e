"""Test tools, for our own tests and for those of protocol authors: `TinyNet` and its parts."""

from roamcast.testing.courier import Courier, Note
from roamcast.testing.host import Guest, Node
from roamcast.testing.links import Link, grid, line, ring
from roamcast.testing.tinynet import TinyNet
from roamcast.testing.transcript import Delivery, TranscriptLine, describe

__all__ = [
    "Courier",
    "Delivery",
    "Guest",
    "Link",
    "Node",
    "Note",
    "TinyNet",
    "TranscriptLine",
    "describe",
    "grid",
    "line",
    "ring",
]
