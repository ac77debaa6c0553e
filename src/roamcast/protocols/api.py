"""The contract between a protocol and its host.

A protocol is a pure state machine. It is told what happens (`on_message`, `on_timer`, `on_send_failed`), obeys its
application (`subscribe`, `advertise`, `publish`, ...) and acts only through its `Host`. It has no clock, no socket and
no randomness of its own, so the same object runs in the simulator (`world/host.py`), over UDP (`live/host.py`) and
step by step in a test (`testing/host.py`).

Calls
- The host never calls a protocol from inside one of the protocol's own calls: what a call causes arrives later.
- A message is frozen. In the simulator the object that was sent is the object that every receiver gets.
- A protocol learns of other nodes only through messages. `Host.oracle` is the one exception, and only what is named
  after the oracle may use it.
- An application is not served its own events.

Frames
- A message of up to `Host.frame_bytes_max` encoded bytes travels in one frame. The link of every host cuts a larger
  one into fragments, each a frame of its own, and the receiver's link puts it together again (`fragments.py`). Losing
  one fragment loses the message. A message above `Host.message_bytes_max` cannot be sent: the link drops it and counts
  it as `oversized`.
- `broadcast` reaches the neighbours that are in range and receive the frame intact. It is sent once, without
  acknowledgements or reports of loss.
- `send` reaches one neighbour. The link acknowledges each frame and retransmits it a few times; if it gives up,
  `on_send_failed` is called once for the message. The neighbour may have received the message all the same, if only
  the acknowledgement was lost. The link filters the duplicates that its own retransmissions make.
- Other nodes in range hear that a unicast is on the air, and wait, but do not get the message.
- Frames wait in a finite queue. Overflow is dropped silently: it says nothing about the neighbour, so
  `on_send_failed` is not called. `Host.backlog` tells how many frames are waiting.

What a frame costs
- On 802.11 a frame of n message bytes occupies the channel for preamble + 8 (n + header) / rate, plus the time to get
  access. The header takes 28 bytes in the preset `ns2` and 36 in `ns3`. On 802.11b the preamble takes 192 us;
  broadcasts are sent at the basic rate, 1 Mbit/s, unicasts at the data rate, 2 Mbit/s, each followed by an
  acknowledgement at the basic rate.
- All nodes in carrier-sense range are silent meanwhile. Airtime, not the number of frames, is what neighbours share.
- Live, the header is 23 bytes of Roamcast's own plus IP and UDP.

Numbers
- What arrives has been checked against the ranges its fields declare (`fields.py`): numbers are finite and in range.
  Whether they make sense is for the protocol to judge.
- `Host.life` grows with every life of a node. Sequence numbers are compared within a life; a higher life wins.
"""

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Final, Literal

from mypy_extensions import mypyc_attr

from roamcast.errors import CallerError
from roamcast.events import NO_EVENT, Event
from roamcast.interests import Interest
from roamcast.protocols import parameters
from roamcast.protocols.message import Category, Message
from roamcast.protocols.modulation import Modulation
from roamcast.protocols.parameters import Parameters, Site, require
from roamcast.seeds import Random

__all__ = [
    "INSTANT_S",
    "NOBODY",
    "PLAIN_CHANNEL",
    "Category",
    "Host",
    "Listener",
    "Message",
    "Modulation",
    "Oracle",
    "Parameters",
    "Point",
    "Protocol",
    "Site",
    "Timer",
    "require",
]

NOBODY: Final = -1
"""Means "no node" where an address is expected."""

INSTANT_S: Final = 1e-6
"""A timer may fire early by this much, because of rounding. Allow for it when comparing `now()` with a due time."""

PLAIN_CHANNEL: Final = 0
"""The channel of all subscriptions that have no function of their own."""

Timer = tuple[str, int]
"""A timer's name and its key (an event id, an address, 0). Setting a timer that is pending moves it."""

Point = tuple[float, float]
"""Metres east and north of the area's corner; as a velocity, metres per second."""

@mypyc_attr(allow_interpreted_subclasses=True)
class Oracle(ABC):
    """The simulator's global view, for measuring and for what calls itself an oracle."""

    @abstractmethod
    def next_hop(self, source: int, destination: int) -> int:
        """The neighbour of `source` on a shortest path to `destination` at this instant, or `NOBODY`."""

    @abstractmethod
    def neighbours(self, node: int) -> list[int]:
        """Who can hear `node` at this instant, in ascending order."""

    @abstractmethod
    def hops(self, source: int, destination: int) -> int:
        """Length of the shortest path at this instant, or -1 if there is none."""

    @abstractmethod
    def subscribers(self, event: Event) -> list[int]:
        """Nodes whose application wants `event` at this instant, in ascending order."""


Work = Literal["match", "root"]
"""An event is matched with interests; an event passes a root on its way to other trees."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Host(ABC):
    """Where a protocol lives. Everything it can know or do."""

    address: int
    life: int  # of this node, at least 1; larger than in any of its earlier lives
    frame_bytes_max: int  # encoded bytes of a message that travels in one frame
    message_bytes_max: int  # encoded bytes of the largest message that can be sent at all
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
        """To all nodes in range: no acknowledgement, no retry, no report."""

    @abstractmethod
    def send(self, neighbour: int, message: Message) -> None:
        """To one neighbour, acknowledged and retried by the link; `on_send_failed` if it gave up."""

    @abstractmethod
    def backlog(self) -> int:
        """Frames of this node that wait to be sent or, if they are unicasts, to be acknowledged."""

    def work(self, kind: Work) -> None:  # noqa: B027 - real nodes work without saying so
        """What follows takes a computer time: sent frames leave after it. Only simulated nodes have to be told."""

    @abstractmethod
    def set_timer(self, delay_s: float, timer: Timer) -> None:
        """`on_timer(timer)` after `delay_s`, at most `INSTANT_S` early; if it is pending already, it moves."""

    @abstractmethod
    def cancel_timer(self, timer: Timer) -> None:
        """Forget a pending timer; nothing happens if there is none."""

    @abstractmethod
    def deliver(self, event: Event, hops: int, channel: int = PLAIN_CHANNEL) -> None:
        """Hand a wanted event to the application; `hops` is how many frames in a row brought it here, `channel` the
        channel on which it came (`Protocol.open_channel`)."""

    def refused(self, channel: int, reason: str) -> None:  # noqa: B027 - simulated applications do not ask
        """Tell the application that no node runs the function of this channel, and why."""

    def cpu_s(self) -> float:
        """CPU time used so far, to measure what a computation takes; constant on simulated nodes."""
        return 0.0

    def machine_load(self) -> float:
        """Share of this machine's CPU or memory that is in use, whichever is more; 0 on simulated nodes."""
        return 0.0

    @abstractmethod
    def dropped(self, reason: str, event_id: int = NO_EVENT) -> None:
        """Trace: the protocol gave something up on purpose. `reason` comes from a fixed set of the protocol's."""

    @abstractmethod
    def structure(self, aspect: str, peer: int = NOBODY, value: float = 0.0, detail: str = "") -> None:
        """Trace: what this node is in the structure from now on, e.g. `structure("parent", peer=4, value=level)`."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Listener(ABC):
    """What the link reports to: a protocol, or a layer between the two."""

    @abstractmethod
    def on_message(self, sender: int, message: Any) -> None:
        """A message from the neighbour `sender` arrived, broadcast or sent to this node.

        It is one of the protocol's `messages`; a protocol declares its parameter as such."""

    def on_send_failed(self, neighbour: int, message: Message) -> None:  # noqa: B027 - broadcast protocols never send
        """The link gave up on a message that was sent to one neighbour."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Protocol(Listener):
    """A node's protocol. One object per node and life: a node that crashes and returns gets a new one."""

    name: ClassVar[str]  # what users type
    summary: ClassVar[str]  # one line for `roamcast protocols`
    Parameters: ClassVar[type[parameters.Parameters]]
    messages: ClassVar[Any]  # the union of its message types, for the wire codec
    modulates: ClassVar[bool] = False  # true: it has `open_channel`
    is_limit: ClassVar[bool] = False  # true: uses `Host.oracle`, so it cannot be deployed and does not compete

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

    def open_channel(self, channel: int, interest: Interest, modulation: Modulation) -> None:
        """The application wants what a function makes of events that match. If the channel is open, interest or
        function change. Channels are numbered from 1 by the caller. Only if `modulates`."""
        raise CallerError(f"open_channel: {self.name} does not modulate")

    def close_channel(self, channel: int) -> None:
        """Takes back `open_channel`."""
        raise CallerError(f"close_channel: {self.name} does not modulate")

    def advertise(self, interest: Interest) -> None:
        """The application is going to publish events that match."""

    def on_timer(self, timer: Timer) -> None:
        """A timer ran out."""

    def in_custody(self) -> tuple[int, int]:
        """How many events it keeps for others, and their bytes."""
        return 0, 0

    def leave(self) -> None:
        """The node is about to leave for good and may say goodbye; no further call follows."""
