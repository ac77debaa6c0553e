"""Repair: nobody is left without an event because one frame was lost.

That a relay is heard passing an event on is its receipt. Leaves confirm what they got, several events in one short
frame, or on a frame that they send anyway. Whoever is not heard in time gets the event again, in a frame that the link
acknowledges. If that fails too, the link is broken, and what was to go over it is planned anew.

How long to wait is learned: from sending to hearing the first relay it takes a millisecond on 802.11 and a second or
more on LoRa. Relays that are named in the same frame take turns at that distance, so that they do not collide.
"""

from collections.abc import Callable
from enum import StrEnum

from roamcast.events import Event
from roamcast.protocols.api import NOBODY, Host, Message
from roamcast.protocols.components import Component, Inputs
from roamcast.protocols.waymark.links import Links
from roamcast.protocols.waymark.messages import AGE_DS_MAX, Carry, Hello, Receipt, Spread
from roamcast.protocols.waymark.parameters import WaymarkParameters
from roamcast.protocols.waymark.receipts import ReceiptsDue, receipted


class RepairTimer(StrEnum):
    RELAYS = "repair.relays"  # the relays of an event have had their time to be heard
    LEAVES = "repair.leaves"  # the leaves of an event have had their time to confirm
    RECEIPT = "repair.receipt"  # receipts have waited long enough for a frame to take them along


class Awaited:
    """Who has not confirmed an event yet."""

    __slots__ = ("born_s", "event", "first", "hops", "leaves", "relays", "round", "sent_s")

    def __init__(self, event: Event, hops: int, round_: int, born_s: float) -> None:
        self.event = event
        self.hops = hops
        self.round = round_
        self.born_s = born_s
        self.relays: dict[int, tuple[int, ...]] = {}  # relay -> its group
        self.leaves: set[int] = set()
        self.first = NOBODY  # the relay whose turn comes first
        self.sent_s = 0.0


class Repair(Component):
    def __init__(
        self,
        host: Host,
        parameters: WaymarkParameters,
        links: Links,
        receipts: ReceiptsDue,
        on_lost: Callable[[Event, set[int], int, int, float], None],
    ) -> None:
        super().__init__(host)
        self._parameters = parameters
        self._links = links
        self._receipts = receipts
        self._on_lost = on_lost
        self._awaited: dict[int, Awaited] = {}
        self.response_s = parameters.response_min_s  # from sending to hearing the first relay, smoothed

    def declare(self, inputs: Inputs) -> None:
        inputs.on_any_message(self._on_any_message)
        inputs.on_failure(Carry, self._on_carry_failed)
        inputs.on_timer(RepairTimer.RELAYS, self._remind_relays)
        inputs.on_timer(RepairTimer.LEAVES, self._remind_leaves)
        inputs.on_timer(RepairTimer.RECEIPT, self._send_receipts)

    def expect(self, event: Event, hops: int, round_: int, born_s: float, groups: list[tuple[int, ...]]) -> None:
        """This node has just broadcast the event for these groups."""
        awaited = self._awaited.get(event.id)
        if awaited is None:
            awaited = self._awaited[event.id] = Awaited(event, hops, round_, born_s)
        relays = 0
        for group in groups:
            if len(group) > 1:
                awaited.relays[group[0]] = group
                relays += 1
            else:
                awaited.leaves.add(group[0])
        if relays:
            awaited.first, awaited.sent_s = groups[0][0], self.host.now()
            wait_s = max(self._parameters.relay_wait_s, 5 * self.response_s) + relays * self.response_s
            self.host.set_timer(wait_s, (RepairTimer.RELAYS, event.id))
        if awaited.leaves:
            self.host.set_timer(self._receipt_wait_s() + 10 * self.response_s, (RepairTimer.LEAVES, event.id))

    def _receipt_wait_s(self) -> float:
        return max(self._parameters.receipt_s, 5 * self.response_s)

    def owe_receipt(self, event_id: int, is_urgent: bool) -> None:
        """A neighbour waits to hear that this node got the event."""
        if is_urgent:
            self.host.set_timer(0.001, (RepairTimer.RECEIPT, 0))
        elif not len(self._receipts):
            wait_s = self._receipt_wait_s() * (0.5 + 0.5 * self.host.random.random())
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
            if sender == awaited.first and sender in awaited.relays:
                self._responded(self.host.now() - awaited.sent_s)
            awaited.relays.pop(sender, None)
            awaited.leaves.discard(sender)
            if not awaited.relays and not awaited.leaves:
                del self._awaited[event_id]

    def _responded(self, after_s: float) -> None:
        self.response_s = max(self.response_s + (after_s - self.response_s) / 8, self._parameters.response_min_s)

    def _remind_relays(self, event_id: int) -> None:
        awaited = self._awaited.get(event_id)
        if awaited is not None:
            groups = list(awaited.relays.values())
            if awaited.first in awaited.relays:
                self.response_s *= 1.05  # that was too soon, perhaps
            awaited.relays.clear()
            self._remind(awaited, groups)

    def _remind_leaves(self, event_id: int) -> None:
        awaited = self._awaited.get(event_id)
        if awaited is not None:
            groups: list[tuple[int, ...]] = [(leaf,) for leaf in sorted(awaited.leaves)]
            awaited.leaves.clear()
            self._remind(awaited, groups)

    def _remind(self, awaited: Awaited, unheard: list[tuple[int, ...]]) -> None:
        lost: set[int] = set()
        age_ds = min(AGE_DS_MAX, int(10 * (self.host.now() - awaited.born_s)))
        for group in unheard:
            self.host.dropped("unheard-relay" if len(group) > 1 else "unheard-leaf", awaited.event.id)
            if self._links.is_doubtful(group[0]):
                self._links.cut(group[0])
                lost.update(group)
            else:
                groups = (group,) if len(group) > 1 else ()  # a leaf's link confirms
                self.host.send(
                    group[0],
                    Carry(
                        hops=awaited.hops,
                        age_ds=age_ds,
                        round=awaited.round,
                        groups=groups,
                        receipts=(),
                        event=awaited.event,
                    ),
                )
        if not awaited.relays and not awaited.leaves:
            self._awaited.pop(awaited.event.id, None)
        if lost:
            self._on_lost(awaited.event, lost, awaited.hops, awaited.round, awaited.born_s)

    def _on_carry_failed(self, neighbour: int, carry: Carry) -> None:
        lost = {node for group in carry.groups for node in group}
        lost.add(neighbour)
        self._on_lost(carry.event, lost, carry.hops, carry.round, self.host.now() - carry.age_ds / 10)
