"""What every radio model offers to the simulator, and what it counts."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Final

from roamcast.protocols.api import NOBODY, Listener, Message
from roamcast.seeds import Random
from roamcast.world.scheduler import Due, Scheduler
from roamcast.world.topology import Topology

LINK_CATEGORY: Final = "link"
"""Category of the radio's own frames (ACK, RTS, CTS) in the trace."""

NO_NODES: Final[list[int]] = []
"""The hearers of a frame that has not started; lists of hearers are replaced, never changed."""


class Frame(Due):
    """One frame: a protocol's message, or a short one of the link's own. It is due when it ends."""

    __slots__ = ("airtime_s", "bytes", "end", "hearers", "label", "message", "receiver", "sender", "start")

    def __init__(
        self, sender: int, receiver: int, message: Message | None, label: str, size: int, airtime_s: float
    ) -> None:
        super().__init__()
        self.sender = sender
        self.receiver = receiver  # NOBODY: broadcast
        self.message = message  # None: one of the link's own
        self.label = label
        self.bytes = size  # on the air, after the preamble
        self.airtime_s = airtime_s
        self.start = 0.0
        self.end = 0.0
        self.hearers = NO_NODES


class Total:
    """Frames of one label that all nodes sent since the totals were last reset."""

    __slots__ = ("airtime_s", "bytes", "category", "count", "label")

    def __init__(self, label: str, category: str) -> None:
        self.label = label
        self.category = category
        self.count = 0
        self.bytes = 0
        self.airtime_s = 0.0


class Tally:
    """Frames of one label that one node sent: how many, how many bytes, how much airtime."""

    __slots__ = ("airtime_s", "bytes", "category", "count", "total")

    def __init__(self, total: Total) -> None:
        self.category = total.category
        self.total = total  # over all nodes
        self.count = 0
        self.bytes = 0
        self.airtime_s = 0.0


class Medium(ABC):
    """The shared air. Receptions and failures go to the listeners."""

    def __init__(
        self, scheduler: Scheduler, topology: Topology, random: Random, loss: float, frame_bytes_max: int
    ) -> None:
        self.scheduler = scheduler
        self.topology = topology
        self.draw: Callable[[], float] = random.random  # looked up once
        self.loss = loss
        self.frame_bytes_max = frame_bytes_max  # the largest message that travels in one frame
        nodes = topology.nodes
        self.on_start: Callable[[Frame], None] | None = None  # called with every frame sent
        self.totals: list[Total] = []  # since the last reset; those that are not zero, in order of appearance
        self._totals: dict[str, Total] = {}  # of all labels so far
        self._labels: dict[Any, str] = {}  # by type of message; empty: its messages differ in their labels
        self.loads: list[dict[str, Tally]] = [{} for _ in range(nodes)]  # per node, over the whole run
        self.receptions = 0  # broadcasts handed up
        self.receptions_possible = 0  # sum over broadcasts of the sender's degree
        self._lost: dict[str, int] = {}  # by reason, without the two most frequent ones:
        self._collisions = 0
        self._half_duplex = 0  # receptions that failed because the receiver was sending

    @abstractmethod
    def attach(self, node: int, listener: Listener | None) -> None:
        """From now on `listener` gets what arrives at `node`; `None`: no listener."""

    @abstractmethod
    def transmit(self, sender: int, receiver: int, message: Message, size: int) -> None:
        """Queues a frame; `receiver` is `NOBODY` for a broadcast."""

    @abstractmethod
    def silence(self, node: int) -> None:
        """The node went down: its queue is lost."""

    @abstractmethod
    def receive_s(self, node: int) -> float:
        """How long the node has been receiving so far, successfully or not."""

    @abstractmethod
    def backlog(self, node: int) -> int:
        """Frames of the node that wait, are on the air or wait for an acknowledgement."""

    @abstractmethod
    def when_idle(self, node: int, call: Callable[[], None]) -> None:
        """Calls `call` once, as soon as the node has no frame to send. One call at a time can be asked for."""

    @property
    def lost(self) -> dict[str, int]:
        """Receptions that failed so far, and frames given up, by reason."""
        lost = dict(self._lost)
        for reason, receptions in (("collision", self._collisions), ("half-duplex", self._half_duplex)):
            if receptions:
                lost[reason] = lost.get(reason, 0) + receptions
        return lost

    def lose(self, reason: str) -> None:
        """The link gave up a message: counts as lost."""
        self._fail(reason)

    def _fail(self, reason: str) -> None:
        self._lost[reason] = self._lost.get(reason, 0) + 1

    def _count(self, frame: Frame) -> None:
        size, airtime_s = frame.bytes, frame.airtime_s
        load = self.loads[frame.sender].get(frame.label)
        if load is None:
            load = self._new_tally(frame)
        load.count += 1
        load.bytes += size
        load.airtime_s += airtime_s
        total = load.total
        if not total.count:
            self.totals.append(total)
        total.count += 1
        total.bytes += size
        total.airtime_s += airtime_s
        if frame.receiver == NOBODY:
            self.receptions_possible += len(frame.hearers)
        if self.on_start is not None:
            self.on_start(frame)

    def _new_tally(self, frame: Frame) -> Tally:
        label = frame.label
        total = self._totals.get(label)
        if total is None:
            category = LINK_CATEGORY if frame.message is None else frame.message.category
            total = self._totals[label] = Total(label, category)
        tally = self.loads[frame.sender][label] = Tally(total)
        return tally

    def reset_totals(self) -> None:
        for total in self.totals:
            total.count = 0
            total.bytes = 0
            total.airtime_s = 0.0
        self.totals.clear()

    def label_of(self, message: Message) -> str:
        """The message's name in the trace. Asking a type that was seen before is cheaper than asking a message."""
        kind: Any = type(message)
        label = self._labels.get(kind)
        if label is None:
            constant = kind.label
            label = self._labels[kind] = constant if isinstance(constant, str) else ""
        return label or message.label
