"""What one node's radio knows of the channel and of itself, and the frames it sends; `dcf.py` says how it is used."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from mypy_extensions import mypyc_attr

from roamcast.protocols.api import NOBODY, Listener, Message, Point
from roamcast.world.radio.medium import Frame
from roamcast.world.radio.rate import Rate
from roamcast.world.scheduler import Due

if TYPE_CHECKING:
    from roamcast.world.radio.dcf import DcfMedium


class Arrival:
    """Where a frame arrives, and how strong it is there; only where signals differ in strength."""

    __slots__ = ("power", "station")

    def __init__(self, station: "Station", power: float) -> None:
        self.station = station
        self.power = power


NO_ARRIVALS: Final[list[Arrival]] = []


@mypyc_attr(free_list_len=1)
class DcfFrame(Frame):
    """In the event queue while it is on the air, and before that if it is the next of an exchange."""

    __slots__ = (
        "arrivals", "is_on_air", "medium", "nav_s", "queued_s", "rate", "source", "stations", "taken_by_life",
        "tries_long", "tries_short",
    )  # fmt: skip

    def __init__(
        self,
        medium: "DcfMedium",
        sender: int,
        receiver: int,
        message: Message | None,
        label: str,
        size: int,
        airtime_s: float,
        rate: Rate,
        nav_s: float,
    ) -> None:
        super().__init__(sender, receiver, message, label=label, size=size, airtime_s=airtime_s)
        self.medium = medium
        self.rate = rate
        self.nav_s = nav_s  # how long after its end bystanders must keep silent
        self.stations = NO_STATIONS  # the hearers
        self.arrivals = NO_ARRIVALS  # instead, where signals differ in strength
        self.source: Point | None = None  # where its sender is, once it has been looked up
        self.queued_s = 0.0  # when it joined the queue
        self.is_on_air = False
        self.tries_short = 0
        self.tries_long = 0
        self.taken_by_life = -1  # of its receiver: the life that has handed it up

    def due(self) -> None:
        if not self.is_on_air:
            self.medium.go_on(self)
        elif self.receiver == NOBODY:
            self.medium.end_broadcast(self)
        else:
            self.medium.end_unicast(self)


class Station(Due):
    """In the event queue while it waits for access."""

    __slots__ = (
        "air_until", "answer_by", "arrivals", "backoff", "busy_until", "committed", "counts", "defer", "exchange",
        "head", "heard_by", "hearers", "life", "listened", "listener", "lock", "log_survival", "medium", "node",
        "noise", "on_idle", "power", "queue", "receive_s", "sending_until", "sensed_by", "sensers", "signal",
        "signals", "since", "topology_version", "waiting", "window",
    )  # fmt: skip

    def __init__(self, medium: "DcfMedium", node: int, difs_s: float, window_min: int) -> None:
        super().__init__()
        # First what every frame touches at each node that hears it: compiled, these are adjacent in memory.
        self.air_until = 0.0  # a signal, or the node's own, fills its air until then
        self.busy_until = -1.0  # the same, or a reservation heard
        self.backoff = 0  # slots left to count down
        self.counts = False  # it has slots left, or waits: it has to know when its medium becomes busy
        self.waiting = False  # it is in the event queue
        self.lock: DcfFrame | None = None  # the frame this node is receiving
        self.noise: list[DcfFrame] | None = None  # what has overlapped it here
        self.defer = difs_s  # silence required after busy_until
        self.listener: Listener | None = None  # None: the node is down
        self.receive_s = 0.0  # spent on receiving so far, successfully or not
        self.node = node
        self.medium = medium
        self.listened = 0.0  # with no backoff to count, it has listened for DIFS by then
        self.committed = False  # too late to sense what has just started
        self.sending_until = 0.0
        self.window = window_min
        self.head: DcfFrame | None = None  # the frame that wants the air or is on it
        self.queue: list[DcfFrame] = []  # behind it
        self.on_idle: Callable[[], None] | None = None  # called once when there is no frame to send any more
        self.exchange: DcfFrame | None = None  # unicast that waits for its CTS or ACK
        self.answer_by = 0.0  # how long it waits for that
        self.life = 0  # how often the node went down
        self.topology_version = -1  # at which the following were looked up
        self.heard_by: list[int] = []  # the topology's list of who hears this node
        self.hearers: list[Station] = []  # these as stations
        self.sensed_by: list[int] = []  # the same of who only senses it
        self.sensers: list[Station] = []
        # Only where signals differ in strength (`snir.py`).
        self.arrivals = NO_ARRIVALS  # of this node's frames
        self.power = 0.0  # of all signals in this node's air
        self.signals = 0  # how many these are
        self.signal = 0.0  # power of the locked frame
        self.since = 0.0  # its bits up to here are accounted for
        self.log_survival = 0.0  # logarithm of the probability that these are right

    def due(self) -> None:
        self.medium.access(self)

    def silence(self, window_min: int) -> None:
        """The node went down."""
        self.head = None
        self.queue.clear()
        self.on_idle = None
        self.exchange = None
        self.lock = None
        self.backoff = 0
        self.window = window_min
        self.life += 1


NO_STATIONS: Final[list[Station]] = []
"""The hearers of a frame that has not started."""
