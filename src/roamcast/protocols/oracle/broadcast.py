"""The broadcast-tree oracle: few senders by perfect knowledge. A limit for airtime, as `oracle` is one for hops.

Theory of operation
-------------------
On the radio one broadcast serves all neighbours, so an event costs as many frames as its tree has senders. Every node
that holds an event asks the simulator who can hear whom at this instant and grows a tree with few senders, as Waymark
does from what it knows (`sender_tree.py`). Finding the fewest senders is NP-hard; this is a good heuristic, so the
true limit lies a little lower.

Rules:
1. The publisher asks who wants the event, plans, and broadcasts one frame. It names the first relays and, for each, the
   destinations behind it.
2. A relay waits for its turn, plans again for its destinations, and broadcasts.
3. A relay that is not heard within `relay_wait_s` gets the frame again, acknowledged by the link. If that fails, its
   destinations are planned again, at most `tries_max` times on the whole journey.
4. A destination that a relay's broadcast should have reached counts as served. There are no receipts, so
   what is lost to a collision in the last hop stays lost.
"""

from enum import StrEnum
from typing import Any, ClassVar

from mypy_extensions import mypyc_attr

from roamcast.errors import ConfigurationError
from roamcast.events import Event
from roamcast.interests import Interest
from roamcast.protocols import api
from roamcast.protocols.api import Host, Message, Oracle, Protocol, Timer
from roamcast.protocols.oracle.messages import Branches
from roamcast.protocols.oracle.parameters import OracleBroadcastParameters
from roamcast.protocols.seen import SeenCache
from roamcast.protocols.sender_tree import Adjacency, grow_tree, indices
from roamcast.protocols.subscriptions import Subscriptions


class OracleTimer(StrEnum):
    TURN = "oracle.turn"  # this relay's turn to send an event; key: the event's id
    RELAYS = "oracle.relays"  # all relays of an event should have been heard; key: the event's id


@mypyc_attr(allow_interpreted_subclasses=True)
class OracleBroadcast(Protocol):
    name: ClassVar[str] = "oracle-broadcast"
    summary: ClassVar[str] = "trees with few senders from perfect knowledge: the limit of airtime, simulator only"
    Parameters: ClassVar[type[api.Parameters]] = OracleBroadcastParameters
    messages: ClassVar[Any] = Branches
    is_limit: ClassVar[bool] = True

    def __init__(self, host: Host, parameters: OracleBroadcastParameters) -> None:
        super().__init__(host)
        if host.oracle is None:
            raise ConfigurationError(
                "protocol: 'oracle-broadcast' knows the whole network: it runs in the simulator only"
            )
        self.parameters = parameters
        self.subscriptions = Subscriptions()
        self._oracle = host.oracle
        self._seen = SeenCache()
        self._turn: dict[int, Branches] = {}  # event -> what this node is going to send: its share, as it was told
        self._awaited: dict[int, dict[int, Branches]] = {}  # event -> relay -> its share, until it is heard

    def start(self) -> None:
        """Nothing to set up: everything is known."""

    def subscribe(self, interest: Interest) -> None:
        self.subscriptions.add(interest)

    def unsubscribe(self, interest: Interest) -> None:
        self.subscriptions.remove(interest)

    def publish(self, event: Event) -> None:
        self._seen.add(event.id)
        self._forward(event, self._oracle.subscribers(event), 1, 0)

    def on_message(self, sender: int, message: Message) -> None:
        assert isinstance(message, Branches)
        event = message.event
        is_own = event.publisher == self.host.address  # of an earlier life
        if self._seen.add(event.id) and not is_own and self.subscriptions.match(event):
            self.host.deliver(event, message.hops)
        awaited = self._awaited.get(event.id)
        if awaited is not None:
            awaited.pop(sender, None)
        for turn, group in enumerate(message.groups):
            if group[0] == self.host.address and len(group) > 1:
                self._turn[event.id] = Branches(message.hops + 1, message.tries, (group,), event)
                self.host.set_timer(turn * self.parameters.turn_s, (OracleTimer.TURN, event.id))

    def on_timer(self, timer: Timer) -> None:
        if timer[0] == OracleTimer.TURN:
            share = self._turn.pop(timer[1])
            self._forward(share.event, list(share.groups[0][1:]), share.hops, share.tries)
            return
        for relay, share in self._awaited.pop(timer[1], {}).items():
            self.host.send(relay, share)

    def on_send_failed(self, neighbour: int, message: Message) -> None:
        assert isinstance(message, Branches)
        if message.tries < self.parameters.tries_max:
            self._forward(message.event, list(message.groups[0][1:]), message.hops, message.tries + 1)
        else:
            self._give_up("tries", message.event, len(message.groups[0]) - 1)

    def _forward(self, event: Event, destinations: list[int], hops: int, tries: int) -> None:
        wanted = 0
        for node in destinations:
            wanted |= 1 << node
        plan = grow_tree(Everything(self._oracle), self.host.address, 0, wanted, False)
        self._give_up("no-path", event, plan.lost.bit_count())
        if not plan.groups:
            return
        groups = [(relay, *indices(served)) for relay, served in plan.groups.items()]
        groups.sort(key=_size, reverse=True)
        self.host.broadcast(Branches(hops, tries, tuple(groups), event))
        relays = {group[0]: Branches(hops, tries, (group,), event) for group in groups if len(group) > 1}
        if relays:
            self._awaited[event.id] = relays
            wait_s = self.parameters.relay_wait_s + len(relays) * self.parameters.turn_s
            self.host.set_timer(wait_s, (OracleTimer.RELAYS, event.id))

    def _give_up(self, reason: str, event: Event, destinations: int) -> None:
        for _ in range(destinations):
            self.host.dropped(reason, event.id)


class Everything(Adjacency):
    """Who can hear whom at this instant; a node's index is its address."""

    def __init__(self, oracle: Oracle) -> None:
        self._oracle = oracle
        self._known: dict[int, int] = {}

    def adjacent(self, index: int, loose: bool) -> int:
        found = self._known.get(index)
        if found is None:
            found = 0
            for node in self._oracle.neighbours(index):
                found |= 1 << node
            self._known[index] = found
        return found


def _size(group: tuple[int, ...]) -> int:
    return len(group)
