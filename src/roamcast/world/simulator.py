"""The simulator: a scenario, a protocol and a seed become a trace.

Movement, contacts, workload and faults are laid out before the run, from the seed alone, so every protocol meets the
same network and the same events. Then one event queue runs it: radio, timers, contacts, faults, applications. The trace
is the only result; every measure is computed from it (`trace/summary.py`, `analysis/`).

An application is the node's own: it keeps its subscriptions over a crash and makes them again when the node returns.
"""

import gc
from collections.abc import Callable
from time import perf_counter
from typing import Final, NamedTuple

import msgspec
import numpy as np

from roamcast.errors import CallerError
from roamcast.events import NUMBER_BITS, Event
from roamcast.interests import Interest
from roamcast.protocols.api import NOBODY, Message, Oracle, Protocol, Site
from roamcast.protocols.catalogue import build_protocol, protocol_parameters
from roamcast.protocols.subscriptions import Subscriptions
from roamcast.seeds import derive
from roamcast.trace.recorder import Recorder
from roamcast.trace.rows import (
    InterestKind,
    dropped_row,
    end_row,
    fault_row,
    frame_row,
    interest_row,
    lost_row,
    position_row,
    traffic_row,
    waited_row,
)
from roamcast.utility import canonical
from roamcast.world.adversaries import JUNK, adversaries, adversary_host
from roamcast.world.causal_workload import CausalWorkload
from roamcast.world.contact_changes import ContactChanges
from roamcast.world.droppers import DroppingHost, droppers
from roamcast.world.energy import Asleep, record_energy
from roamcast.world.faults import GOODBYE_S, Fault, fault_plan
from roamcast.world.faulty import FaultyHost
from roamcast.world.host import HostServices, SimulatedHost
from roamcast.world.incident import LIVES, Incident
from roamcast.world.mobility import Movements, scenario_movements
from roamcast.world.positioning import whereabouts
from roamcast.world.processing import carried
from roamcast.world.radio.medium import Frame, Medium
from roamcast.world.radio.settings import Surroundings
from roamcast.world.scenario import Processing, Run, Scenario, run_id
from roamcast.world.scheduler import Due, Scheduler
from roamcast.world.signal_contacts import signal_links
from roamcast.world.topology import Topology
from roamcast.world.workload import Action, Advertise, Publish, Subscribe, Unsubscribe, agenda

INSTANT_S: Final = 1e-6
"""Between two things that an application does as soon as its node goes on."""


class Result(NamedTuple):
    run: Run
    recorder: Recorder
    medium: Medium  # what the radio counted
    wall_s: float
    events: int  # callbacks of the event queue


def simulate(
    run: Run,
    *,
    raw_frames: bool = False,
    actions: list[Action] | None = None,
    on_frame: Callable[[Frame], None] | None = None,
) -> Result:
    """Runs it to the end. `actions` replaces the workload of the scenario; causal nodes still react. `on_frame` gets
    every frame as it starts."""
    began = perf_counter()
    # The simulation makes no cycles worth collecting, and the collector would walk the whole network again and again.
    collecting = gc.isenabled()
    gc.disable()
    try:
        simulation = Simulation(run, raw_frames=raw_frames, actions=actions)
        if on_frame is not None:
            simulation.watch_frames(on_frame)
        simulation.run_until(run.scenario.duration_s)
        simulation.finish()
    finally:
        if collecting:
            gc.enable()
    wall_s = perf_counter() - began
    return Result(run, simulation.recorder, simulation.medium, wall_s, simulation.scheduler.events)


class Simulation(Oracle):
    """A network in motion. `run_until` may be called step by step, as invariant checkers do; they may also give
    `actions` and `faults`, which replace those of the scenario."""

    def __init__(
        self, run: Run, raw_frames: bool = False, actions: list[Action] | None = None, faults: list[Fault] | None = None
    ) -> None:
        scenario = run.scenario
        self.run = run
        self.parameters = protocol_parameters(run.protocol, dict(run.parameters))
        self.recorder = Recorder(run_id(run))
        self.scheduler = Scheduler()
        self.movements: Movements | None = scenario_movements(scenario, run.seed)
        self._whereabouts = whereabouts(scenario, self.movements, run.seed)
        self.topology = Topology(scenario.nodes)
        self._links = signal_links(scenario, self.movements, run.seed)
        self.medium = self._medium(raw_frames)
        self._causal = CausalWorkload(scenario, run.seed) if scenario.workload.causal.dependencies else None
        dependencies = None if self._causal is None else self._causal.specification
        self.site = Site(*scenario.area_m, range_m=scenario.radio.range_m, dependencies=dependencies)
        self._services = HostServices(
            site=self.site,
            oracle=self,
            scheduler=self.scheduler,
            medium=self.medium,
            whereabouts=self._whereabouts,
            recorder=self.recorder,
            on_delivery=self._delivered if self._causal else None,
            processing=_processing(scenario),
            security=scenario.security,
            seed=run.seed,
        )
        self._signature = bytes(scenario.security.signature_bytes) or None
        self.protocols: list[Protocol | None] = [None] * scenario.nodes
        self._hosts: list[SimulatedHost | None] = [None] * scenario.nodes
        self._wanted = [Subscriptions() for _ in range(scenario.nodes)]
        self._advertised: list[list[Interest]] = [[] for _ in range(scenario.nodes)]
        self._published = [0] * scenario.nodes
        self._lives = [0] * scenario.nodes
        self._payloads: dict[int, bytes] = {}
        self._language = scenario.workload.language
        self._utility = scenario.workload.utility
        self._canonical_utility = canonical(self._utility)
        self._asleep = Asleep(scenario.nodes)
        self._droppers = droppers(scenario, run.seed)
        self._adversaries = adversaries(scenario, run.seed)
        self._waiting_s: dict[int, float] = {}  # by node: until its application has done what it could not while paused
        self._incidents: dict[int, list[Incident]] = {}  # by node, without those of its lives
        for incident in scenario.faults.incidents:
            if incident.what not in LIVES:
                self._incidents.setdefault(incident.node, []).append(incident)
        faults = fault_plan(scenario, run.seed) if faults is None else faults
        self._record_positions()
        ContactChanges(
            scenario=scenario,
            movements=self.movements,
            links=self._links,
            topology=self.topology,
            scheduler=self.scheduler,
            recorder=self.recorder,
        ).start()
        absent = {fault.node for fault in faults if fault.what == "join"}
        for node in range(scenario.nodes):
            if node in absent:
                self.topology.set_up(node, False)
                self._asleep.begin(node, 0.0)
            else:
                self._start_node(node)
        for second in range(1, int(np.ceil(scenario.duration_s)) + 1):  # before the actions of the same instant
            self.scheduler.at(float(second), self._write_frames, second - 1)
        for fault in faults:
            self.scheduler.at(fault.t_s, self._strike, fault)
        self._plan_deafness(scenario)
        if actions is None:
            initiated = [] if self._causal is None else self._causal.actions(run.seed)
            actions = agenda(scenario, run.seed) + initiated
        for action in actions:
            self.scheduler.put(action.t_s, _Doing(self, action))

    @property
    def mishaps(self) -> dict[str, int]:
        """What incidents did to messages and timers so far, by kind."""
        return self._services.mishaps

    def watch_frames(self, on_frame: Callable[[Frame], None]) -> None:
        """From now on `on_frame` gets every frame as it starts, too."""
        before = self.medium.on_start

        def both(frame: Frame) -> None:
            if before is not None:
                before(frame)
            on_frame(frame)

        self.medium.on_start = both

    def run_until(self, t: float) -> None:
        self.scheduler.run(t)

    def finish(self) -> None:
        """Writes what is summed over the run."""
        now = self.scheduler.now
        self._write_frames(max(0, int(np.ceil(now)) - 1))
        for node, load in enumerate(self.medium.loads):
            for label, tally in load.items():
                self.recorder.add(
                    traffic_row(
                        now,
                        "load",
                        node,
                        frames=tally.count,
                        size_bytes=tally.bytes,
                        airtime_s=tally.airtime_s,
                        category=tally.category,
                        label=label,
                    )
                )
        record_energy(self.recorder, self.run.scenario.radio.power, self.medium, self._asleep, now)
        for reason, count in sorted(self.medium.lost.items()):
            self.recorder.add(lost_row(now, reason, count))
        self.recorder.add(end_row(now, self.run.scenario.nodes))

    # -- the oracle's view ---------------------------------------------------------------------------------------

    def next_hop(self, source: int, destination: int) -> int:
        return self.topology.next_hop(source, destination) if destination < self.topology.nodes else NOBODY

    def neighbours(self, node: int) -> list[int]:
        return self.topology.hear[node]

    def hops(self, source: int, destination: int) -> int:
        return self.topology.distances(source)[destination] if destination < self.topology.nodes else -1

    def subscribers(self, event: Event) -> list[int]:
        publisher = event.publisher
        return [
            node
            for node, wanted in enumerate(self._wanted)
            if node != publisher and self.protocols[node] is not None and wanted.match(event)
        ]

    # -- radio and positions -------------------------------------------------------------------------------------

    def _medium(self, raw_frames: bool) -> Medium:
        random = derive(self.run.seed, "radio")
        around = Surroundings(self.scheduler, self.topology, random, self.movements, self._links)
        medium = self.run.scenario.radio.medium(around)
        if raw_frames:
            medium.on_start = self._record_frame
        self._raw_frames = raw_frames
        return medium

    def _record_positions(self) -> None:
        """Every corner of every node's path until the end of the run, and where the node is then."""
        if self.movements is None:
            return
        end_s = self.run.scenario.duration_s
        for node in range(self.movements.nodes):
            for t_s, x_m, y_m in self.movements.until(node, end_s):
                self.recorder.add(position_row(t_s, node, x_m, y_m))

    def _record_frame(self, frame: Frame) -> None:
        self.recorder.add(
            frame_row(
                frame.start,
                frame.sender,
                frame.receiver,
                event=carried_event(frame.message),
                size_bytes=frame.bytes,
                airtime_s=frame.airtime_s,
                category="link" if frame.message is None else frame.message.category,
                label=frame.label,
            )
        )

    def _write_frames(self, second: int) -> None:
        """Everything sent since the last time, in the name of `second`."""
        if not self._raw_frames:
            for total in self.medium.totals:
                self.recorder.add(
                    traffic_row(
                        float(second),
                        "frame",
                        None,
                        frames=total.count,
                        size_bytes=total.bytes,
                        airtime_s=total.airtime_s,
                        category=total.category,
                        label=total.label,
                    )
                )
        self.medium.reset_totals()

    # -- nodes and their applications ----------------------------------------------------------------------------

    def _start_node(self, node: int) -> None:
        self._lives[node] += 1
        life = self._lives[node]
        host = self._new_host(node, life)
        protocol = build_protocol(self.run.protocol, host, self.parameters)
        host.connect(protocol)
        self._hosts[node] = host
        self.protocols[node] = protocol
        protocol.start()
        joins_late = self._lives[node] == 1
        for interest in self._advertised[node]:
            if joins_late:
                self._record_interest("advertised", node, interest)
            protocol.advertise(interest)
        for interest in self._wanted[node]:
            if joins_late:
                self._record_interest("subscribed", node, interest)
            protocol.subscribe(interest)

    def _new_host(self, node: int, life: int) -> SimulatedHost:
        random = derive(self.run.seed, "node", node, life)
        incidents = self._incidents.get(node)
        if node in self._adversaries:
            scenario = self.run.scenario
            host = adversary_host(scenario.faults.adversary, self._services, node, life, random)
            host.junk = JUNK[scenario.workload.language]
        elif node in self._droppers:
            host = DroppingHost(self._services, node, life, random)
        elif incidents is None and not self._adversaries:
            return SimulatedHost(self._services, node, life, random)
        else:
            host = FaultyHost(self._services, node, life, random)
        host.among_adversaries = bool(self._adversaries)
        host.suffer(incidents or [])
        return host

    def _plan_deafness(self, scenario: Scenario) -> None:
        for incident in scenario.faults.incidents:
            if incident.what == "deaf":
                self.scheduler.at(incident.from_s, self._change_hearing, (incident.peer, incident.node, True))
                self.scheduler.at(incident.until_s, self._change_hearing, (incident.peer, incident.node, False))

    def _change_hearing(self, change: tuple[int, int, bool]) -> None:
        self.topology.set_deaf(*change)

    def _stop_node(self, node: int) -> None:
        host = self._hosts[node]
        assert host is not None
        host.end_life()
        self.protocols[node] = None
        self._hosts[node] = None

    def _strike(self, fault: Fault) -> None:
        node = fault.node
        self.recorder.add(fault_row(self.scheduler.now, node, fault.what))
        protocol = self.protocols[node]
        if fault.what in ("crash", "leave"):
            if protocol is None:
                raise CallerError(f"fault: node {node} cannot {fault.what} at {fault.t_s} s, it is down")
            if fault.what == "leave":
                protocol.leave()
                self._stop_node(node)
                self.scheduler.at(self.scheduler.now + GOODBYE_S, self._switch_off, node)
            else:
                self._stop_node(node)
                self._switch_off(node)
        else:
            self.topology.set_up(node, True)
            self._asleep.end(node, self.scheduler.now)
            self._start_node(node)

    def _switch_off(self, node: int) -> None:
        self.topology.set_up(node, False)
        self._asleep.begin(node, self.scheduler.now)
        self.medium.silence(node)

    def act(self, action: Action) -> None:
        """An application does something. If its node is paused, it waits, and so does what it does after that."""
        node, now = action.node, self.scheduler.now
        host = self._hosts[node]
        resumes_s = now if host is None else host.resumes_s()
        waiting_s = self._waiting_s.get(node, 0.0)
        if resumes_s > now or waiting_s > now:
            self._waiting_s[node] = waiting_s = max(resumes_s, waiting_s + INSTANT_S)
            self.scheduler.at(waiting_s, self._perform, action)
        else:
            self._perform(action)

    def _perform(self, action: Action) -> None:
        """If the node is down, its application keeps what it wants for later."""
        node = action.node
        protocol = self.protocols[node]
        if isinstance(action, Publish):
            self._publish(action)
            return
        match action:
            case Subscribe(interest=interest):
                self._wanted[node].add(interest)
                self._record_interest("subscribed", node, interest)
                if protocol is not None:
                    protocol.subscribe(interest)
            case Unsubscribe(interest=interest):
                self._wanted[node].remove(interest)
                self._record_interest("unsubscribed", node, interest)
                if protocol is not None:
                    protocol.unsubscribe(interest)
            case Advertise(interest=interest):
                self._advertised[node].append(interest)
                self._record_interest("advertised", node, interest)
                if protocol is not None:
                    protocol.advertise(interest)

    def _record_interest(self, kind: InterestKind, node: int, interest: Interest) -> None:
        if self._lives[node]:  # a node that has never been on has no subscriptions yet
            language = self.run.scenario.workload.language
            self.recorder.add(interest_row(self.scheduler.now, kind, node, language, str(interest)))

    def _publish(self, action: Publish) -> None:
        now = self.scheduler.now
        _, node, content, size, cause = action
        protocol = self.protocols[node]
        if protocol is None:
            self.recorder.add(dropped_row(now, node, "publisher-down"))
            return
        self._published[node] += 1
        payload = self._payloads.get(size)
        if payload is None:
            payload = self._payloads[size] = bytes(size)
        number = node << NUMBER_BITS | self._published[node]  # as `event_id`, which is not compiled
        event = Event(
            id=number,
            time_s=now,
            content=content,
            payload=payload,
            cause=cause,
            utility=self._utility,
            signature=self._signature,
        )
        chains = None if self._causal is None else self._causal.published(event)
        shortest_hops = self.topology.distances(node)
        self.recorder.published(
            now,
            event,
            language=self._language,
            chains=chains,
            shortest_hops=shortest_hops,
            utility=self._canonical_utility,
        )
        waited_s = 0.0 if self._causal is None else self._causal.waited_s(event)
        if waited_s:
            self.recorder.add(waited_row(now, event, waited_s))
        host = self._hosts[node]
        if host is not None:
            host.work("match")
        protocol.publish(event)

    def _delivered(self, node: int, event: Event) -> None:
        """An application got an event. If it is to react, it publishes later: we are inside the protocol's own call."""
        if self._causal is not None:
            for reaction in self._causal.reactions(node, event):
                self.scheduler.put(self.scheduler.now + reaction.delay_s, _Doing(self, reaction.publish))


class _Doing(Due):
    """What an application is going to do."""

    __slots__ = ("_action", "_simulation")

    def __init__(self, simulation: Simulation, action: Action) -> None:
        super().__init__()
        self._simulation = simulation
        self._action = action

    def due(self) -> None:
        self._simulation.act(self._action)


def carried_event(message: Message | None) -> int | None:
    """The id of the event that a message carries."""
    event = carried(message)
    return None if event is None else event.id


def _processing(scenario: Scenario) -> Processing:
    """What nodes take to handle events, signatures included."""
    match_s = scenario.processing.match_s + scenario.security.signature_s
    return msgspec.structs.replace(scenario.processing, match_s=match_s)
