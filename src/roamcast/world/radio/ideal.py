"""The ideal radio: a frame reaches all contacts after a fixed delay, nothing collides, nothing waits.

This is what the GeoRendezvous and Opportunistic Overlays papers assume. A unicast fails only if the neighbour is not in
range when the frame is sent, or if random loss hits it `TRIES` times in a row.
"""

from collections.abc import Callable
from typing import Final

from roamcast.protocols.api import NOBODY, Listener, Message
from roamcast.seeds import Random
from roamcast.world.radio.medium import Frame, Medium
from roamcast.world.scheduler import Scheduler
from roamcast.world.topology import Topology

TRIES: Final = 7  # of a unicast under random loss, as 802.11's retry limit


class IdealFrame(Frame):
    __slots__ = ("medium",)

    def __init__(
        self,
        medium: "IdealMedium",
        sender: int,
        receiver: int,
        message: Message,
        label: str,
        size: int,
        airtime_s: float,
    ) -> None:
        super().__init__(sender, receiver, message, label=label, size=size, airtime_s=airtime_s)
        self.medium = medium

    def due(self) -> None:
        if self.receiver == NOBODY:
            self.medium.arrive(self)
        else:
            self.medium.arrive_at_one(self)


class IdealMedium(Medium):
    def __init__(
        self,
        scheduler: Scheduler,
        topology: Topology,
        random: Random,
        loss: float,
        frame_bytes_max: int,
        delay_s: float,
        rate_bps: float,
        overhead_bytes: int,
    ) -> None:
        super().__init__(scheduler, topology, random, loss, frame_bytes_max)
        self._delay_s = delay_s
        self._rate_bps = rate_bps  # for the airtime figures only
        self._overhead_bytes = overhead_bytes
        self._receive_s = [0.0] * topology.nodes
        self._listeners: list[Listener | None] = [None] * topology.nodes

    def attach(self, node: int, listener: Listener | None) -> None:
        self._listeners[node] = listener

    def transmit(self, sender: int, receiver: int, message: Message, size: int) -> None:
        size += self._overhead_bytes
        frame = IdealFrame(
            medium=self,
            sender=sender,
            receiver=receiver,
            message=message,
            label=self.label_of(message),
            size=size,
            airtime_s=size * 8 / self._rate_bps,
        )
        frame.start = self.scheduler.now
        frame.end = frame.start + self._delay_s
        frame.hearers = self.topology.hear[sender]
        for node in frame.hearers:
            self._receive_s[node] += frame.airtime_s
        self._count(frame)
        self.scheduler.put(frame.end, frame)

    def receive_s(self, node: int) -> float:
        return self._receive_s[node]

    def silence(self, node: int) -> None:
        """Nothing is ever queued."""

    def backlog(self, node: int) -> int:
        return 0

    def when_idle(self, node: int, call: Callable[[], None]) -> None:
        call()

    def arrive(self, frame: IdealFrame) -> None:
        assert frame.message is not None
        sender, message = frame.sender, frame.message
        listeners = self._listeners
        for node in frame.hearers:
            if self.loss and self.draw() < self.loss:
                self._fail("loss")
            else:
                self.receptions += 1
                listener = listeners[node]
                if listener is not None:
                    listener.on_message(sender, message)

    def arrive_at_one(self, frame: IdealFrame) -> None:
        assert frame.message is not None
        if frame.receiver not in frame.hearers:
            self._fail("out-of-range")
        elif self.loss and all(self.draw() < self.loss for _ in range(TRIES)):
            self._fail("retries")
        else:
            listener = self._listeners[frame.receiver]
            if listener is not None:
                listener.on_message(frame.sender, frame.message)
            return
        sender = self._listeners[frame.sender]
        if sender is not None:
            sender.on_send_failed(frame.receiver, frame.message)
