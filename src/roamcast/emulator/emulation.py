"""Running a scenario with real nodes, in real time.

The plan is the simulator's: movements, contacts, applications and faults come from the same seed, and so does what
protocols draw. Every node is a
`roamcast node` process on a machine of its own. Contacts open and close the air between machines; a crash is
`kill -9`, a return a new process, a departure `quit`, a pause `SIGSTOP`. What a node hears of its place is what the
scenario's positioning says, once a second.

Programs take seconds to load, and simulated nodes start at once. So a process is started early and held: it has loaded
everything, and becomes a node at the instant of the plan.
"""

import asyncio
import contextlib
import json
import os
import signal
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from roamcast.emulator import disturbance
from roamcast.emulator.air import Air
from roamcast.emulator.machines import AIR_PRIORITY, GROUP, NO_PRIORITY, NODE_PRIORITY, Machines, prefer
from roamcast.emulator.record import EmulationTrace
from roamcast.errors import ConfigurationError
from roamcast.events import Event
from roamcast.interests import Interest
from roamcast.live.keys import new_ring, write_ring
from roamcast.seeds import derive, derive_int
from roamcast.trace.rows import (
    contact_row,
    delivered_row,
    dropped_row,
    end_row,
    fault_row,
    interest_row,
    position_row,
    published_row,
)
from roamcast.world.contacts import scenario_contacts
from roamcast.world.faults import Fault, fault_plan
from roamcast.world.incident import LIVES, Incident
from roamcast.world.mobility import scenario_movements
from roamcast.world.positioning import whereabouts
from roamcast.world.radio.links import RadioLinks
from roamcast.world.radio.models.ideal import Ideal
from roamcast.world.scenario import Run, run_id
from roamcast.world.signal_contacts import signal_links, update_times_s
from roamcast.world.workload import Action, Advertise, Publish, Subscribe, Unsubscribe, agenda

NODES_MAX = 64
DURATION_S_MAX = 3600.0
DELAY_S = Ideal().delay_s  # of radios that do not say
START_PATIENCE_S = 120.0
STOP_PATIENCE_S = 15.0
MOVE_PERIOD_S = 1.0
WRITE_PERIOD_S = 1.0  # of the trace
NOTICE_S = 0.5  # how long before the run begins nodes are told when
AHEAD_S = 15.0  # how early the process of a node that joins or returns is started
RAIN = "@"  # payloads are made of it: eight of them, read as a double, are a rain of 32.5 mm/h
INCIDENTS = ("pause", "deaf", *LIVES, *disturbance.KINDS)


class EmulationSettings(msgspec.Struct, frozen=True):
    """What a scenario does not say about machines and the links between them."""

    rate_mbps: float | None = None  # of each link; None: frames take no time
    shared_mbps: float | None = None  # that stations in range of each other share
    cpu_share: float = 1.0  # of a core that each machine has

    def __post_init__(self) -> None:
        for name in ("rate_mbps", "shared_mbps"):
            value = getattr(self, name)
            if value is not None and not 0 < value < 1e6:
                raise ConfigurationError(f"{name} = {value:g}: must be above 0")
        if not 0 < self.cpu_share <= 1:
            raise ConfigurationError(f"cpu_share = {self.cpu_share:g}: must be above 0, at most 1")


USUAL = EmulationSettings()


class Emulated(NamedTuple):
    behind_s: float  # the most by which something happened too late
    air_frames: int  # that crossed the air, acknowledgements and retransmissions included
    air_bytes: int
    struck: int = 0  # frames that an incident struck


def require_emulable(run: Run) -> None:
    """Refuses what the emulator cannot do, before anything is started."""
    scenario = run.scenario
    if scenario.nodes > NODES_MAX:
        raise ConfigurationError(f"scenario.nodes = {scenario.nodes}: an emulation has at most {NODES_MAX}")
    if scenario.duration_s > DURATION_S_MAX:
        raise ConfigurationError(f"scenario.duration_s = {scenario.duration_s:g}: at most {DURATION_S_MAX:g} here")
    if scenario.workload.causal.dependencies:
        raise ConfigurationError("scenario.workload.causal: causal events are simulated only; leave them out")
    if scenario.workload.utility:
        raise ConfigurationError("scenario.workload.utility: deadlines are simulated only; leave them out")
    if scenario.radio.signal.fading != "none":
        raise ConfigurationError(
            "scenario.radio.signal.fading: fades of single frames are simulated only; write 'none'"
        )
    if scenario.security.protection == "signed":
        text = "the addresses of nodes with identities follow from their keys; write 'sealed' or 'none'"
        raise ConfigurationError(f"scenario.security.protection = 'signed': is simulated only, because {text}")
    for incident in scenario.faults.incidents:
        if incident.what not in INCIDENTS:
            allowed = ", ".join(INCIDENTS)
            raise ConfigurationError(f"scenario.faults.incidents: {incident.what!r} is simulated only; here: {allowed}")
    for name, given in (
        ("faults.dropper_share", scenario.faults.dropper_share > 0),
        ("faults.adversary_share", scenario.faults.adversary_share > 0),
        ("processing", scenario.processing.takes_time),
    ):
        if given:
            raise ConfigurationError(f"scenario.{name}: is simulated only; leave it out")


class _Node:
    """One machine's node, over all its lives."""

    def __init__(self) -> None:
        self.process: Any = None
        self.lives = 0
        self.wanted: list[Interest] = []
        self.offered: list[Interest] = []
        self.unconfirmed: list[Publish] = []  # published, but the node has not said so yet
        self.held = asyncio.Event()  # its process has loaded everything
        self.is_released = False  # its process is a node
        self.has_lived = False  # it was released at least once: before, nobody knows of it
        self.released_s = 0.0  # when it became one, or should have

    @property
    def is_up(self) -> bool:
        return self.is_released and self.process.poll() is None

    def release(self, at_s: float) -> None:
        """Has the process become a node at that instant of the clock that all processes share."""
        self.is_released = True
        self.say(f"{at_s:.6f}")
        for interest in self.offered:
            self.say(f"advertise {interest}")
        for interest in self.wanted:
            self.say(f"subscribe {interest}")

    def say(self, command: str) -> None:
        with contextlib.suppress(OSError, ValueError):  # it is gone
            self.process.stdin.write(f"{command}\n".encode())
            self.process.stdin.flush()


class Emulation:
    """A run in real time; `emulate` is the whole of it."""

    def __init__(self, run: Run, machines: Machines, trace: EmulationTrace, settings: EmulationSettings) -> None:
        scenario = run.scenario
        self._run = run
        self._machines = machines
        self._trace = trace
        self._settings = settings
        self._loop = asyncio.get_running_loop()
        self._movements = scenario_movements(scenario, run.seed)
        self._whereabouts = whereabouts(scenario, self._movements, run.seed)
        self._nodes = [_Node() for _ in range(scenario.nodes)]
        self._key: Path | None = None
        if scenario.security.protection == "sealed":
            self._key = trace.nodes / "network.key"
            write_ring(self._key, new_ring("emulation", time.time()))
        self._air = Air(
            machines.ports,
            delay_s=getattr(scenario.radio, "delay_s", DELAY_S),
            loss=scenario.radio.loss,
            random=derive(run.seed, "radio"),
            rate_bps=_bps(settings.rate_mbps),
            shared_bps=_bps(settings.shared_mbps),
        )
        self._in_contact: set[tuple[int, int]] = set()
        self._events: dict[int, Event] = {}
        self._early: dict[int, list[tuple[int, dict[str, Any]]]] = {}  # deliveries of events not yet known
        self._began_s = 0.0  # by the loop's clock
        self._began_unix_s = 0.0
        self._written: asyncio.Future[None] = self._loop.create_future()  # the last part of the trace
        self._written.set_result(None)
        self.behind_s = 0.0

    async def run(self, tell: Callable[[str], None]) -> Emulated:
        scenario = self._run.scenario
        faults = fault_plan(scenario, self._run.seed)
        absent = {fault.node for fault in faults if fault.what == "join"}
        try:
            present = [node for node in range(scenario.nodes) if node not in absent]
            tell(f"starting {len(present)} nodes")
            for node in present:
                self._start(node)
            waits = [self._nodes[node].held.wait() for node in present]
            await asyncio.wait_for(asyncio.gather(*waits), START_PATIENCE_S)
            plan = self._plan(faults)
            prefer(os.getpid(), AIR_PRIORITY)
            self._began_s = self._loop.time() + NOTICE_S
            self._began_unix_s = time.time() + NOTICE_S
            tell(f"running for {scenario.duration_s:g} s")
            for node in present:
                self._release(node, 0.0)
            await self._follow(plan)
            await self._wait_until(scenario.duration_s)
        except TimeoutError:
            raise ConfigurationError(f"emulate: not all nodes started within {START_PATIENCE_S:g} s") from None
        finally:
            prefer(os.getpid(), NO_PRIORITY)
            await self._stop()
            self._air.close()
        await self._written
        self._trace.add(end_row(scenario.duration_s, scenario.nodes))
        self._trace.flush(self._began_unix_s, scenario.duration_s)
        behind_s = max(self.behind_s, self._air.behind_s)
        return Emulated(behind_s, self._air.frames, self._air.bytes, self._air.disturbances.count)

    def _write(self) -> None:
        """Writes the trace up to now, in a thread: frames must not wait for the disk."""
        if self._written.done():
            self._written.result()  # what went wrong in the thread ends the emulation
            duration_s = self._run.scenario.duration_s
            self._written = self._loop.run_in_executor(None, self._trace.flush, self._began_unix_s, duration_s)

    # -- the plan ------------------------------------------------------------------------------------------------

    def _plan(self, faults: list[Fault]) -> list[tuple[float, int, Callable[[], None]]]:
        """What happens when; the number keeps the order of what happens at one instant."""
        scenario = self._run.scenario
        plan: list[tuple[float, int, Callable[[], None]]] = []

        def at(t_s: float, call: Callable[..., None], *arguments: Any) -> None:
            if t_s < scenario.duration_s:
                plan.append((t_s, len(plan), partial(call, *arguments)))

        links = signal_links(scenario, self._movements, self._run.seed)
        if links is not None and self._movements is not None:
            for t_s in (0.0, *update_times_s(scenario, self._movements)):
                at(t_s, self._change_links, links, t_s)
        else:
            contacts = scenario_contacts(scenario, self._movements)
            for a, b, from_s, until_s in zip(
                *(contacts.a.tolist(), contacts.b.tolist(), contacts.from_s.tolist(), contacts.until_s.tolist()),
                strict=True,
            ):
                at(from_s, self._contact, a, b, True)
                at(until_s, self._contact, a, b, False)
        free_s = [0.0] * scenario.nodes  # when the process of the life before is gone
        for fault in faults:
            if fault.what in ("join", "return"):
                at(max(free_s[fault.node], fault.t_s - AHEAD_S), self._start, fault.node)
            at(fault.t_s, self._strike, fault)
            free_s[fault.node] = fault.t_s
        for incident in scenario.faults.incidents:
            if incident.what not in LIVES:
                at(incident.from_s, self._befall, incident, True)
                at(incident.until_s, self._befall, incident, False)
        for second in range(1, int(scenario.duration_s / WRITE_PERIOD_S)):
            at(second * WRITE_PERIOD_S, self._write)
        for action in agenda(scenario, self._run.seed):
            at(action.t_s, self._act, action)
        if self._movements is not None:
            for node in range(scenario.nodes):
                for t_s, x_m, y_m in self._movements.until(node, scenario.duration_s):
                    self._trace.add(position_row(t_s, node, x_m, y_m))
            for second in range(1, int(scenario.duration_s / MOVE_PERIOD_S)):
                at(second * MOVE_PERIOD_S, self._move_all)
        return sorted(plan, key=lambda entry: entry[:2])

    async def _follow(self, plan: list[tuple[float, int, Callable[[], None]]]) -> None:
        for t_s, _, call in plan:
            await self._wait_until(t_s)
            self.behind_s = max(self.behind_s, self._now() - t_s)
            call()

    async def _wait_until(self, t_s: float) -> None:
        left_s = t_s - self._now()
        if left_s > 0:
            await asyncio.sleep(left_s)

    def _now(self) -> float:
        return self._loop.time() - self._began_s if self._began_s else 0.0

    def _contact(self, a: int, b: int, begins: bool) -> None:
        self._air.connect(a, b, in_range=begins)
        self._trace.add(contact_row(self._now(), a, b, begins=begins))

    def _change_links(self, links: RadioLinks, t_s: float) -> None:
        """With signals that are not discs. A contact is a link that works in both directions."""
        links.update(t_s, self._run.scenario.partitions())
        self._air.listen(links.lists()[0])
        contacts = links.contacts()
        for a, b in sorted(self._in_contact ^ contacts):
            self._trace.add(contact_row(self._now(), a, b, begins=(a, b) in contacts))
        self._in_contact = contacts

    def _strike(self, fault: Fault) -> None:
        self._trace.add(fault_row(self._now(), fault.node, fault.what))
        match fault.what:
            case "crash":
                self._air.switch(fault.node, on=False)
                self._nodes[fault.node].process.kill()
                self._nodes[fault.node].is_released = False
            case "leave":
                self._nodes[fault.node].say("quit")
            case _:
                self._release(fault.node, fault.t_s)

    def _befall(self, incident: Incident, begins: bool) -> None:
        if incident.what == "deaf":
            self._air.deafen(incident.node, incident.peer, deaf=begins)
            return
        if incident.what in disturbance.KINDS:
            (self._air.disturbances.begin if begins else self._air.disturbances.end)(incident)
            return
        process = self._nodes[incident.node].process
        if process is not None and process.poll() is None:
            process.send_signal(signal.SIGSTOP if begins else signal.SIGCONT)

    def _move_all(self) -> None:
        for node, each in enumerate(self._nodes):
            place = self._whereabouts.position(node, self._now())
            if place is not None and each.is_released:
                each.say(f"move {place[0]:.3f},{place[1]:.3f}")

    # -- applications --------------------------------------------------------------------------------------------

    def _act(self, action: Action) -> None:
        """An application does something; if its node is down it keeps what it wants for later."""
        node = self._nodes[action.node]
        language = self._run.scenario.workload.language
        is_up = node.is_up
        match action:
            case Publish():
                if is_up:
                    node.unconfirmed.append(action)
                    content = " ".join(str(action.content).split())
                    payload = "" if language == "content" else RAIN * action.payload_bytes
                    node.say(f"publish {content} {payload}".rstrip())
                else:
                    self._trace.add(dropped_row(self._now(), action.node, "publisher-down"))
                return
            case Subscribe(interest=interest):
                node.wanted.append(interest)
                kind, command = "subscribed", "subscribe"
            case Unsubscribe(interest=interest):
                node.wanted.remove(interest)
                kind, command = "unsubscribed", "unsubscribe"
            case Advertise(interest=interest):
                node.offered.append(interest)
                kind, command = "advertised", "advertise"
        if node.has_lived:
            self._trace.add(interest_row(self._now(), kind, action.node, language, str(interest)))  # type: ignore[arg-type]
        if is_up:
            node.say(f"{command} {interest}")

    # -- nodes ---------------------------------------------------------------------------------------------------

    def _start(self, number: int) -> None:
        scenario = self._run.scenario
        node = self._nodes[number]
        node.lives += 1
        node.held.clear()
        node.is_released = False
        words = ["node", "--held", "--address", str(number), "--json", "--protocol", self._run.protocol]
        words += ["--plain"] if self._key is None else ["--key", str(self._key)]
        words += ["--broadcast", GROUP, "--language", scenario.workload.language]
        words += ["--site", "{}x{}".format(*scenario.area_m), "--range", str(scenario.radio.range_m)]
        folder = self._trace.nodes
        words += ["--trace", str(folder / f"trace-{number:03}-{node.lives}"), "--state", str(folder)]
        words += ["--cpu-share", str(self._settings.cpu_share)]
        words += ["--seed", str(derive_int(self._run.seed, "node", number, node.lives))]
        for name, value in self._run.parameters.items():
            words += ["--set", f"{name}={value}"]
        place = self._whereabouts.position(number, self._now())
        if place is not None:
            words += ["--position", f"{place[0]:.3f},{place[1]:.3f}"]
        node.process = self._machines.start(number, words)
        if self._began_s:  # it must have loaded everything when it is due
            prefer(node.process.pid, NODE_PRIORITY)
        threading.Thread(target=self._listen, args=(number, node.process), daemon=True).start()

    def _release(self, number: int, t_s: float) -> None:
        node = self._nodes[number]
        self._air.switch(number, on=True)
        node.released_s = t_s
        if not node.has_lived:
            node.has_lived = True
            language = self._run.scenario.workload.language
            for interest in node.offered:
                self._trace.add(interest_row(self._now(), "advertised", number, language, str(interest)))
            for interest in node.wanted:
                self._trace.add(interest_row(self._now(), "subscribed", number, language, str(interest)))
        node.release(self._began_s + t_s)

    def _listen(self, number: int, process: Any) -> None:
        """Runs in a thread for each life of a node: hands its lines to the loop."""
        for line in process.stdout:
            try:
                fields = json.loads(line)
            except ValueError:
                continue
            with contextlib.suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(self._told, number, fields)
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._ended, number, process)

    def _ended(self, number: int, process: Any) -> None:
        """A node that has said goodbye and left is in nobody's reach."""
        if self._nodes[number].process is process:
            self._air.switch(number, on=False)

    def _told(self, number: int, fields: dict[str, Any]) -> None:
        node = self._nodes[number]
        match fields.get("kind"):
            case "held":
                node.held.set()
                prefer(node.process.pid, NODE_PRIORITY)
            case "started":
                self.behind_s = max(self.behind_s, self._now() - node.released_s)
            case "published" if node.unconfirmed:
                self._published(number, node.unconfirmed.pop(0), fields)
            case "delivered":
                self._delivered(number, fields)

    def _published(self, number: int, action: Publish, fields: dict[str, Any]) -> None:
        t_s = fields["time_s"] - self._began_unix_s
        payload = bytes(0 if self._run.scenario.workload.language == "content" else action.payload_bytes)
        event = Event(fields["event_id"], t_s, action.content, payload)
        self._events[event.id] = event
        hops = self._air.hops_from(number)
        self._trace.add(published_row(t_s, event, self._run.scenario.workload.language, shortest_hops=hops))
        for node, delivery in self._early.pop(event.id, []):
            self._delivered(node, delivery)

    def _delivered(self, number: int, fields: dict[str, Any]) -> None:
        event = self._events.get(fields["event_id"])
        if event is None:
            self._early.setdefault(fields["event_id"], []).append((number, fields))
            return
        self._trace.add(delivered_row(event.time_s + fields["latency_ms"] / 1000, number, event, fields["hops"]))

    async def _stop(self) -> None:
        running = [node for node in self._nodes if node.process is not None and node.process.poll() is None]
        for node in running:
            node.process.send_signal(signal.SIGCONT)
            node.say("\nhalt")  # two lines: one may be held; no goodbyes, which the simulator does not have at the end
        give_up_s = self._loop.time() + STOP_PATIENCE_S
        while running and self._loop.time() < give_up_s:
            running = [node for node in running if node.process.poll() is None]
            await asyncio.sleep(0.05)
        for node in self._nodes:
            if node.process is not None:
                node.process.kill()
                node.process.wait()
        await asyncio.sleep(0.1)  # the last lines are handed over


def _bps(mbps: float | None) -> float | None:
    return None if mbps is None else mbps * 1e6


def emulate(
    run: Run,
    out: Path,
    settings: EmulationSettings = USUAL,
    tell: Callable[[str], None] = lambda line: None,
) -> Emulated:
    """Runs the scenario in real time; its trace grows at `out`.

    The process must be in a network of its own (`machines.enter_own_network`).
    """
    require_emulable(run)
    trace = EmulationTrace(out, run_id(run), msgspec.json.encode(run, order="deterministic"))
    try:
        machines = Machines(run.scenario.nodes)
        try:

            async def whole() -> Emulated:
                return await Emulation(run, machines, trace, settings).run(tell)

            return asyncio.run(whole())
        finally:
            machines.close()
    finally:
        trace.close()
