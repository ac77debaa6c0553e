"""Test tools, for our own tests and for those of protocol authors: `TinyNet` and its parts."""

from roamcast.testing.courier import Courier, Note
from roamcast.testing.host import Guest, TestHost
from roamcast.testing.links import Link, grid, line, ring
from roamcast.testing.tinynet import TinyNet
from roamcast.testing.transcript import RecordedDelivery, TranscriptLine, describe

__all__ = [
    "Courier",
    "Guest",
    "Link",
    "Note",
    "RecordedDelivery",
    "TestHost",
    "TinyNet",
    "TranscriptLine",
    "describe",
    "grid",
    "line",
    "ring",
]
