"""A row of the client information table: one client whose modulator runs at this broker, and how far it has got."""

from collections import deque

from roamcast.errors import ConfigurationError, PeerError
from roamcast.interests import Interest
from roamcast.protocols.overlays.intake import Intake
from roamcast.protocols.overlays.messages import Cursor, Delivery
from roamcast.protocols.overlays.modulators import Modulator, compile_modulator
from roamcast.protocols.overlays.repeats import Attempt
from roamcast.protocols.overlays.wants import Wants


class Sent(Attempt):
    """A delivery that waits for its acknowledgement."""

    __slots__ = ("delivery",)

    def __init__(self, delivery: Delivery) -> None:
        super().__init__()
        self.delivery = delivery


class Unsettled:
    """An event that was processed; it is settled when deliveries up to `sequence` are acknowledged."""

    __slots__ = ("number", "publisher", "sequence")

    def __init__(self, publisher: int, number: int, sequence: int | None) -> None:
        self.publisher = publisher
        self.number = number
        self.sequence = sequence  # None: kept by the modulator, so that depends on what comes of it


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
        self.modulator_text = ""
        self.modulator: Modulator | None = None  # None passes everything on
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
        self.bytes_in = 0  # since the last reading, like the two below
        self.bytes_out = 0
        self.cpu_s = 0.0

    @property
    def is_idle(self) -> bool:
        """Nothing of it is being computed."""
        return self.intake.taken == self.processed

    def start_from(self, cursors: tuple[Cursor, ...]) -> None:
        self.intake.resume(cursors)
        self.processed = dict(self.intake.taken)
        self.settled = dict(self.intake.taken)

    def set_modulator(self, text: str, state: bytes | None = None) -> None:
        """Takes a modulator, or raises `PeerError` and keeps the one that it has."""
        modulator = check_modulator(text)
        if modulator is not None and state is not None:
            modulator.restore(state)
        self.modulator_text = text
        self.modulator = modulator

    def resume_unsettled(self, events: tuple[tuple[int, int, int], ...]) -> None:
        # An event whose only delivery came before all others has sequence 0, which is acknowledged from the start;
        # here 0 stands for "kept by the modulator", and such an event is settled with the next delivery all the same.
        self.unsettled.extend(Unsettled(publisher, number, sequence or None) for publisher, number, sequence in events)

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


def check_modulator(text: str) -> Modulator | None:
    """The modulator that a client describes, with no memory yet; None passes everything on. `PeerError`: it is none."""
    try:
        return compile_modulator(text) if text else None
    except ConfigurationError as error:
        raise PeerError(str(error)) from None
