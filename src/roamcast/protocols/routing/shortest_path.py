"""The unicast oracle: every relay asks the simulator for the next hop of a shortest path.

It sends nothing of its own, so it shows what a protocol would do over perfect routing: an upper bound on delivery and
a lower bound on frames. A relay asks afresh at every hop and so follows the movement of the nodes. If a link fails
under a frame all the same (interference, or the neighbour just left), the node asks again, up to `attempts_max` times.
"""

from typing import Final

from roamcast.errors import ConfigurationError
from roamcast.protocols.api import NOBODY, Host, Message
from roamcast.protocols.routing.api import Drop, Unicast, UnicastOwner
from roamcast.protocols.routing.messages import Control, Routed

HOPS_MAX: Final = 255
"""Shortest paths do not loop, but a packet may chase a moving destination for a while."""


class ShortestPath(Unicast):
    def __init__(self, host: Host, owner: UnicastOwner, attempts_max: int = 3) -> None:
        super().__init__(host, owner)
        if host.oracle is None:
            raise ConfigurationError("unicast: 'oracle' needs the simulator's global view; allowed here: aodv")
        self._oracle = host.oracle
        self._attempts_max = attempts_max

    def start(self) -> None:
        """Nothing to set up: the oracle knows."""

    def send(self, destination: int, payload: Message) -> None:
        if destination == self.host.address:
            self._arrive_later(payload)
        elif not self._forward(Routed(self.host.address, destination, 1, 1, payload)):
            self.host.dropped(Drop.NO_ROUTE)
            self._give_up_later(destination, payload)

    def on_message(self, sender: int, message: Message) -> bool:
        if type(message) is not Routed:
            return isinstance(message, Control)
        if message.destination == self.host.address:
            self._owner.on_unicast(message.source, message.payload, message.hops)
        elif message.hops >= HOPS_MAX:
            self.host.dropped(Drop.TOO_MANY_HOPS)
        elif not self._forward(message.onward()):
            self.host.dropped(Drop.NO_ROUTE)
        return True

    def on_send_failed(self, neighbour: int, message: Message) -> bool:
        if type(message) is not Routed:
            return isinstance(message, Control)
        if message.attempt < self._attempts_max and self._forward(message.again()):
            return True
        self.host.dropped(Drop.LINK_BROKEN)
        if message.source == self.host.address:
            self._owner.on_unreachable(message.destination, message.payload)
        return True

    def _forward(self, packet: Routed[Message]) -> bool:
        next_hop = self._oracle.next_hop(self.host.address, packet.destination)
        if next_hop == NOBODY:
            return False
        self.host.send(next_hop, packet)
        return True
