"""Repair: nobody is left without an event because one frame was lost.

That a relay is heard passing an event on is its receipt. Leaves confirm what they got, several events in one short
frame, or on a frame that they send anyway. Whoever is not heard in time gets the event again, in a frame that the link
acknowledges. If that fails too, the link is broken, and what was to go over it is planned anew.
"""

from collections.abc import Callable
from enum import StrEnum

from roamcast.events import Event
from roamcast.protocols.api import Host, Message
from roamcast.protocols.components import Component, Inputs
from roamcast.protocols.waymark.links import Links
from roamcast.protocols.waymark.messages import Carry, Hello, Receipt, Spread
from roamcast.protocols.waymark.parameters import WaymarkParameters
from roamcast.protocols.waymark.receipts import ReceiptsDue, receipted


class RepairTimer(StrEnum):
    RELAYS = "repair.relays"  # the relays of an event have had their time to be heard
    LEAVES = "repair.leaves"  # the leaves of an event have had their time to confirm
    RECEIPT = "repair.receipt"  # receipts have waited long enough for a frame to take them along


class Awaited:
    """Who has not confirmed an event yet."""

    __slots__ = ("event", "hops", "leaves", "relays")

    def __init__(self, event: Event, hops: int) -> None:
        self.event = event
        self.hops = hops
        self.relays: dict[int, tuple[int, ...]] = {}  # relay -> its group
        self.leaves: set[int] = set()


class Repair(Component):
    def __init__(
        self,
        host: Host,
        parameters: WaymarkParameters,
        links: Links,
        receipts: ReceiptsDue,
        on_lost: Callable[[Event, set[int], int], None],
    ) -> None:
        super().__init__(host)
        self._parameters = parameters
        self._links = links
        self._receipts = receipts
        self._on_lost = on_lost
        self._awaited: dict[int, Awaited] = {}

    def declare(self, inputs: Inputs) -> None:
        inputs.on_any_message(self._on_any_message)
        inputs.on_failure(Carry, self._on_carry_failed)
        inputs.on_timer(RepairTimer.RELAYS, self._remind_relays)
        inputs.on_timer(RepairTimer.LEAVES, self._remind_leaves)
        inputs.on_timer(RepairTimer.RECEIPT, self._send_receipts)

    def expect(self, event: Event, hops: int, groups: list[tuple[int, ...]]) -> None:
        """This node has just broadcast the event for these groups."""
        awaited = self._awaited.get(event.id)
        if awaited is None:
            awaited = self._awaited[event.id] = Awaited(event, hops)
        relays = 0
        for group in groups:
            if len(group) > 1:
                awaited.relays[group[0]] = group
                relays += 1
            else:
                awaited.leaves.add(group[0])
        if relays:
            wait_s = self._parameters.relay_wait_s + relays * self._parameters.slot_s
            self.host.set_timer(wait_s, (RepairTimer.RELAYS, event.id))
        if awaited.leaves:
            self.host.set_timer(self._parameters.receipt_s + 0.05, (RepairTimer.LEAVES, event.id))

    def owe_receipt(self, event_id: int, is_urgent: bool) -> None:
        """A neighbour waits to hear that this node got the event."""
        if is_urgent:
            self.host.set_timer(0.001, (RepairTimer.RECEIPT, 0))
        elif not len(self._receipts):
            wait_s = self._parameters.receipt_s * (0.5 + 0.5 * self.host.random.random())
            self.host.set_timer(wait_s, (RepairTimer.RECEIPT, 0))
        self._receipts.add(event_id)

    def _send_receipts(self, key: int) -> None:
        if len(self._receipts):
            self.host.broadcast(Receipt(self._receipts.take_all()))

    def _on_any_message(self, sender: int, message: Message) -> None:
        if type(message) is Carry:
            self._confirmed(sender, message.event.id)
            if message.receipts:
                self._take_receipts(sender, message.receipts)
        elif type(message) is Receipt:
            self._take_receipts(sender, message.receipts)
        elif type(message) is Hello:
            if message.receipts:
                self._take_receipts(sender, message.receipts)
        elif type(message) is Spread:
            self._confirmed(sender, message.event.id)

    def _take_receipts(self, sender: int, receipts: tuple[int, ...]) -> None:
        for event_id in receipted(receipts):
            self._confirmed(sender, event_id)

    def _confirmed(self, sender: int, event_id: int) -> None:
        awaited = self._awaited.get(event_id)
        if awaited is not None:
            awaited.relays.pop(sender, None)
            awaited.leaves.discard(sender)
            if not awaited.relays and not awaited.leaves:
                del self._awaited[event_id]

    def _remind_relays(self, event_id: int) -> None:
        awaited = self._awaited.get(event_id)
        if awaited is not None:
            groups = list(awaited.relays.values())
            awaited.relays.clear()
            self._remind(awaited, groups)

    def _remind_leaves(self, event_id: int) -> None:
        awaited = self._awaited.get(event_id)
        if awaited is not None:
            groups: list[tuple[int, ...]] = [(leaf,) for leaf in sorted(awaited.leaves)]
            awaited.leaves.clear()
            self._remind(awaited, groups)

    def _remind(self, awaited: Awaited, groups: list[tuple[int, ...]]) -> None:
        lost: set[int] = set()
        for group in groups:
            self.host.dropped("unheard-relay" if len(group) > 1 else "unheard-leaf", awaited.event.id)
            if self._links.is_overdue(group[0]):
                self._links.cut(group[0])
                lost.update(group)
            else:
                self.host.send(group[0], Carry(awaited.hops, (group,), (), awaited.event))
        if not awaited.relays and not awaited.leaves:
            self._awaited.pop(awaited.event.id, None)
        if lost:
            self._on_lost(awaited.event, lost, awaited.hops)

    def _on_carry_failed(self, neighbour: int, carry: Carry) -> None:
        self._on_lost(carry.event, {node for group in carry.groups for node in group}, carry.hops)
