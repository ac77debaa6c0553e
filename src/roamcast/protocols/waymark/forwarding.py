"""Forwarding: sends events on, in as few frames as the plan allows."""

from enum import StrEnum
from typing import Final

from roamcast.events import Event
from roamcast.protocols.api import Host
from roamcast.protocols.components import Component, Inputs
from roamcast.protocols.seen import SeenCache
from roamcast.protocols.sender_tree import grow_tree, indices
from roamcast.protocols.waymark.custody import Custody, size_bytes
from roamcast.protocols.waymark.graph import Graph
from roamcast.protocols.waymark.links import Links
from roamcast.protocols.waymark.messages import AGE_DS_MAX, Carry, Spread
from roamcast.protocols.waymark.news import Spreading
from roamcast.protocols.waymark.parameters import WaymarkParameters
from roamcast.protocols.waymark.receipts import ReceiptsDue
from roamcast.protocols.waymark.records import Records
from roamcast.protocols.waymark.repair import Repair

CARRY_BYTES: Final = 24
"""What a frame with an event takes beside the event, its destinations and receipts."""



class ForwardingTimer(StrEnum):
    PASS_ON = "forwarding.pass-on"  # this node's turn to pass an event on
    SPREAD = "forwarding.spread"  # this node's turn to flood an event
    FORGET = "forwarding.forget"  # nothing more is going to happen to an event


class Task:
    """What this node does about one event."""

    __slots__ = ("behind", "born_s", "copies", "event", "hops", "is_spread", "reached", "round", "taken", "todo")

    def __init__(self, event: Event, hops: int, round_: int, born_s: float) -> None:
        self.event = event
        self.born_s = born_s  # when it was published, by this node's clock
        self.hops = hops  # of the frames that this node sends
        self.round = round_  # how often the event was in custody
        self.todo: set[int] = set()  # destinations to plan for
        self.taken: dict[int, int] = {}  # destinations taken on, and how often
        self.behind: set[int] = set()  # who gave it to this node: not the way to go
        self.copies = 0  # of flooded events: how often it was heard
        self.is_spread = False  # this node has flooded it
        self.reached: set[int] = set()  # of flooded events: in reach of nodes that were heard sending it


class Forwarding(Component):
    def __init__(
        self,
        host: Host,
        parameters: WaymarkParameters,
        records: Records,
        links: Links,
        graph: Graph,
        news: Spreading,
        receipts: ReceiptsDue,
        repair: Repair,
        custody: Custody,
    ) -> None:
        super().__init__(host)
        self._parameters = parameters
        self._records = records
        self._links = links
        self._graph = graph
        self._news = news
        self._receipts = receipts
        self._repair = repair
        self._custody = custody
        self._seen = SeenCache()
        self._spread = SeenCache()  # flooded events that this node has repeated
        self.tasks: dict[int, Task] = {}
        self._spread_s: dict[int, float] = {}  # destination -> when an event was spread because of it

    def declare(self, inputs: Inputs) -> None:
        inputs.on(Carry, self._on_carry)
        inputs.on(Spread, self._on_spread)
        inputs.on_timer(ForwardingTimer.PASS_ON, self._pass_on)
        inputs.on_timer(ForwardingTimer.SPREAD, self._spread_on)
        inputs.on_timer(ForwardingTimer.FORGET, self._forget)

    def publish(self, event: Event) -> None:
        self._seen.add(event.id)
        task = self._begin(event, 1, 0, self.host.now())
        if not self._news.is_settled():
            self._custody.published(event, set())
            self._spread.add(event.id)
            self._spread_on(event.id)
            return
        destinations = set(self._records.wanting(event))
        self._custody.published(event, destinations)
        if destinations:
            self._take(task, destinations, -1)
            self._pass_on(event.id)

    def resume(self, event: Event, destinations: set[int], hops: int, round_: int, born_s: float) -> None:
        """Destinations have to be planned for again: a link broke, or there is a path at last."""
        task = self._task(event, hops, round_, born_s)
        wanting = {d for d in destinations if self._records.wants(d, event, born_s + self._parameters.slack_s)}
        self._take(task, wanting, -1)
        self._pass_on(event.id)

    def _begin(self, event: Event, hops: int, round_: int, born_s: float) -> Task:
        task = self.tasks[event.id] = Task(event, hops, round_, born_s)
        self.host.set_timer(self._parameters.forget_s, (ForwardingTimer.FORGET, event.id))
        return task

    def _task(self, event: Event, hops: int, round_: int, born_s: float) -> Task:
        """The event's task; a new one if the event has been in custody since."""
        task = self.tasks.get(event.id)
        if task is not None and task.round >= round_:
            return task
        fresh = self._begin(event, hops, round_, born_s)
        if task is not None:
            fresh.is_spread = task.is_spread
        return fresh

    def _forget(self, event_id: int) -> None:
        self.tasks.pop(event_id, None)

    def _take(self, task: Task, destinations: set[int], sender: int) -> bool:
        """Takes destinations on, each at most `tries_max` times, then into custody. True if there is anything to do."""
        again = sender not in task.behind
        refused: set[int] = set()
        for destination in destinations:
            times = task.taken.get(destination, 0)
            if times == 0 or (again and times < self._parameters.tries_max):
                task.taken[destination] = times + 1
                task.todo.add(destination)
            elif again:
                refused.add(destination)
        if refused:
            self._keep(task, refused)
        if sender >= 0:
            task.behind.add(sender)
        return bool(task.todo)

    # -- To destinations ----------------------------------------------------------------------------------------------

    def _is_own(self, event: Event) -> bool:
        """True for what this node published in an earlier life: it does not remember having seen it."""
        return event.publisher == self.host.address

    def _on_carry(self, sender: int, carry: Carry) -> None:
        event = carry.event
        born_s = self.host.now() - carry.age_ds / 10
        if self._seen.add(event.id):
            self._links.note_event()
            is_wanted = self._records.subscriptions.match(event) and not self._is_own(event)
            if is_wanted and self._records.own.wanted_since_s <= born_s + self._parameters.slack_s:
                self.host.deliver(event, carry.hops)
        me = self.host.address
        turn = 0
        for group in carry.groups:
            if group[0] == me:
                break
            turn += 1
        else:
            return
        if len(group) == 1:
            self._repair.owe_receipt(event.id, turn < carry.soon)
            return
        if carry.hops >= self._parameters.hops_max:
            self.host.dropped("hops", event.id)
            return
        task = self._task(event, carry.hops + 1, carry.round, born_s)
        if sender in task.behind and carry.hops >= task.hops:
            self._keep(task, set(group[1:]))  # it went round in a circle
        if self._take(task, set(group[1:]), sender):
            task.hops = max(task.hops, carry.hops + 1)
            self.host.set_timer(turn * self._repair.response_s, (ForwardingTimer.PASS_ON, event.id))
        else:
            self._repair.owe_receipt_now(event.id)

    def _pass_on(self, event_id: int) -> None:
        task = self.tasks.get(event_id)
        if task is None or not task.todo:
            return
        if self.host.now() >= self._custody.until_s(task.event, task.born_s):
            for _ in task.todo:
                self.host.dropped("too-late", event_id)
            task.todo = set()
            return
        groups = self._groups(task)
        if not groups:
            if task.behind:
                self._repair.owe_receipt_now(event_id)  # it is in this node's custody
            return
        event = task.event
        age_ds = min(AGE_DS_MAX, int(10 * (self.host.now() - task.born_s)))
        soon = sum(len(group) > 1 or not self._links.is_good(group[0]) for group in groups)
        if soon == 1 and len(groups) == 1 and len(groups[0]) == 1:
            carry = Carry(hops=task.hops, age_ds=age_ds, round=task.round, groups=(), soon=0, receipts=(), event=event)
            self.host.send(groups[0][0], carry)
            if task.behind:
                self._repair.owe_receipt_now(event_id)  # no other node hears that frame
            return
        receipts = self._receipts.take_all()
        taken = CARRY_BYTES + size_bytes(event) + 3 * sum(map(len, groups)) + 3 * len(receipts)
        wants, wheres = self._news.take_along(self.host.frame_bytes_max - taken)
        carry = Carry(
            hops=task.hops,
            age_ds=age_ds,
            round=task.round,
            groups=tuple(groups),
            soon=soon,
            receipts=receipts,
            event=event,
            wants=wants,
            wheres=wheres,
        )
        self.host.broadcast(carry)
        self._repair.expect(carry, task.born_s)

    def _groups(self, task: Task) -> list[tuple[int, ...]]:
        """The plan for what is to do, as groups of a frame; what has no path goes into custody."""
        graph, nodes = self._graph, self._records.nodes
        graph.refresh()
        me = self._records.own.index
        wanted = graph.bits(task.todo)
        lost = {d for d in task.todo if d not in self._records.known}
        task.todo = set()
        behind = graph.bits(task.behind)
        found: dict[int, int] = {}
        idle = graph.bits(self._links.idle())
        for loose, excluded, silent in ((False, behind, idle), (True, behind, idle), (True, 0, 0)):
            if wanted:
                made = grow_tree(graph, me, excluded, wanted=wanted, loose=loose, idle=silent)
                for head, served in made.groups.items():
                    found[head] = found.get(head, 0) | served
                wanted = made.lost
        lost.update(nodes[index] for index in indices(wanted))
        if lost:
            self._keep(task, lost)
        groups = [(nodes[head], *sorted(nodes[d] for d in indices(served))) for head, served in found.items()]
        groups.sort(key=_order)
        relays = [group for group in groups if len(group) > 1]
        good = [group for group in groups if len(group) == 1 and self._links.is_good(group[0])]
        others = [group for group in groups if len(group) == 1 and not self._links.is_good(group[0])]
        return relays + others + good

    def _keep(self, task: Task, lost: set[int]) -> None:
        """There is no path to these, as far as this node knows. Where places vouch for that, they have to wait. Else
        knowledge may be wrong, and the event is flooded, but not repeatedly for the same nodes."""
        self._custody.keep(task.event, lost, task.hops, task.round, task.born_s)
        now = self.host.now()
        missed = [
            node
            for node in lost
            if self._spread_s.get(node, -1e9) < now - self._parameters.spread_again_s
            and not self._records.has_place(node)
            and not self._links.is_cut(node)
        ]
        if missed and not task.is_spread:
            for destination in missed:
                self._spread_s[destination] = now
            task.is_spread = True
            self._spread.add(task.event.id)
            self.host.broadcast(Spread(task.hops, task.event))

    # -- Flooding ----------------------------------------------------------------------------------------------------

    def _on_spread(self, sender: int, spread: Spread) -> None:
        event = spread.event
        if self._seen.add(event.id):
            self._links.note_event()
            if self._records.subscriptions.match(event) and not self._is_own(event):
                self.host.deliver(event, spread.hops)
        task = self.tasks.get(event.id)
        if task is None:
            task = self._begin(event, min(spread.hops, self._parameters.hops_max - 1) + 1, 0, self.host.now())
        task.copies += 1
        task.reached.add(sender)
        task.reached |= self._links.of(sender)
        is_first = self._spread.add(event.id)
        if task.is_spread or spread.hops >= self._parameters.hops_max:
            return
        if is_first or not self._links.is_slow():  # over a slow radio, copies come when the task is long forgotten
            task.is_spread = True
            jitter_s = self._parameters.jitter_slow_s if self._links.is_slow() else self._parameters.jitter_s
            self.host.set_timer(jitter_s * self.host.random.random(), (ForwardingTimer.SPREAD, event.id))

    def _spread_on(self, event_id: int) -> None:
        task = self.tasks.get(event_id)
        if task is None:
            return
        task.is_spread = True
        neighbours = self._links.neighbours()
        if self._links.is_slow():
            is_covered = task.copies >= self._parameters.copies_max
        else:
            is_covered = neighbours <= task.reached
        if not is_covered or not neighbours:
            self.host.broadcast(Spread(task.hops, task.event))


def _order(group: tuple[int, ...]) -> tuple[bool, int, int]:
    """Relays before leaves, those with the most behind them first."""
    return (len(group) == 1, -len(group), group[0])
