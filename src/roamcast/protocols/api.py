"""The contract between a protocol and whoever hosts it.

A protocol is a pure state machine. It is told what happens (`on_message`, `on_timer`, `on_send_failed`), obeys its
application (`subscribe`, `advertise`, `publish`, ...) and acts only through its `Host`. It has no clock, no socket and
no randomness of its own, so the same object runs in the simulator and over UDP.

The rules, for both sides:

- The host never calls a protocol from inside one of the protocol's own calls: what a call causes arrives later.
- A message is frozen. In the simulator the very object that was sent reaches every receiver.
- A frame may be lost at any time. `broadcast` never tells; `send` tells by `on_send_failed` that the neighbour did not
  acknowledge. What is dropped before it was tried, because too much waits at this node, says nothing of the neighbour
  and is not told.
- A protocol learns of other nodes only through messages. `Host.oracle` is the one exception, and only what is named
  after the oracle may use it.
- An application is not served its own events.
"""

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Final

from mypy_extensions import mypyc_attr

from roamcast.events import NO_EVENT, Event
from roamcast.interests import Interest
from roamcast.protocols import parameters
from roamcast.protocols.message import Category, Message
from roamcast.protocols.parameters import Parameters, Site, require
from roamcast.seeds import Random

__all__ = [
    "NOBODY",
    "Category",
    "Host",
    "Message",
    "Oracle",
    "Parameters",
    "Point",
    "Protocol",
    "Site",
    "Timer",
    "require",
]

NOBODY: Final = -1
"""Stands for "no node" wherever an address is expected."""

Timer = tuple[str, int]
"""A timer's name and what it is about (an event id, an address, 0). Setting a timer that is pending moves it."""

Point = tuple[float, float]
"""Metres east and north of the area's corner; as a velocity, metres per second."""

@mypyc_attr(allow_interpreted_subclasses=True)
class Oracle(ABC):
    """The simulator's global view, for measuring and for what calls itself an oracle."""

    @abstractmethod
    def next_hop(self, source: int, destination: int) -> int:
        """The neighbour of `source` on a shortest path to `destination` at this instant, or `NOBODY`."""

    @abstractmethod
    def hops(self, source: int, destination: int) -> int:
        """Length of the shortest path at this instant, or -1 if there is none."""

    @abstractmethod
    def subscribers(self, event: Event) -> list[int]:
        """Nodes whose application wants `event` at this instant, in ascending order."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Host(ABC):
    """Where a protocol lives. Everything it can know or do."""

    address: int
    random: Random  # seeded; the protocol's only source of randomness
    site: Site | None
    oracle: Oracle | None  # only in the simulator

    @abstractmethod
    def now(self) -> float:
        """Seconds, monotonic."""

    @abstractmethod
    def position(self) -> Point | None:
        """Where this node is, if it can know."""

    @abstractmethod
    def velocity(self) -> Point | None:
        """How this node moves, if it can know."""

    @abstractmethod
    def broadcast(self, message: Message) -> None:
        """To whoever is in range: no acknowledgement, no retry, no report."""

    @abstractmethod
    def send(self, neighbour: int, message: Message) -> None:
        """To one neighbour, acknowledged and retried by the link; `on_send_failed` if it gave up."""

    @abstractmethod
    def set_timer(self, delay_s: float, timer: Timer) -> None:
        """`on_timer(timer)` after `delay_s`; if it is pending already, it moves."""

    @abstractmethod
    def cancel_timer(self, timer: Timer) -> None:
        """Forget a pending timer; nothing happens if there is none."""

    @abstractmethod
    def deliver(self, event: Event, hops: int) -> None:
        """Hand a wanted event to the application; `hops` is how many frames in a row brought it here."""

    @abstractmethod
    def dropped(self, reason: str, event_id: int = NO_EVENT) -> None:
        """Trace: the protocol gave something up on purpose. `reason` comes from a fixed set of the protocol's."""

    @abstractmethod
    def structure(self, aspect: str, peer: int = NOBODY, value: float = 0.0, detail: str = "") -> None:
        """Trace: what this node is in the structure from now on, e.g. `structure("parent", peer=4, value=level)`."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Protocol(ABC):
    """A node's protocol. One object per node and life: a node that crashes and returns gets a new one."""

    name: ClassVar[str]  # what users type
    summary: ClassVar[str]  # one line for `roamcast protocols`
    Parameters: ClassVar[type[parameters.Parameters]]
    messages: ClassVar[Any]  # the union of its message types, for the wire codec
    is_limit: ClassVar[bool] = False  # true: uses `Host.oracle`, so it cannot be deployed and competes with nobody

    def __init__(self, host: Host) -> None:
        self.host = host

    @abstractmethod
    def start(self) -> None:
        """The node is up. Called once, before anything else."""

    @abstractmethod
    def subscribe(self, interest: Interest) -> None:
        """The application wants events that match, from now on."""

    @abstractmethod
    def unsubscribe(self, interest: Interest) -> None:
        """Takes back one earlier `subscribe` with an equal interest."""

    @abstractmethod
    def publish(self, event: Event) -> None:
        """The application publishes."""

    @abstractmethod
    def on_message(self, sender: int, message: Message) -> None:
        """A frame from the neighbour `sender` arrived, broadcast or sent to this node."""

    def advertise(self, interest: Interest) -> None:  # noqa: B027 - most protocols need no advertisements
        """The application is going to publish events that match."""

    def on_timer(self, timer: Timer) -> None:  # noqa: B027 - not every protocol has timers
        """A timer ran out."""

    def on_send_failed(self, neighbour: int, message: Message) -> None:  # noqa: B027 - broadcast protocols never send
        """The link gave up on a frame that was sent to one neighbour."""

    def leave(self) -> None:  # noqa: B027 - a protocol may have nobody to tell
        """The node is about to go for good and may say goodbye; no further call follows."""
