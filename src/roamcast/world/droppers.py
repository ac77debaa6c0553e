"""Silent droppers: nodes that take part in everything but do not forward others' events.

A dropper answers, acknowledges, advertises and publishes as its protocol says, so its neighbours take it for a sound
one. A message that carries an event of another node is dropped before it is sent, silently: it
believes that the message was sent. Each is counted in the trace as lost, with the reason `silent-dropper`.
"""

from math import floor
from typing import Final

from roamcast.protocols.api import Message
from roamcast.seeds import derive
from roamcast.world.faulty import FaultyHost
from roamcast.world.processing import carried
from roamcast.world.scenario import Scenario

REASON: Final = "silent-dropper"


def droppers(scenario: Scenario, seed: int) -> set[int]:
    """Who drops. With a larger share, those of the smaller one drop too."""
    order = list(range(scenario.nodes))
    derive(seed, "droppers").shuffle(order)
    return set(order[: floor(scenario.faults.dropper_share * scenario.nodes + 0.5)])


class DroppingHost(FaultyHost):
    """The host of a dropper."""

    def broadcast(self, message: Message) -> None:
        if self._forwards(message):
            self._medium.lose(REASON)
        else:
            super().broadcast(message)

    def send(self, neighbour: int, message: Message) -> None:
        if self._forwards(message):
            self._medium.lose(REASON)
        else:
            super().send(neighbour, message)

    def _forwards(self, message: Message) -> bool:
        event = carried(message)
        return event is not None and event.publisher != self.address
