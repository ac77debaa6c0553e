"""Places as they travel, and the memory of a packet that walks around a face; see `steering.py`."""

from typing import Annotated

import msgspec
from msgspec import Meta

Coordinate = Annotated[int, Meta(ge=-(2**31), lt=2**31)]

Place = tuple[Coordinate, Coordinate]
"""A vertex or a cell in a frame. Whole numbers only, so no peer can send one that is not finite."""


class Tour(msgspec.Struct, frozen=True, array_like=True):
    """Where a packet is on its walk around a face."""

    start: Place  # the local minimum where it began
    previous: Place  # the last step came from here
    marked: tuple[Place, Place]  # an edge of the tour; taking it again means that the packet goes in circles
    steps: Annotated[int, Meta(ge=1, lt=2**16)]

    def onward(self, here: Place, step: Place) -> "Tour":
        """As the packet goes from `here` to `step`."""
        doubled = self.steps & (self.steps - 1) == 0
        return Tour(self.start, here, (here, step) if doubled else self.marked, min(self.steps + 1, 2**16 - 1))
