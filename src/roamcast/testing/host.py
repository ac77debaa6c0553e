"""The host of a guest in a tiny network. Records what the guest does."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from typing import Protocol as Structural

import msgspec

from roamcast.errors import CallerError, PeerError
from roamcast.events import NO_EVENT, Event
from roamcast.protocols.api import NOBODY, PLAIN_CHANNEL, Host, Message, Point, Timer
from roamcast.protocols.contents import Contents
from roamcast.protocols.fragment import Fragment
from roamcast.protocols.fragments import MESSAGE_BYTES_MAX, Outbox, Reassembly
from roamcast.seeds import derive
from roamcast.testing.transcript import RecordedDelivery, event_name, readable

if TYPE_CHECKING:
    from roamcast.testing.tinynet import TinyNet


class Guest(Structural):
    """What a node can host."""

    def start(self) -> Any: ...
    def on_message(self, sender: int, message: Any) -> Any: ...
    def on_timer(self, timer: Timer) -> Any: ...
    def on_send_failed(self, neighbour: int, message: Message) -> Any: ...


GuestT = TypeVar("GuestT", bound=Guest)


class TestHost(Host, Generic[GuestT]):
    """The host of one guest. Records what the guest does."""

    def __init__(self, net: TinyNet[GuestT], address: int, life: int, make: Callable[[Host], Any]) -> None:
        self.address = address
        self.life = life
        self.frame_bytes_max = net.frame_bytes_max
        self.message_bytes_max = MESSAGE_BYTES_MAX
        self.random = derive(net.seed, "node", address)
        self.site = net.site
        self.oracle = net.oracle
        self.alive = True
        self.frames_under_way = 0
        self.outbox = Outbox(life, self.frame_bytes_max)
        self._net = net
        self._timers: dict[Timer, int] = {}  # pending, with the number of the setting that counts
        self._settings = 0
        self.guest: GuestT = make(self)
        union = getattr(self.guest, "messages", None)
        self._decoder = None if union is None else msgspec.msgpack.Decoder[Message](union | Fragment)
        self._contents = Contents(union) if net.language else None
        self._reassembly = Reassembly(lambda reason: net.record(address, "lost", f"loses a message: {reason}"))

    def now(self) -> float:
        return self._net.now_s

    def position(self) -> Point | None:
        return self._net.positions_m.get(self.address)

    def velocity(self) -> Point | None:
        return None if self.position() is None else (0.0, 0.0)

    def broadcast(self, message: Message) -> None:
        self._transmit(NOBODY, message)

    def send(self, neighbour: int, message: Message) -> None:
        if neighbour == NOBODY:
            raise CallerError(f"send: {message.label} to NOBODY")
        self._transmit(neighbour, message)

    def backlog(self) -> int:
        return self.frames_under_way

    def set_timer(self, delay_s: float, timer: Timer) -> None:
        if not delay_s >= 0:
            raise CallerError(f"set_timer: delay_s = {delay_s!r} for {timer}: must be at least 0")
        self._settings += 1
        setting = self._timers[timer] = self._settings
        self._net.after(delay_s, lambda: self._fire(timer, setting))

    def cancel_timer(self, timer: Timer) -> None:
        self._timers.pop(timer, None)

    def deliver(self, event: Event, hops: int, channel: int = PLAIN_CHANNEL) -> None:
        self._net.deliveries.append(RecordedDelivery(self.now(), self.address, event, hops, channel))
        self._net.record(self.address, "deliver", f"delivers {readable(event)} after {hops} hops")

    def refused(self, channel: int, reason: str) -> None:
        self._net.record(self.address, "refused", f"is refused the modulator of channel {channel}: {reason}")

    def dropped(self, reason: str, event_id: int = NO_EVENT) -> None:
        about = "" if event_id == NO_EVENT else f" {event_name(event_id)}"
        self._net.record(self.address, "dropped", f"drops{about}: {reason}")

    def structure(self, aspect: str, peer: int = NOBODY, value: float = 0.0, detail: str = "") -> None:
        parts = [aspect, "" if peer == NOBODY else f"peer={peer}", f"value={value:g}" if value else "", detail]
        self._net.record(self.address, "structure", "is " + " ".join(part for part in parts if part))

    # -- For the network -----------------------------------------------------------------------------------------

    @property
    def timers(self) -> list[Timer]:
        """What is pending, sorted; for tests that look inside."""
        return sorted(self._timers)

    def forget_timers(self) -> None:
        self._timers.clear()

    def arrives(self, sender: int, message: Message) -> None:
        """A frame for this node: its message, or a fragment of one."""
        if isinstance(message, Fragment):
            data = self._reassembly.add(sender, message, self.now())
            if data is None:
                return
            message = self._decode(data)
        if self._contents is None:
            self.guest.on_message(sender, message)
        elif not self._contents.speaks(message, self._net.language):
            self._net.record(self.address, "lost", "loses a message: foreign language")
        else:
            try:
                self.guest.on_message(sender, message)
            except PeerError:
                self._net.record(self.address, "lost", "loses a message: refused")

    def fails(self, neighbour: int, message: Message) -> None:
        """The link gave up on a frame."""
        whole = self.outbox.failed(message) if isinstance(message, Fragment) else message
        if whole is not None:
            self.guest.on_send_failed(neighbour, whole)

    def _transmit(self, receiver: int, message: Message) -> None:
        data = msgspec.msgpack.encode(message)
        if len(data) > self.message_bytes_max:
            raise CallerError(f"{message.label}: {len(data)} bytes; allowed: at most {self.message_bytes_max}")
        try:
            copy = self._decode(data)
        except msgspec.ValidationError as error:
            raise CallerError(f"wire: {message!r} would be refused by its receivers: {error}") from None
        if copy is not None and copy != message:
            raise CallerError(f"wire: {message!r} would arrive as {copy!r}")
        if len(data) <= self.frame_bytes_max or copy is None:
            self._net.transmit(self, receiver, message)
            return
        self.outbox.add(receiver, message, data)
        while following := self.outbox.next():
            self._net.transmit(self, *following)

    def _decode(self, data: bytes) -> Any:
        """The message, as a receiver would see it; None if the guest has no messages of its own."""
        return None if self._decoder is None else self._decoder.decode(data)

    def _fire(self, timer: Timer, setting: int) -> None:
        if self._timers.get(timer) == setting:
            del self._timers[timer]
            self.guest.on_timer(timer)
