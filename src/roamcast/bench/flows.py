"""AODV end to end beside ns-3's: the same movements, the same packets from node to node.

A reference file (`tests/reference/aodv-*.json`) holds the movements as an ns-2 file, who sends packets to whom, and
what ns-3's AODV made of it, measured by `peers/ns3/aodv.cc`. We run the same through our simulator and our AODV.

Frames are as large as ns-3's: 36 bytes of MAC header, LLC and FCS, 28 bytes of IP and UDP, and the payload. Our AODV
takes the settings of ns-3's, which differ from the draft's defaults (`NS3` in `protocols/routing/parameters.py`).
"""

from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

import msgspec
import pyarrow.compute as pc

from roamcast.bench.processes import ask
from roamcast.errors import ConfigurationError
from roamcast.events import Event, event_id
from roamcast.interests import Interest
from roamcast.protocols import api
from roamcast.protocols.api import Category, Host, Message
from roamcast.protocols.components import ComposedProtocol
from roamcast.protocols.routing import NS3, Control, Routed, Unicast, unicast
from roamcast.seeds import derive
from roamcast.world.files import movements_text, ns2
from roamcast.world.mobility import Movements, scenario_movements
from roamcast.world.radio.models.wifi_b import Wifi80211b
from roamcast.world.scenario import Mobility, Run, Scenario
from roamcast.world.simulator import simulate
from roamcast.world.workload import Action, Publish

FIGURES = ("delivery", "delay_ms_mean", "hops_mean", "requests")
HEADER_BYTES = 36 + 28

Figures = dict[str, float]


class Flow(msgspec.Struct, frozen=True):
    """A packet every `period_s`, from `start_s` on."""

    source: int
    destination: int
    start_s: float
    period_s: float


class Reference(msgspec.Struct, frozen=True):
    """One comparison: what happens, and what ns-3 measured, once per seed."""

    range_m: float
    area_m: tuple[float, float]
    duration_s: float
    measured_before_s: float  # packets sent later may still be under way at the end
    payload_bytes: int
    flows: tuple[Flow, ...]
    movements: str  # an ns-2 movement file
    ns3: tuple[dict[str, Any], ...] = ()

    def packets(self) -> list[tuple[float, int, int]]:
        """When, from whom, to whom."""
        sent: list[tuple[float, int, int]] = []
        for flow in self.flows:
            number = 0
            while (t_s := flow.start_s + number * flow.period_s) < self.duration_s:
                sent.append((t_s, flow.source, flow.destination))
                number += 1
        return sorted(sent)


class Letter(Message, frozen=True, tag=16):
    category: ClassVar[Category] = "publish_subscribe"

    event: Event


class ToAddress(ComposedProtocol):
    """Sends each event to the node that its content names, over AODV."""

    name: ClassVar[str] = "to-address"
    summary: ClassVar[str] = "sends an event to the node whose address is its content"
    Parameters: ClassVar[type[api.Parameters]] = api.Parameters
    messages: ClassVar[Any] = Control | Routed[Letter]

    def __init__(self, host: Host, parameters: api.Parameters) -> None:
        super().__init__(host)
        self._unicast: Unicast = unicast(
            "aodv", host, self.inputs, arrived=self._arrived, unreachable=self._unreachable, parameters=NS3
        )
        self.compose(self._unicast)

    def subscribe(self, interest: Interest) -> None:
        """Packets are addressed, not asked for."""

    def unsubscribe(self, interest: Interest) -> None:
        """Packets are addressed, not asked for."""

    def publish(self, event: Event) -> None:
        self._unicast.send(int(event.content), Letter(event))

    def _arrived(self, source: int, payload: Message, hops: int) -> None:
        assert isinstance(payload, Letter)
        self.host.deliver(payload.event, hops)

    def _unreachable(self, destination: int, payload: Message) -> None:
        """The packet is lost, and counted as such because it never arrives."""

    def start(self) -> None:
        self._unicast.start()


def figures(reference: Reference, seed: int) -> Figures:
    """What our AODV makes of it."""
    recording = ns2.read(Path("movements"), reference.movements)
    scenario = Scenario(
        nodes=len(recording.paths),
        area_m=reference.area_m,
        duration_s=reference.duration_s,
        mobility=Mobility(model="movements", paths=recording.paths),
        radio=Wifi80211b(preset="ns3", range_m=reference.range_m, overhead_bytes=HEADER_BYTES),
    )
    payload = _padding(reference.payload_bytes)
    actions: list[Action] = [Publish(t_s, source, to, payload) for t_s, source, to in reference.packets()]
    run = Run(scenario=scenario, protocol="roamcast.bench.flows:ToAddress", seed=seed)
    result = simulate(run, actions=actions)
    table = result.recorder.table()
    first = table.filter(
        (pc.field("kind") == "delivered") & (pc.field("t") - pc.field("value") < reference.measured_before_s)
    )
    arrived = first.group_by("event_id").aggregate([("value", "min"), ("hops", "min")])
    expected = sum(t_s < reference.measured_before_s for t_s, _, _ in reference.packets())
    frames = {
        label: sum(load[label].count for load in result.medium.loads if label in load)
        for label in ("Rreq", "Rrep", "Rerr", "Hello", "Letter")
    }
    return {
        "delivery": arrived.num_rows / expected,
        "delay_ms_mean": 1000 * pc.mean(arrived["value_min"]).as_py(),
        "hops_mean": pc.mean(arrived["hops_min"]).as_py(),
        "requests": float(frames["Rreq"]),
        "replies": float(frames["Rrep"]),
        "errors": float(frames["Rerr"]),
        "hellos": float(frames["Hello"]),
        "data_frames": float(frames["Letter"]),
    }


def compare(reference: Reference, seeds: int) -> dict[str, Any]:
    """Our figures, ns-3's and the differences, each a mean over seeds. The difference of the delivery is in points, the
    others are relative."""
    ours = [figures(reference, seed) for seed in range(1, seeds + 1)]
    means = {name: (fmean(run[name] for run in ours), fmean(run[name] for run in reference.ns3)) for name in FIGURES}
    return {
        "ours": {name: mean for name, (mean, _) in means.items()},
        "ns3": {name: theirs for name, (_, theirs) in means.items()},
        "difference": {
            name: mean - theirs if name == "delivery" else mean / theirs - 1 for name, (mean, theirs) in means.items()
        },
    }


def _padding(wire_bytes: int) -> int:
    """The payload of an event with which a routed packet takes about `wire_bytes`."""
    event = Event(event_id(1, 1), 0.5, 1, b"")
    return wire_bytes - len(msgspec.msgpack.encode(Routed(1, 1, 1, 1, Letter(event))))


def draw(seed: int, speed_max_mps: float) -> Reference:
    """A reference without measurements: random waypoint, and ten pairs of nodes, each with four packets a second."""
    nodes, side_m, duration_s = 50, 1000.0, 100.0
    mobility = Mobility(speed_min_mps=1.0, speed_max_mps=speed_max_mps)
    scenario = Scenario(nodes=nodes, area_m=(side_m, side_m), duration_s=duration_s, mobility=mobility)
    movements = scenario_movements(scenario, seed)
    assert movements is not None
    rounded = Movements(
        [(round(t_s, 3), round(x_m, 2), round(y_m, 2)) for t_s, x_m, y_m in movements.until(node, duration_s)]
        for node in range(nodes)
    )
    random = derive(seed, "bench", "flows")
    ends = random.sample(range(nodes), 20)
    flows = tuple(
        Flow(ends[pair], ends[pair + 10], round(random.uniform(5.0, 10.0), 6), 0.25) for pair in range(10)
    )
    return Reference(
        range_m=250.0,
        area_m=(side_m, side_m),
        duration_s=duration_s,
        measured_before_s=duration_s - 10.0,
        payload_bytes=64,
        flows=flows,
        movements=movements_text(rounded, (side_m, side_m), duration_s),
    )


def measured_by_ns3(reference: Reference, program: Path, seeds: int) -> Reference:
    """The same with what ns-3 measured."""
    with TemporaryDirectory(prefix="roamcast-") as folder:
        flows, movements = Path(folder, "flows"), Path(folder, "movements.ns2")
        flows.write_text(_flows_text(reference), encoding="ascii")
        movements.write_text(reference.movements, encoding="utf-8")
        answers = tuple(
            ask("ns-3", (str(program), str(flows), str(movements), str(seed))) for seed in range(1, seeds + 1)
        )
    return msgspec.structs.replace(reference, ns3=answers)


def _flows_text(reference: Reference) -> str:
    """One statement per line, as `peers/ns3/aodv.cc` reads them."""
    nodes = len(ns2.read(Path("movements"), reference.movements).paths)
    lines = [f"{name} {getattr(reference, name)}" for name in ("range_m", "duration_s", "measured_before_s")]
    lines += [f"payload_bytes {reference.payload_bytes}", f"nodes {nodes}"]
    lines += [f"packet {t_s!r} {source} {destination}" for t_s, source, destination in reference.packets()]
    return "\n".join(lines) + "\n"


def is_reference(path: Path) -> bool:
    """Whether the file is one of ours, rather than a layout of the radio's (`bench/fidelity.py`)."""
    try:
        return isinstance(msgspec.json.decode(path.read_bytes(), type=dict[str, Any]).get("flows"), list)
    except (OSError, msgspec.DecodeError):
        return False


def reference_text(reference: Reference) -> str:
    return msgspec.json.format(msgspec.json.encode(reference), indent=1).decode() + "\n"


def read_reference(path: Path) -> Reference:
    try:
        return msgspec.json.decode(path.read_bytes(), type=Reference)
    except OSError as error:
        raise ConfigurationError(f"{path}: cannot be read: {error.strerror}") from None
    except msgspec.DecodeError as error:
        raise ConfigurationError(f"{path}: is not a reference of AODV: {error}") from None
