"""Incidents of frames: what goes wrong with them on their way out of a machine, or into one.

They are the simulator's (`world/incident.py`), one layer lower: there they strike messages, here frames, so
acknowledgements and retransmissions of the link are struck, too. A damaged frame is dropped, as a network card does.
"""

from random import Random
from typing import Final

from roamcast.world.incident import Incident

KINDS: Final = ("delay", "reorder", "duplicate", "corrupt", "overflow")
AGAIN_S: Final = 0.01  # after which a duplicate follows at the latest
OVERTAKEN_EVERY: Final = 3  # frames


class Disturbances:
    """Those that last at present, by machine."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._present: dict[int, list[Incident]] = {}
        self._frames = 0
        self.count = 0  # frames that were struck

    def begin(self, incident: Incident) -> None:
        self._present.setdefault(incident.node, []).append(incident)

    def end(self, incident: Incident) -> None:
        left = [each for each in self._present.get(incident.node, []) if each is not incident]
        if left:
            self._present[incident.node] = left
        else:
            self._present.pop(incident.node, None)

    def strikes(self, machine: int) -> bool:
        return machine in self._present

    def leaves(self, machine: int) -> bool:
        """Whether a frame gets out of a machine."""
        for incident in self._present.get(machine, ()):
            if incident.what == "overflow" and self._random.random() < incident.amount:
                self.count += 1
                return False
        return True

    def arrivals(self, machine: int) -> list[float]:
        """How much later each copy of a frame gets into a machine; none if it is damaged."""
        late_s = 0.0
        copies = 1
        struck = False
        self._frames += 1
        for incident in self._present.get(machine, ()):
            match incident.what:
                case "delay":
                    late_s += incident.amount
                case "reorder" if self._frames % OVERTAKEN_EVERY == 0:
                    late_s += incident.amount * self._random.random()
                case "duplicate" if self._random.random() < incident.amount:
                    copies += 1
                case "corrupt" if self._random.random() < incident.amount:
                    copies = 0
                case _:
                    continue
            struck = True
        self.count += struck
        return [late_s + AGAIN_S * self._random.random() * (copy > 0) for copy in range(copies)]
