"""Test tools, for our own tests and for those of whoever writes a protocol: `TinyNet` and what goes with it."""

from roamcast.testing.courier import Courier, Note
from roamcast.testing.host import Guest, Node
from roamcast.testing.links import Link, grid, line, ring
from roamcast.testing.tinynet import TinyNet
from roamcast.testing.transcript import Delivery, Record, describe

__all__ = [
    "Courier",
    "Delivery",
    "Guest",
    "Link",
    "Node",
    "Note",
    "Record",
    "TinyNet",
    "describe",
    "grid",
    "line",
    "ring",
]
