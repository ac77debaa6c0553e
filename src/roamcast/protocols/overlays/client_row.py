"""A row of the client information table: one client whose modulators run at this broker, and how far it has got."""

from collections import deque

from roamcast.interests import Interest
from roamcast.protocols.api import Point
from roamcast.protocols.overlays.event_channels import EventChannel
from roamcast.protocols.overlays.intake import Intake
from roamcast.protocols.overlays.messages import ClientDelivery, Cursor
from roamcast.protocols.overlays.repeats import Attempt
from roamcast.protocols.overlays.wants import Wants


class Sent(Attempt):
    """A delivery that waits for its acknowledgement."""

    __slots__ = ("delivery",)

    def __init__(self, delivery: ClientDelivery) -> None:
        super().__init__()
        self.delivery = delivery


class Unsettled:
    """An event that was processed; it is settled when deliveries up to `sequence` are acknowledged."""

    __slots__ = ("kept_by", "number", "publisher", "sequence")

    def __init__(self, publisher: int, number: int, sequence: int | None, kept_by: tuple[int, ...] = ()) -> None:
        self.publisher = publisher
        self.number = number
        self.sequence = sequence  # None: modulators keep it, so it depends on their output
        self.kept_by = kept_by  # the channels of those modulators

    def put_out(self, channels: tuple[int, ...], sequence: int) -> None:
        """These channels have put something out since, up to the delivery `sequence`."""
        if self.sequence is None:
            self.kept_by = tuple([channel for channel in self.kept_by if channel not in channels])
            if not self.kept_by:
                self.sequence = sequence


class ClientRow:
    def __init__(self, client: int, epoch: int, generation: int, now_s: float, intake_max: int) -> None:
        self.client = client
        self.epoch = epoch
        self.generation = generation
        self.version = 0
        self.registered = 0  # the version that the producers' home brokers were told
        self.confirmed: dict[int, None] = {}  # those of them that are known to have understood
        self.is_passive = False  # a relocation brings it here, but its state has not come yet
        self.is_current = True  # false once it left the table
        self.home = -1
        self.wants = Wants(())
        self.channels: dict[int, EventChannel] = {}
        self.position: Point | None = None  # where the client last said it was
        self.home_hops = 0  # from the client to its home broker, as its last report came
        self.produces = False
        self.advertised: Interest | None = None
        self.intake = Intake(intake_max)
        self.processed: dict[int, int] = {}
        self.settled: dict[int, int] = {}
        self.origins: dict[int, int] = {}  # publisher -> the home broker that its events come from
        self.unreported: dict[int, int] = {}  # processed since the last delivery
        self.sequence = 0  # of the last delivery
        self.acknowledged = 0
        self.deliveries: dict[int, Sent] = {}
        self.unsettled: deque[Unsettled] = deque()
        self.heard_s = now_s
        # Since the last reading, like the next three: events and bytes of payload, by producers' home broker.
        self.taken: dict[int, tuple[int, int]] = {}
        self.bytes_out = 0
        self.events_out = 0
        self.cpu_s = 0.0

    @property
    def is_idle(self) -> bool:
        """Nothing of it is being computed."""
        return self.intake.taken == self.processed

    def start_from(self, cursors: tuple[Cursor, ...]) -> None:
        self.intake.resume(cursors)
        self.processed = dict(self.intake.taken)
        self.settled = dict(self.intake.taken)

    @property
    def has_modulator(self) -> bool:
        return any(channel.modulator is not None for channel in self.channels.values())

    def resume_unsettled(self, events: tuple[tuple[int, int, int, tuple[int, ...]], ...]) -> None:
        for publisher, number, sequence, kept_by in events:
            here = tuple([channel for channel in kept_by if channel in self.channels])
            self.unsettled.append(Unsettled(publisher, number, None if here else sequence, here))

    def acknowledge(self, sequence: int) -> list[int]:
        """The client has deliveries up to `sequence`; returns the publishers whose events are now settled."""
        self.acknowledged = max(self.acknowledged, sequence)
        for sent in [number for number in self.deliveries if number <= sequence]:
            del self.deliveries[sent]
        settled: dict[int, None] = {}
        while self.unsettled and self.unsettled[0].sequence is not None:
            if self.unsettled[0].sequence > self.acknowledged:
                break
            event = self.unsettled.popleft()
            self.settled[event.publisher] = max(event.number, self.settled.get(event.publisher, 0))
            settled[event.publisher] = None
        return list(settled)

