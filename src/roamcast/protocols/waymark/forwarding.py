"""Forwarding: passing events on, each in as few frames as the plan allows."""

from enum import StrEnum

from roamcast.events import Event
from roamcast.protocols.api import Host
from roamcast.protocols.components import Component, Inputs
from roamcast.protocols.seen import SeenCache
from roamcast.protocols.sender_tree import grow_tree, indices
from roamcast.protocols.waymark.custody import Custody
from roamcast.protocols.waymark.graph import Graph
from roamcast.protocols.waymark.links import Links
from roamcast.protocols.waymark.messages import Carry, Spread
from roamcast.protocols.waymark.parameters import WaymarkParameters
from roamcast.protocols.waymark.receipts import ReceiptsDue
from roamcast.protocols.waymark.records import Records
from roamcast.protocols.waymark.repair import Repair


class ForwardingTimer(StrEnum):
    PASS_ON = "forwarding.pass-on"  # this node's turn to pass an event on
    SPREAD = "forwarding.spread"  # this node's turn to spread an event to everybody
    FORGET = "forwarding.forget"  # nothing more is going to happen to an event


class Task:
    """What this node does about one event."""

    __slots__ = ("behind", "event", "hops", "reached", "taken", "todo")

    def __init__(self, event: Event, hops: int) -> None:
        self.event = event
        self.hops = hops  # of the frames that this node sends
        self.todo: set[int] = set()  # destinations to plan for
        self.taken: dict[int, int] = {}  # destinations taken on, and how often
        self.behind: set[int] = set()  # who gave it to this node: not the way to go
        self.reached: set[int] = set()  # of events for everybody: in reach of nodes that were heard sending it


class Forwarding(Component):
    def __init__(
        self,
        host: Host,
        parameters: WaymarkParameters,
        records: Records,
        links: Links,
        graph: Graph,
        receipts: ReceiptsDue,
        repair: Repair,
        custody: Custody,
    ) -> None:
        super().__init__(host)
        self._parameters = parameters
        self._records = records
        self._links = links
        self._graph = graph
        self._receipts = receipts
        self._repair = repair
        self._custody = custody
        self._seen = SeenCache()
        self._tasks: dict[int, Task] = {}
        self._settled_s = host.now() + parameters.settle_s

    def declare(self, inputs: Inputs) -> None:
        inputs.on(Carry, self._on_carry)
        inputs.on(Spread, self._on_spread)
        inputs.on_timer(ForwardingTimer.PASS_ON, self._pass_on)
        inputs.on_timer(ForwardingTimer.SPREAD, self._spread)
        inputs.on_timer(ForwardingTimer.FORGET, self._forget)

    def publish(self, event: Event) -> None:
        self._seen.add(event.id)
        task = self._begin(event, 1)
        if self.host.now() < self._settled_s:
            self._custody.published(event, set())
            self._spread(event.id)
            return
        destinations = set(self._records.wanting(event))
        self._custody.published(event, destinations)
        if destinations:
            self._take(task, destinations, -1)
            self._pass_on(event.id)

    def resume(self, event: Event, destinations: set[int], hops: int) -> None:
        """Destinations have to be planned for again: a link broke, or there is a path at last."""
        task = self._tasks.get(event.id)
        if task is None:
            task = self._begin(event, hops)
        wanting = {d for d in destinations if self._records.wants(d, event)}
        self._take(task, wanting, -1)
        self._pass_on(event.id)

    def _begin(self, event: Event, hops: int) -> Task:
        task = self._tasks[event.id] = Task(event, hops)
        self.host.set_timer(5.0, (ForwardingTimer.FORGET, event.id))
        return task

    def _forget(self, event_id: int) -> None:
        self._tasks.pop(event_id, None)

    def _take(self, task: Task, destinations: set[int], sender: int) -> bool:
        """Takes destinations on, each at most `tries_max` times. True if there is anything to do."""
        again = sender not in task.behind
        for destination in destinations:
            times = task.taken.get(destination, 0)
            if times == 0 or (again and times < self._parameters.tries_max):
                task.taken[destination] = times + 1
                task.todo.add(destination)
        if sender >= 0:
            task.behind.add(sender)
        return bool(task.todo)

    # -- To destinations ----------------------------------------------------------------------------------------------

    def _on_carry(self, sender: int, carry: Carry) -> None:
        event = carry.event
        if self._seen.add(event.id):
            self._links.note_event()
            if self._records.subscriptions.match(event):
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
            self._repair.owe_receipt(event.id, False)
            return
        if carry.hops >= self._parameters.hops_max:
            self.host.dropped("hops", event.id)
            return
        task = self._tasks.get(event.id)
        if task is None:
            task = self._begin(event, carry.hops + 1)
        if self._take(task, set(group[1:]), sender):
            self.host.set_timer(turn * self._repair.response_s, (ForwardingTimer.PASS_ON, event.id))
        else:
            self._repair.owe_receipt(event.id, True)

    def _pass_on(self, event_id: int) -> None:
        task = self._tasks.get(event_id)
        if task is None or not task.todo:
            return
        groups = self._groups(task)
        if not groups:
            if task.behind:
                self._repair.owe_receipt(event_id, True)  # it is in this node's custody
            return
        event = task.event
        if len(groups) == 1 and len(groups[0]) == 1:
            self.host.send(groups[0][0], Carry(task.hops, tuple(groups), (), event))
            if task.behind:
                self._repair.owe_receipt(event_id, True)  # nobody else hears that frame
            return
        self.host.broadcast(Carry(task.hops, tuple(groups), self._receipts.take_all(), event))
        self._repair.expect(event, task.hops, groups)

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
        for loose, excluded in ((False, behind), (True, behind), (True, 0)):
            if wanted:
                made = grow_tree(graph, me, excluded, wanted, loose)
                for head, served in made.groups.items():
                    found[head] = found.get(head, 0) | served
                wanted = made.lost
        lost.update(nodes[index] for index in indices(wanted))
        if lost:
            self._custody.keep(task.event, lost, task.hops)
        groups = [(nodes[head], *sorted(nodes[d] for d in indices(served))) for head, served in found.items()]
        groups.sort(key=_order)
        return groups

    # -- To everybody -------------------------------------------------------------------------------------------------

    def _on_spread(self, sender: int, spread: Spread) -> None:
        event = spread.event
        is_new = self._seen.add(event.id)
        if is_new:
            self._links.note_event()
            if self._records.subscriptions.match(event):
                self.host.deliver(event, spread.hops)
        task = self._tasks.get(event.id)
        if is_new and task is None and spread.hops < self._parameters.hops_max:
            task = self._begin(event, spread.hops + 1)
            self.host.set_timer(
                self._parameters.jitter_s * self.host.random.random(), (ForwardingTimer.SPREAD, event.id)
            )
        if task is not None:
            task.reached.add(sender)
            task.reached |= self._links.of(sender)

    def _spread(self, event_id: int) -> None:
        task = self._tasks.get(event_id)
        if task is None:
            return
        neighbours = self._links.neighbours()
        if not neighbours or neighbours - task.reached:
            self.host.broadcast(Spread(task.hops, task.event))


def _order(group: tuple[int, ...]) -> tuple[bool, int, int]:
    """Relays before leaves, those with the most behind them first."""
    return (len(group) == 1, -len(group), group[0])
