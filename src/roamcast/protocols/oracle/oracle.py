"""Oracle: shortest-path trees from perfect knowledge. Not a protocol one could deploy, but the limit for those one can.

Theory of operation
-------------------
The publisher asks the simulator who wants the event at this instant; every node asks it for the next hop of a shortest
path at this instant. So there is nothing to maintain and nothing to learn: what remains is what physics costs.

Rules:
1. A node that holds an event for some destinations groups them by next hop and sends one acknowledged frame to each.
2. If the link gives up on a frame (the neighbour has just moved away, or the channel is full), its destinations are
   routed again, at most `tries_max` times on the whole journey.
3. A destination without any path is given up at once.

It bounds hops and maintenance from below. It does not bound airtime: a frame per next hop may cost more than one
broadcast that serves several, which is the price of acknowledgement.
"""

from typing import Any, ClassVar

from mypy_extensions import mypyc_attr

from roamcast.errors import ConfigurationError
from roamcast.events import Event
from roamcast.interests import Interest
from roamcast.protocols import api
from roamcast.protocols.api import NOBODY, Host, Message, Protocol
from roamcast.protocols.oracle.messages import Bundle
from roamcast.protocols.oracle.parameters import OracleParameters
from roamcast.protocols.seen import SeenCache
from roamcast.protocols.subscriptions import Subscriptions


@mypyc_attr(allow_interpreted_subclasses=True)
class OracleTrees(Protocol):
    name: ClassVar[str] = "oracle"
    summary: ClassVar[str] = "shortest-path trees from perfect knowledge: the limit, in the simulator only"
    Parameters: ClassVar[type[api.Parameters]] = OracleParameters
    messages: ClassVar[Any] = Bundle
    is_limit: ClassVar[bool] = True

    def __init__(self, host: Host, parameters: OracleParameters) -> None:
        super().__init__(host)
        if host.oracle is None:
            raise ConfigurationError("protocol: 'oracle' knows the whole network, so it runs in the simulator only")
        self.parameters = parameters
        self.subscriptions = Subscriptions()
        self._delivered = SeenCache()  # a frame that arrived is routed again if all its acknowledgements were lost
        self._oracle = host.oracle

    def start(self) -> None:
        """Nothing to set up: everything is known."""

    def subscribe(self, interest: Interest) -> None:
        self.subscriptions.add(interest)

    def unsubscribe(self, interest: Interest) -> None:
        self.subscriptions.remove(interest)

    def publish(self, event: Event) -> None:
        self._forward(event, self._oracle.subscribers(event), hops=1, tries=0)

    def on_message(self, sender: int, message: Message) -> None:
        assert isinstance(message, Bundle)
        here = self.host.address
        wanted = here in message.destinations and self.subscriptions.match(message.event)
        if wanted and self._delivered.add(message.event.id):
            self.host.deliver(message.event, message.hops)
        others = [node for node in message.destinations if node != here]
        self._forward(message.event, others, message.hops + 1, message.tries)

    def on_send_failed(self, neighbour: int, message: Message) -> None:
        assert isinstance(message, Bundle)
        if message.tries < self.parameters.tries_max:
            self._forward(message.event, list(message.destinations), message.hops, message.tries + 1)
        else:
            self._give_up("tries", message.event, len(message.destinations))

    def _forward(self, event: Event, destinations: list[int], hops: int, tries: int) -> None:
        by_next_hop: dict[int, list[int]] = {}
        for destination in destinations:
            by_next_hop.setdefault(self._oracle.next_hop(self.host.address, destination), []).append(destination)
        self._give_up("no-path", event, len(by_next_hop.pop(NOBODY, [])))
        for next_hop, group in by_next_hop.items():
            self.host.send(next_hop, Bundle(hops, tries, tuple(group), event))

    def _give_up(self, reason: str, event: Event, destinations: int) -> None:
        for _ in range(destinations):
            self.host.dropped(reason, event.id)
