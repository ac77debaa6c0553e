"""A scenario: everything about a simulated network except which protocol runs in it.

It is plain data, read from TOML or the command line, and complete in itself: files that it names (positions,
movements, contacts) are read when the scenario is loaded and travel inside it, so a run can be repeated anywhere.
"""

from hashlib import blake2b
from math import inf
from typing import Literal

import msgspec

from roamcast.causal import parse_specification
from roamcast.form import protocol_digest, source_digest
from roamcast.interests.topics import LEVELS_MAX
from roamcast.protocols.api import require


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Base of every part of a scenario."""


class Mobility(Settings, frozen=True):
    """How nodes are placed and move. Which fields count depends on `model`."""

    model: Literal["static", "waypoint", "grid", "beehive", "group", "movements", "contacts"] = "waypoint"
    speed_min_mps: float = 0.1  # waypoint, group: trips take a uniform speed from here; 0 has no steady state
    speed_max_mps: float = 10.0
    pause_min_s: float = 0.0  # waypoint, group: rest between trips, uniform
    pause_max_s: float = 0.0
    groups: int = 5  # group: number of groups; nodes are dealt out evenly
    group_radius_m: float = 100.0  # group: members roam within this distance of their reference point
    spacing_m: float | None = None  # grid, beehive: distance of lattice neighbours; None fits the lattice to the area
    positions_m: tuple[tuple[float, float], ...] = ()  # static: given positions; none draws them uniformly
    paths: tuple[tuple[tuple[float, float, float], ...], ...] = ()  # movements: per node its corners (t_s, x_m, y_m)
    contacts: tuple[tuple[int, int, float, float], ...] = ()  # contacts: (a, b, from_s, until_s)

    def __post_init__(self) -> None:
        require(self.speed_min_mps > 0, "speed_min_mps", self.speed_min_mps, "above 0 (0 has no steady state)")
        require(self.speed_min_mps <= self.speed_max_mps, "speed_max_mps", self.speed_max_mps, "at least speed_min_mps")
        require(self.speed_max_mps <= 10_000, "speed_max_mps", self.speed_max_mps, "at most 10000")
        require(self.pause_min_s >= 0, "pause_min_s", self.pause_min_s, "at least 0")
        require(self.pause_min_s <= self.pause_max_s, "pause_max_s", self.pause_max_s, "at least pause_min_s")
        require(self.groups >= 1, "groups", self.groups, "at least 1")
        require(self.group_radius_m > 0, "group_radius_m", self.group_radius_m, "above 0")
        require(self.spacing_m is None or self.spacing_m > 0, "spacing_m", self.spacing_m, "above 0")


class Radio(Settings, frozen=True):
    """How frames travel. `None` takes the preset's value; `ideal` looks only at range, delay, rate and header."""

    model: Literal["ideal", "dcf"] = "dcf"
    preset: Literal["ns2", "ns3"] = "ns3"
    range_m: float = 200.0
    loss: float = 0.0  # share of receptions lost at random, on top of what the radio itself loses
    ideal_delay_s: float = 0.001  # ideal: from sending to hearing
    carrier_sense_range_m: float | None = None  # ns2: 2.2 times range_m; ns3: range_m
    capture: Literal["threshold", "bit-errors", "none"] | None = None  # ns2: threshold; ns3: bit-errors
    data_rate_mbps: float | None = None  # both: 2
    broadcast_rate_mbps: float | None = None  # ns2: 1; ns3: 2
    control_rate_mbps: float | None = None  # ACK, RTS and CTS; ns2: 1; ns3: 2
    rts_threshold_bytes: int | None = None  # unicasts of this size and above ask first; ns2: 0; ns3: never (2347)
    overhead_bytes: int | None = None  # MAC header and FCS (ns3: also LLC); ns2: 28; ns3: 36
    queue_frames: int | None = None  # ns2: 50; ns3: 500

    def __post_init__(self) -> None:
        require(self.range_m > 0, "range_m", self.range_m, "above 0")
        require(0 <= self.loss < 1, "loss", self.loss, "at least 0 and below 1")
        require(self.ideal_delay_s > 0, "ideal_delay_s", self.ideal_delay_s, "above 0")
        sense = self.carrier_sense_range_m
        require(sense is None or sense >= self.range_m, "carrier_sense_range_m", sense, "at least range_m")
        for field in ("data_rate_mbps", "broadcast_rate_mbps", "control_rate_mbps"):
            rate = getattr(self, field)
            require(rate is None or rate > 0, field, rate, "above 0")
        for field in ("rts_threshold_bytes", "overhead_bytes"):
            size = getattr(self, field)
            require(size is None or size >= 0, field, size, "at least 0")
        require(self.queue_frames is None or self.queue_frames > 0, "queue_frames", self.queue_frames, "at least 1")


class Causal(Settings, frozen=True):
    """Events that are published because others were received, beside all other events (`world/causal_workload.py`)."""

    dependencies: str = ""  # such as "a => b; b => c" (`causal/specification.py`); empty: there are none
    node_share: float = 0.1  # of the nodes take part
    graphs: int | None = None  # disjoint copies of the dependencies; None: as many as the causal nodes fill
    rate_per_s: float = 0.1  # publications per initiator
    reaction_delay_s: float = 0.005  # mean from receipt to publication; uniform between 0 and twice this

    def __post_init__(self) -> None:
        require(0 <= self.node_share <= 1, "node_share", self.node_share, "between 0 and 1")
        require(self.graphs is None or self.graphs >= 1, "graphs", self.graphs, "at least 1")
        require(self.rate_per_s >= 0, "rate_per_s", self.rate_per_s, "at least 0")
        require(self.reaction_delay_s >= 0, "reaction_delay_s", self.reaction_delay_s, "at least 0")


class Workload(Settings, frozen=True):
    """What applications publish and ask for."""

    language: Literal["intervals", "topics", "content"] = "intervals"  # content: the golf forum's
    publishers: int | None = None  # how many nodes publish; None takes publisher_share
    publisher_share: float = 0.2  # of the nodes
    subscribers: int | None = None  # how many nodes subscribe; None takes subscriber_share
    subscriber_share: float = 1.0
    subscriptions_per_node: int = 1
    selectivity: float = 0.1  # share of all events that one subscription matches
    pool: int = 10_000  # intervals: events are whole numbers in [0, pool)
    topic_depth: int = 3  # topics: levels of a topic
    topic_fanout: int = 4  # topics: names per level
    audience_share: float = 0.0  # content: above 0, so many subscriptions match every event and the others none
    rate_per_s: float = 0.5  # publications per publisher
    pattern: Literal["constant", "poisson", "ramp", "burst"] = "constant"
    burst_period_s: float = 20.0  # burst: one active stretch per period, at the rate that keeps the mean
    burst_share: float = 0.25  # burst: share of the period that is active
    resubscribe_period_s: float | None = None  # each subscription is replaced by a new one at this interval
    payload_bytes: int = 64  # above 1400 an event does not fit a frame: for protocols that split their messages
    start_s: float = 5.0  # first publications; gives structures time to form
    tail_s: float = 5.0  # no publications in the last seconds, so that every event has time to arrive
    causal: Causal = Causal()

    def __post_init__(self) -> None:
        for field in ("publisher_share", "subscriber_share", "selectivity", "audience_share", "burst_share"):
            require(0 <= getattr(self, field) <= 1, field, getattr(self, field), "between 0 and 1")
        for field in ("publishers", "subscribers"):
            count = getattr(self, field)
            require(count is None or count >= 0, field, count, "at least 0")
        for field in ("subscriptions_per_node", "pool", "topic_depth", "topic_fanout"):
            require(getattr(self, field) >= 1, field, getattr(self, field), "at least 1")
        require(self.topic_depth <= LEVELS_MAX, "topic_depth", self.topic_depth, f"at most {LEVELS_MAX}")
        require(self.topic_fanout <= 1000, "topic_fanout", self.topic_fanout, "at most 1000")
        require(self.burst_share > 0, "burst_share", self.burst_share, "above 0")
        require(self.burst_period_s > 0, "burst_period_s", self.burst_period_s, "above 0")
        require(self.rate_per_s >= 0, "rate_per_s", self.rate_per_s, "at least 0")
        period = self.resubscribe_period_s
        require(period is None or period > 0, "resubscribe_period_s", period, "above 0")
        require(0 <= self.payload_bytes <= 100_000, "payload_bytes", self.payload_bytes, "between 0 and 100000")
        require(self.start_s >= 0, "start_s", self.start_s, "at least 0")
        require(self.tail_s >= 0, "tail_s", self.tail_s, "at least 0")
        if self.causal.dependencies:
            require(self.language != "content", "language", self.language, "intervals or topics with causal events")
            parse_specification(self.causal.dependencies, language=self.language, copies=self.causal.graphs or 1)


class Partition(Settings, frozen=True):
    """For a time, nodes inside a rectangle and nodes outside it cannot hear each other."""

    from_s: float
    until_s: float
    west_m: float
    south_m: float
    east_m: float
    north_m: float

    def __post_init__(self) -> None:
        require(0 <= self.from_s < self.until_s, "until_s", self.until_s, "after from_s")
        require(self.west_m < self.east_m, "east_m", self.east_m, "east of west_m")
        require(self.south_m < self.north_m, "north_m", self.north_m, "north of south_m")


class Faults(Settings, frozen=True):
    """What goes wrong. Shares are of all nodes; no node suffers two of them; times are uniform over the run."""

    crash_share: float = 0.0  # crash for good
    return_share: float = 0.0  # crash and come back, with nothing remembered
    return_after_s: float = 30.0
    join_share: float = 0.0  # are switched on only during the run
    leave_share: float = 0.0  # say goodbye and go
    partitions: tuple[Partition, ...] = ()

    def __post_init__(self) -> None:
        shares = ("crash_share", "return_share", "join_share", "leave_share")
        for field in shares:
            require(0 <= getattr(self, field) <= 1, field, getattr(self, field), "between 0 and 1")
        total = sum(getattr(self, field) for field in shares)
        require(total <= 1, " + ".join(shares), total, "at most 1")
        require(self.return_after_s > 0, "return_after_s", self.return_after_s, "above 0")


class Scenario(Settings, frozen=True):
    nodes: int = 50
    area_m: tuple[float, float] = (1000.0, 1000.0)  # width and height
    duration_s: float = 100.0
    mobility: Mobility = Mobility()
    radio: Radio = Radio()
    workload: Workload = Workload()
    faults: Faults = Faults()

    def __post_init__(self) -> None:
        require(1 <= self.nodes <= 100_000, "nodes", self.nodes, "between 1 and 100000")
        sides_fit = all(0 < side_m < inf for side_m in self.area_m)
        require(sides_fit, "area_m", self.area_m, "above 0 and finite on both sides")
        require(0 < self.duration_s < inf, "duration_s", self.duration_s, "above 0 and finite")
        for field in ("publishers", "subscribers"):
            count = getattr(self.workload, field)
            require(count is None or count <= self.nodes, f"workload.{field}", count, f"at most nodes ({self.nodes})")
        causal = self.workload.causal
        enough = not causal.dependencies or causal.node_share * self.nodes >= 1.5
        require(enough, "workload.causal.node_share", causal.node_share, f"two of {self.nodes} nodes or more")
        given = len(self.mobility.positions_m)
        require(given in (0, self.nodes), "nodes", self.nodes, f"{given}, as many as there are positions")
        paths = self.mobility.paths
        require(not paths or len(paths) == self.nodes, "nodes", self.nodes, f"{len(paths)}, as in the movement file")


class Run(Settings, frozen=True):
    """One simulation: a scenario, a protocol with its settings, a seed. Nothing else decides what happens."""

    scenario: Scenario = Scenario()
    protocol: str = "flooding"
    parameters: dict[str, str | int | float | bool] = {}
    seed: int = 1


def run_id(run: Run) -> str:
    """A name that belongs to everything that can decide the run's trace: the run, and the sources that simulate it.

    The sources are Roamcast's and, for a protocol named by import path, all of its package.
    """
    sources = source_digest() + protocol_digest(run.protocol)
    return blake2b(msgspec.json.encode((sources, run), order="deterministic"), digest_size=8).hexdigest()
