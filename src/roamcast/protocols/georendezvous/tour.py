"""The memory of a packet that walks around a face; see `steering.py`."""

from typing import Annotated

import msgspec
from msgspec import Meta

from roamcast.protocols.georendezvous.cells import Vertex


class Tour(msgspec.Struct, frozen=True, array_like=True):
    """Where a packet is on its way around a face."""

    start: Vertex  # the local minimum where it began
    previous: Vertex  # the last step came from here
    marked: tuple[Vertex, Vertex]  # an edge of the tour; to take it again is to go in circles
    steps: Annotated[int, Meta(ge=1, lt=2**16)]

    def onward(self, here: Vertex, step: Vertex) -> "Tour":
        """As the packet goes from `here` to `step`."""
        doubled = self.steps & (self.steps - 1) == 0
        return Tour(self.start, here, (here, step) if doubled else self.marked, self.steps + 1)
