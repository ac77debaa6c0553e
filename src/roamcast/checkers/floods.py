"""Invariants of floods, read from the frames on the air."""

from roamcast.checkers.watch import InvariantError
from roamcast.protocols.api import NOBODY
from roamcast.world.processing import carried
from roamcast.world.radio.medium import Frame
from roamcast.world.simulator import Simulation


class SentOnce:
    """Every node sends every event at most once in each of its lives. Nodes that have crashed are left out."""

    def __init__(self, simulation: Simulation, crashing: set[int]) -> None:
        self._crashing = crashing
        self._sent: set[tuple[int, int]] = set()
        self._again: tuple[int, int] | None = None
        simulation.watch_frames(self._note)

    def _note(self, frame: Frame) -> None:
        event = carried(frame.message)
        if event is None or frame.receiver != NOBODY or frame.sender in self._crashing:
            return
        key = frame.sender, event.id
        if key in self._sent:
            self._again = key
        self._sent.add(key)

    def __call__(self, simulation: Simulation) -> None:
        if self._again is not None:
            raise InvariantError(f"{self._again[0]} sent event {self._again[1]} twice")
