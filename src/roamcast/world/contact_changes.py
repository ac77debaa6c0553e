"""Contacts as they come and go in a run: from the plan of who is in range when, or from the strength of signals.

What begins and ends goes into the trace and into the topology that the radio and the oracle see.
"""

from roamcast.trace.recorder import Recorder
from roamcast.trace.rows import contact_row
from roamcast.world.contacts import ContactPlan, contact_plan, scenario_contacts
from roamcast.world.mobility import Movements
from roamcast.world.radio.links import RadioLinks
from roamcast.world.scenario import Scenario
from roamcast.world.scheduler import Scheduler
from roamcast.world.signal_contacts import update_times_s
from roamcast.world.topology import Topology


class ContactChanges:
    def __init__(
        self,
        scenario: Scenario,
        movements: Movements | None,
        links: RadioLinks | None,
        topology: Topology,
        scheduler: Scheduler,
        recorder: Recorder,
    ) -> None:
        self._scenario = scenario
        self._movements = movements
        self._links = links
        self._topology = topology
        self._scheduler = scheduler
        self._recorder = recorder
        self._changes: list[tuple[float, int, int, int, int]] = []
        self._in_contact: set[tuple[int, int]] = set()

    def start(self) -> None:
        """Links of t = 0 at once, and every later change as one entry of the event queue at a time."""
        if self._links is not None:
            self._start_links()
            return
        scenario = self._scenario
        heard = scenario_contacts(scenario, self._movements)
        sense_range_m = scenario.radio.sense_range_m
        sensed: ContactPlan | None = None
        if self._movements is not None and sense_range_m > scenario.radio.range_m:
            sensed = contact_plan(self._movements, sense_range_m, scenario.duration_s)
            sensed = sensed.partitioned(self._movements, scenario.partitions())
        self._changes = _changes(heard, 0)
        if sensed is not None:
            self._changes = sorted(self._changes + _changes(sensed, 1))
        self._changes.reverse()  # the next change is the last of the list
        starts: tuple[list[tuple[int, int]], list[tuple[int, int]]] = ([], [])
        while self._changes and self._changes[-1][0] <= 0 and self._changes[-1][1]:
            _, _, which, a, b = self._changes.pop()
            starts[which].append((a, b))
            if not which:
                self._recorder.add(contact_row(0.0, a, b, begins=True))
        self._topology.load(*starts)
        if self._changes:
            self._scheduler.at(self._changes[-1][0], self._change_contacts, None)

    def _change_contacts(self, _: None) -> None:
        now = self._scheduler.now
        changes = self._changes
        while changes and changes[-1][0] <= now:
            begins, which, a, b = changes.pop()[1:]
            if which:
                self._topology.set_sensed(a, b, bool(begins))
            else:
                self._topology.set_contact(a, b, bool(begins))
                self._recorder.add(contact_row(now, a, b, begins=bool(begins)))
        if changes:
            self._scheduler.at(changes[-1][0], self._change_contacts, None)

    def _start_links(self) -> None:
        """Computes the links now and plans when to do so again."""
        assert self._movements is not None
        for t_s in update_times_s(self._scenario, self._movements):
            self._scheduler.at(t_s, self._change_links, None)
        self._change_links(None)

    def _change_links(self, _: None) -> None:
        """A contact is a link that works in both directions."""
        links = self._links
        assert links is not None
        now = self._scheduler.now
        links.update(now, self._scenario.partitions())
        self._topology.load_one_way(*links.lists())
        contacts = links.contacts()
        for a, b in sorted(self._in_contact - contacts):
            self._recorder.add(contact_row(now, a, b, begins=False))
        for a, b in sorted(contacts - self._in_contact):
            self._recorder.add(contact_row(now, a, b, begins=True))
        self._in_contact = contacts


def _changes(plan: ContactPlan, which: int) -> list[tuple[float, int, int, int, int]]:
    """The plan as changes `(t, begins, which, a, b)`: at the same instant contacts end before others begin."""
    a, b = plan.a.tolist(), plan.b.tolist()
    begins = [(t, 1, which, *pair) for t, *pair in zip(plan.from_s.tolist(), a, b, strict=True)]
    ends = [(t, 0, which, *pair) for t, *pair in zip(plan.until_s.tolist(), a, b, strict=True) if t < plan.duration_s]
    return sorted(begins + ends)
