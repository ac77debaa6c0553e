"""A scenario: everything about a simulated network except which protocol runs in it.

It is plain data, read from TOML or the command line, and complete in itself: files that it names (positions,
movements, contacts) are read when the scenario is loaded and travel inside it, so a run can be repeated anywhere.
"""

from hashlib import blake2b
from math import inf
from typing import Final, Literal

import msgspec

from roamcast.causal import parse_specification
from roamcast.form import protocol_digest, source_digest
from roamcast.interests.topics import LEVELS_MAX
from roamcast.protocols.api import require
from roamcast.trace.utility import parse_utility
from roamcast.world.incident import Incident, check_incidents
from roamcast.world.radio.models import AnyRadio
from roamcast.world.radio.models.wifi_b import Wifi80211b
from roamcast.world.settings import Settings

SEAL_BYTES: Final = 43  # header and tag of a sealed datagram (docs/security.md)
SIGNATURE_BYTES: Final = 64


class Mobility(Settings, frozen=True):
    """How nodes are placed and move. Which fields count depends on `model`."""

    model: Literal[
        "static", "waypoint", "grid", "beehive", "group", "gauss-markov", "roads", "golf", "movements", "contacts"
    ] = "waypoint"
    speed_min_mps: float = 0.1  # waypoint, group, roads, golf: uniform from here; 0 has no steady state
    speed_max_mps: float = 10.0
    pause_min_s: float = 0.0  # waypoint, group: rest between trips; roads: at crossings; golf: before and after a hole
    pause_max_s: float = 0.0
    groups: int = 5  # group: number of groups; nodes are dealt out evenly
    group_radius_m: float = 100.0  # group, golf: members roam within this distance of their reference point
    spacing_m: float | None = None  # grid, beehive: distance of lattice neighbours; None fits the lattice to the area
    speed_mean_mps: float = 2.0  # gauss-markov: mean speed
    memory: float = 0.9  # gauss-markov: correlation of the velocity with that of a second ago, 0 to 1
    block_m: float = 200.0  # roads: distance of parallel roads, to the nearest that fits the area
    holes: int = 18  # golf: on the course; an announcer stays at each
    flights: int = 6  # golf: groups of players, each on its way around the course
    players: int = 3  # golf: per flight; all further nodes are spectators
    follow_delay_s: float = 20.0  # golf: spectators follow their flight by this much
    positions_m: tuple[tuple[float, float], ...] = ()  # static: given positions; none draws them uniformly
    paths: tuple[tuple[tuple[float, float, float], ...], ...] = ()  # movements: per node its corners (t_s, x_m, y_m)
    names: tuple[str, ...] = ()  # movements: per node, what the file calls it
    present: tuple[tuple[float, float], ...] = ()  # movements: per node, from when until when; empty: always
    origin_deg: tuple[float, float] | None = None  # latitude and longitude of the area's south-west corner
    contacts: tuple[tuple[int, int, float, float], ...] = ()  # contacts: (a, b, from_s, until_s)

    def __post_init__(self) -> None:
        require(self.speed_min_mps > 0, "speed_min_mps", self.speed_min_mps, "above 0 (0 has no steady state)")
        require(self.speed_min_mps <= self.speed_max_mps, "speed_max_mps", self.speed_max_mps, "at least speed_min_mps")
        for field in ("speed_max_mps", "speed_mean_mps"):
            require(0 < getattr(self, field) <= 10_000, field, getattr(self, field), "above 0 and at most 10000")
        require(self.pause_min_s >= 0, "pause_min_s", self.pause_min_s, "at least 0")
        require(self.pause_min_s <= self.pause_max_s, "pause_max_s", self.pause_max_s, "at least pause_min_s")
        for field in ("groups", "holes", "flights", "players"):
            require(getattr(self, field) >= 1, field, getattr(self, field), "at least 1")
        require(self.group_radius_m > 0, "group_radius_m", self.group_radius_m, "above 0")
        require(self.spacing_m is None or self.spacing_m > 0, "spacing_m", self.spacing_m, "above 0")
        require(0 <= self.memory < 1, "memory", self.memory, "at least 0 and below 1")
        require(self.block_m > 0, "block_m", self.block_m, "above 0")
        require(self.follow_delay_s >= 0, "follow_delay_s", self.follow_delay_s, "at least 0")
        for per_node in ("names", "present"):
            given = len(getattr(self, per_node))
            require(given in (0, len(self.paths)), per_node, given, f"one per path ({len(self.paths)}), or none")
        for span in self.present:
            require(0 <= span[0] < span[1], "present", span, "from when until when, in seconds")
        if self.origin_deg is not None:
            latitude, longitude = self.origin_deg
            is_there = -90 <= latitude <= 90 and -180 <= longitude <= 180
            require(is_there, "origin_deg", self.origin_deg, "a latitude and a longitude in degrees")


class Positioning(Settings, frozen=True):
    """What nodes are told about where they are (`Host.position`). Their velocity is that of the place they are told."""

    source: Literal["exact", "none"] = "exact"  # none: no node ever learns its position or velocity
    bias_m: float = 0.0  # a fixed error per node: root mean square of its length
    drift_m: float = 0.0  # an error that wanders, on top: root mean square of its length
    drift_time_s: float = 60.0  # how long the wandering error resembles itself (correlation falls to 1/e)

    def __post_init__(self) -> None:
        for field in ("bias_m", "drift_m"):
            require(0 <= getattr(self, field) <= 1e6, field, getattr(self, field), "between 0 and 1000000")
        require(self.drift_time_s >= 0.1, "drift_time_s", self.drift_time_s, "at least 0.1")


class Processing(Settings, frozen=True):
    """What nodes take to handle events (`world/processing.py`). Times are those of the median node."""

    match_s: float = 0.0  # a message that carries an event, and a publication
    root_s: float = 0.0  # on top, where an event passes the root of a tree on its way to other trees (SOMER)
    spread: float = 0.0  # how much nodes differ: standard deviation of the logarithm of their times

    def __post_init__(self) -> None:
        for field in ("match_s", "root_s"):
            require(0 <= getattr(self, field) <= 60, field, getattr(self, field), "between 0 and 60")
        require(0 <= self.spread <= 3, "spread", self.spread, "between 0 and 3")

    @property
    def takes_time(self) -> bool:
        return self.match_s > 0 or self.root_s > 0


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
    audience_share: float = 0.0  # content: above 0, this share of subscriptions match every event, the others none
    rate_per_s: float = 0.5  # publications per publisher
    pattern: Literal["constant", "poisson", "ramp", "burst"] = "constant"
    burst_period_s: float = 20.0  # burst: one active stretch per period, at the rate that keeps the mean
    burst_share: float = 0.25  # burst: share of the period that is active
    resubscribe_period_s: float | None = None  # each subscription is replaced at this interval; None or 0: never
    payload_bytes: int = 64  # above 1400 an event does not fit a frame: for protocols that split their messages
    start_s: float = 5.0  # first publications; gives structures time to form
    tail_s: float = 5.0  # no publications in the last seconds, so that every event has time to arrive
    utility: str = ""  # what a receipt is worth by age: a deadline ("250ms") or a curve (`trace/utility.py`)
    causal: Causal = Causal()

    def __post_init__(self) -> None:
        parse_utility(self.utility)
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
        require(period is None or period >= 0, "resubscribe_period_s", period, "at least 0")
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
    """What goes wrong. Shares are of all nodes; times are uniform over the run. No node suffers two of crash, return,
    join and leave; droppers are drawn apart from them."""

    crash_share: float = 0.0  # crash for good
    return_share: float = 0.0  # crash and come back, with nothing remembered
    return_after_s: float = 30.0
    join_share: float = 0.0  # are switched on only during the run
    leave_share: float = 0.0  # say goodbye and go
    dropper_share: float = 0.0  # take part in everything, but silently drop others' events instead of forwarding them
    adversary: Literal["none", "dropper", "liar", "replayer", "flooder", "sybil"] = "none"  # `adversaries.py`
    adversary_share: float = 0.0  # are such adversaries; above 0, at least one node is
    split_s: float = 0.0  # time in the middle of the run in which the west and east halves are partitioned
    partitions: tuple[Partition, ...] = ()  # further ones, each with its own place and time
    incidents: tuple[Incident, ...] = ()  # faults of single nodes and links, each with its own time (`incident.py`)

    def __post_init__(self) -> None:
        for field in ("dropper_share", "adversary_share"):
            require(0 <= getattr(self, field) <= 1, field, getattr(self, field), "between 0 and 1")
        require(self.split_s >= 0, "split_s", self.split_s, "at least 0")
        shares = ("crash_share", "return_share", "join_share", "leave_share")
        for field in shares:
            require(0 <= getattr(self, field) <= 1, field, getattr(self, field), "between 0 and 1")
        total = sum(getattr(self, field) for field in shares)
        require(total <= 1, " + ".join(shares), total, "at most 1")
        require(self.return_after_s > 0, "return_after_s", self.return_after_s, "above 0")


class Security(Settings, frozen=True):
    """What security costs. With `signed`, frames and events are as large as those of live nodes with identities.
    Nothing is encrypted."""

    protection: Literal["none", "sealed", "signed"] = "none"  # sealed: a shared key; signed: an identity per node, too
    signature_s: float = 0.0  # processor time to make or check the signatures of a message with an event

    def __post_init__(self) -> None:
        require(0 <= self.signature_s <= 10, "signature_s", self.signature_s, "between 0 and 10")

    @property
    def frame_bytes(self) -> int:
        """That a frame is longer."""
        return {"none": 0, "sealed": SEAL_BYTES, "signed": SEAL_BYTES + SIGNATURE_BYTES}[self.protection]

    @property
    def signature_bytes(self) -> int:
        """Of an event or record."""
        return SIGNATURE_BYTES if self.protection == "signed" else 0


class Scenario(Settings, frozen=True):
    """A network and what happens in it: nodes and their movement, radio, workload, faults, the price of security."""

    nodes: int = 50  # how many
    area_m: tuple[float, float] = (1000.0, 1000.0)  # width and height
    duration_s: float = 100.0  # of the run
    mobility: Mobility = Mobility()
    positioning: Positioning = Positioning()
    processing: Processing = Processing()
    radio: AnyRadio = Wifi80211b()
    workload: Workload = Workload()
    faults: Faults = Faults()
    security: Security = Security()

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
        check_incidents(self.faults.incidents, self.nodes, len(self.mobility.present))
        split_s = self.faults.split_s
        require(split_s <= self.duration_s, "faults.split_s", split_s, f"at most the duration ({self.duration_s:g})")

    def partitions(self) -> tuple[Partition, ...]:
        """All partitions of the run, that of `faults.split_s` first."""
        split_s = self.faults.split_s
        if split_s == 0:
            return self.faults.partitions
        from_s = (self.duration_s - split_s) / 2
        width_m, height_m = self.area_m
        west = Partition(
            from_s=from_s,
            until_s=from_s + split_s,
            west_m=-width_m,
            south_m=-height_m,
            east_m=width_m / 2,
            north_m=2 * height_m,
        )
        return (west, *self.faults.partitions)


class Run(Settings, frozen=True):
    """One simulation: a scenario, a protocol with its settings, a seed. Nothing else decides what happens."""

    scenario: Scenario = Scenario()
    protocol: str = "flooding"
    parameters: dict[str, str | int | float | bool] = {}  # noqa: RUF012  # msgspec makes a new one for each run
    seed: int = 1


def run_id(run: Run) -> str:
    """A name that belongs to everything that can decide the run's trace: the run, and the sources that simulate it.

    The sources are Roamcast's and, for a protocol named by import path, all of its package.
    """
    sources = source_digest() + protocol_digest(run.protocol)
    return blake2b(msgspec.json.encode((sources, run), order="deterministic"), digest_size=8).hexdigest()
