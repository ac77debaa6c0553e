"""Repair: a lost frame does not lose the event.

Overhearing a relay forward an event counts as its receipt. Leaves send receipts, for several events in one short frame
or in a frame that they send anyway: soon over lossy and doubtful links, later over good ones. Without one in time, a
doubtful link is taken to be broken, and its destinations are planned again. Over other links the node gets the event
once more first.

The timeout is learned: the time from sending a frame to hearing the first relay is about a millisecond on 802.11 and a
second or more on LoRa. Relays named in the same frame send one after another at that interval, to avoid collisions.
"""

from collections.abc import Callable
from enum import StrEnum
from typing import Final

from roamcast.events import Event
from roamcast.protocols.api import INSTANT_S, NOBODY, Host, Message
from roamcast.protocols.components import Component, Inputs
from roamcast.protocols.jitter import shortened
from roamcast.protocols.waymark.links import Links
from roamcast.protocols.waymark.messages import AGE_DS_MAX, Carry, Hello, Receipt, Spread
from roamcast.protocols.waymark.parameters import WaymarkParameters
from roamcast.protocols.waymark.receipts import ReceiptsDue, receipted

LATE_MAX: Final = 64
"""Events whose late relays are remembered, at most."""


class RepairTimer(StrEnum):
    RELAYS = "repair.relays"  # the relays of an event have had their time to be heard
    LEAVES = "repair.leaves"  # the leaves of an event have had their time to confirm
    RECEIPT = "repair.receipt"  # receipts have waited long enough for a frame to take them along


class Awaited:
    """Who has not confirmed an event yet."""

    __slots__ = ("born_s", "event", "first", "hops", "leaves", "relays", "reminded", "round", "sent_s")

    def __init__(self, event: Event, hops: int, round_: int, born_s: float) -> None:
        self.event = event
        self.hops = hops
        self.round = round_
        self.born_s = born_s
        self.relays: dict[int, tuple[int, ...]] = {}  # relay -> its group
        self.leaves: dict[int, float] = {}  # leaf -> until when it should have confirmed
        self.reminded: set[int] = set()  # who was sent the event a second time
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
        self._patience = parameters.response_patience
        self._links = links
        self._receipts = receipts
        self._on_lost = on_lost
        self._awaited: dict[int, Awaited] = {}
        self._late: dict[int, tuple[int, float]] = {}  # event -> relay that was not heard in time, and sent when
        self._receipt_due_s = 0.0
        self.response_s = parameters.response_min_s  # from sending to hearing the first relay, smoothed

    def declare(self, inputs: Inputs) -> None:
        inputs.on_any_message(self._on_any_message)
        inputs.on_failure(Carry, self._on_carry_failed)
        inputs.on_timer(RepairTimer.RELAYS, self._remind_relays)
        inputs.on_timer(RepairTimer.LEAVES, self._remind_leaves)
        inputs.on_timer(RepairTimer.RECEIPT, self._send_receipts)

    def expect(self, carry: Carry, born_s: float) -> None:
        """This node has just broadcast a frame with an event that was published at `born_s`."""
        event = carry.event
        awaited = self._awaited.get(event.id)
        if awaited is None:
            awaited = self._awaited[event.id] = Awaited(event, carry.hops, carry.round, born_s)
        relays = 0
        now = self.host.now()
        for at, group in enumerate(carry.groups):
            if len(group) > 1:
                awaited.relays[group[0]] = group
                relays += 1
            else:
                wait_s = self._receipt_wait_s(at < carry.soon)
                awaited.leaves[group[0]] = now + wait_s + 2 * self._patience * self.response_s
        if relays:
            awaited.first, awaited.sent_s = carry.groups[0][0], now
            wait_s = max(self._parameters.relay_wait_s, self._patience * self.response_s) + relays * self.response_s
            self.host.set_timer(wait_s, (RepairTimer.RELAYS, event.id))
        self._await_leaves(awaited)

    def _await_leaves(self, awaited: Awaited) -> None:
        if awaited.leaves:
            due_s = min(awaited.leaves.values())
            self.host.set_timer(max(0.0, due_s - self.host.now()), (RepairTimer.LEAVES, awaited.event.id))

    def _receipt_wait_s(self, soon: bool) -> float:
        wait_s = self._parameters.receipt_s if soon else self._parameters.patience_s
        return max(wait_s, self._patience * self.response_s)

    def owe_receipt(self, event_id: int, soon: bool) -> None:
        """A neighbour waits to hear that this node got the event."""
        self._owe(event_id, shortened(self._receipt_wait_s(soon), self._parameters.receipt_jitter, self.host.random))

    def owe_receipt_now(self, event_id: int) -> None:
        """A neighbour waits for this node to pass the event on, and it is not going to be heard doing so."""
        self._owe(event_id, self._parameters.receipt_min_s)

    def _owe(self, event_id: int, wait_s: float) -> None:
        due_s = self.host.now() + wait_s
        if not len(self._receipts) or due_s < self._receipt_due_s:
            self._receipt_due_s = due_s
            self.host.set_timer(wait_s, (RepairTimer.RECEIPT, 0))
        self._receipts.add(event_id)

    def _send_receipts(self, key: int) -> None:
        if len(self._receipts):
            self.host.broadcast(Receipt(self._receipts.take_all()))

    def _on_any_message(self, sender: int, message: Message) -> None:
        if type(message) is Carry:
            if message.event.publisher != sender:
                self._links.note_passed_on(sender)
            self._confirmed(sender, message.event.id)
            if message.receipts:
                self._take_receipts(sender, message.receipts)
        elif type(message) is Receipt:
            self._take_receipts(sender, message.receipts)
        elif type(message) is Hello:
            if message.receipts:
                self._take_receipts(sender, message.receipts)
        elif type(message) is Spread:
            if message.event.publisher != sender:
                self._links.note_passed_on(sender)
            self._confirmed(sender, message.event.id)

    def _take_receipts(self, sender: int, receipts: tuple[int, ...]) -> None:
        for event_id in receipted(receipts):
            awaited = self._awaited.get(event_id)
            if awaited is not None and sender in awaited.relays and sender in awaited.reminded:
                self._take_excuse(sender, awaited)
            self._confirmed(sender, event_id)

    def _take_excuse(self, relay: int, awaited: Awaited) -> None:
        """A relay says that it has passed an event on, and was not heard doing so, though it was reminded."""
        self._links.note_kept(relay)
        if self._links.is_idle(relay):
            lost = set(awaited.relays.pop(relay))
            self._on_lost(awaited.event, lost, awaited.hops, awaited.round, awaited.born_s)

    def _confirmed(self, sender: int, event_id: int) -> None:
        awaited = self._awaited.get(event_id)
        late = self._late.get(event_id)
        if late is not None and late[0] == sender:
            self._responded(self.host.now() - late[1])
            del self._late[event_id]
        if awaited is not None:
            if late is None and sender == awaited.first and sender in awaited.relays:
                self._responded(self.host.now() - awaited.sent_s)
            awaited.relays.pop(sender, None)
            if awaited.leaves.pop(sender, None) is not None and sender not in awaited.reminded:
                self._links.note_arrival(sender)
            if not awaited.relays and not awaited.leaves:
                del self._awaited[event_id]

    def _expect_late(self, event_id: int, awaited: Awaited) -> None:
        """The first relay has not been heard in time; if it is heard yet, the time was too short."""
        if len(self._late) >= LATE_MAX:
            del self._late[next(iter(self._late))]
        self._late.setdefault(event_id, (awaited.first, awaited.sent_s))

    def _responded(self, after_s: float) -> None:
        # One straggler does not slow everything down.
        after_s = min(after_s, self._parameters.response_rise_max * self.response_s)
        usual_s = self.response_s + (after_s - self.response_s) * self._parameters.response_weight
        self.response_s = max(usual_s, self._parameters.response_min_s)

    def _remind_relays(self, event_id: int) -> None:
        awaited = self._awaited.get(event_id)
        if awaited is not None and self.host.backlog():  # it may not have left yet
            wait_s = max(self._parameters.relay_wait_s, self._patience * self.response_s)
            self.host.set_timer(wait_s, (RepairTimer.RELAYS, event_id))
        elif awaited is not None:
            groups = list(awaited.relays.values())
            if awaited.first in awaited.relays:
                self.response_s *= self._parameters.response_rise  # that was too soon, perhaps
                self._expect_late(event_id, awaited)
            awaited.relays.clear()
            self._remind(awaited, groups)

    def _remind_leaves(self, event_id: int) -> None:
        awaited = self._awaited.get(event_id)
        if awaited is not None:
            by_s = self.host.now() + INSTANT_S
            groups: list[tuple[int, ...]] = [(leaf,) for leaf, due_s in sorted(awaited.leaves.items()) if due_s <= by_s]
            for group in groups:
                del awaited.leaves[group[0]]
            self._remind(awaited, groups)
            self._await_leaves(awaited)

    def _remind(self, awaited: Awaited, unheard: list[tuple[int, ...]]) -> None:
        """A doubtful link is cut at once. Over a good one, a neighbour that is not heard gets one more frame, with
        others, before the link is cut. Over others, which lose frames, the link repeats the frame until it arrives."""
        lost: set[int] = set()
        together: list[tuple[int, ...]] = []
        age_ds = min(AGE_DS_MAX, int(10 * (self.host.now() - awaited.born_s)))
        for group in unheard:
            self.host.dropped("unheard-relay" if len(group) > 1 else "unheard-leaf", awaited.event.id)
            if len(group) > 1 and self._links.is_good(group[0]):
                self._links.note_kept(group[0])
            if len(group) > 1 and self._links.is_idle(group[0]):
                lost.update(group)
            elif group[0] in awaited.reminded or self._links.is_doubtful(group[0]):
                self._links.cut(group[0])
                lost.update(group)
            elif self._links.is_good(group[0]):
                self._links.note_loss(group[0])
                awaited.reminded.add(group[0])
                together.append(group)
            else:
                groups = (group,) if len(group) > 1 else ()  # a leaf's link confirms
                self.host.send(group[0], _again(awaited, age_ds, groups))
        if together:
            carry = _again(awaited, age_ds, tuple(together))
            self.host.broadcast(carry)
            self.expect(carry, awaited.born_s)
        elif not awaited.relays and not awaited.leaves:
            self._awaited.pop(awaited.event.id, None)
        if lost:
            self._on_lost(awaited.event, lost, awaited.hops, awaited.round, awaited.born_s)

    def _on_carry_failed(self, neighbour: int, carry: Carry) -> None:
        lost = {node for group in carry.groups for node in group}
        lost.add(neighbour)
        self._on_lost(carry.event, lost, carry.hops, carry.round, self.host.now() - carry.age_ds / 10)


def _again(awaited: Awaited, age_ds: int, groups: tuple[tuple[int, ...], ...]) -> Carry:
    """An event as it was sent before, for some of its groups."""
    return Carry(
        hops=awaited.hops,
        age_ds=age_ds,
        round=awaited.round,
        groups=groups,
        soon=len(groups),
        receipts=(),
        event=awaited.event,
    )
