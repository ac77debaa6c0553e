"""The unicast oracle: every relay asks the simulator for the next hop of a shortest path.

It sends nothing of its own, so it shows what a protocol would do over perfect routing: an upper bound on delivery and
a lower bound on frames. A relay asks afresh at every hop and so follows the movement of the nodes. If a link fails
under a frame all the same (interference, or the neighbour just left), the node asks again, up to `attempts_max` times.
"""

from roamcast.errors import ConfigurationError
from roamcast.fields import HOPS_MAX
from roamcast.protocols.api import NOBODY, Host, Message
from roamcast.protocols.components import Inputs
from roamcast.protocols.routing.api import Arrived, Drop, Unicast, Unreachable
from roamcast.protocols.routing.messages import Routed


class ShortestPath(Unicast):
    def __init__(
        self, host: Host, inputs: Inputs, arrived: Arrived, unreachable: Unreachable, attempts_max: int
    ) -> None:
        super().__init__(host, inputs, arrived, unreachable)
        if host.oracle is None:
            raise ConfigurationError("unicast: 'oracle' needs the simulator's global view; allowed here: aodv")
        self._oracle = host.oracle
        self._attempts_max = attempts_max

    def declare(self, inputs: Inputs) -> None:
        inputs.on(Routed, self._on_packet)
        inputs.on_failure(Routed, self._on_packet_failed)

    def start(self) -> None:
        """Nothing to set up: the oracle knows."""

    def send(self, destination: int, payload: Message) -> None:
        if destination == self.host.address:
            self._arrive_later(payload)
        elif not self._forward(Routed(self.host.address, destination, 1, 1, payload)):
            self.host.dropped(Drop.NO_ROUTE)
            self._give_up_later(destination, payload)

    def _on_packet(self, sender: int, packet: Routed[Message]) -> None:
        if packet.destination == self.host.address:
            self._arrived(packet.source, packet.payload, packet.hops)
        elif packet.hops >= HOPS_MAX:  # it chases a moving destination
            self.host.dropped(Drop.TOO_MANY_HOPS)
        elif not self._forward(packet.onward()):
            self.host.dropped(Drop.NO_ROUTE)

    def _on_packet_failed(self, neighbour: int, packet: Routed[Message]) -> None:
        if packet.attempt < self._attempts_max and self._forward(packet.again()):
            return
        self.host.dropped(Drop.LINK_BROKEN)
        if packet.source == self.host.address:
            self._unreachable(packet.destination, packet.payload)

    def _forward(self, packet: Routed[Message]) -> bool:
        next_hop = self._oracle.next_hop(self.host.address, packet.destination)
        if next_hop == NOBODY:
            return False
        self.host.send(next_hop, packet)
        return True
