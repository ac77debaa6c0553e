"""Faulty nodes: the host of a node that has incidents (`incident.py`).

Only nodes that a scenario lists get such a host, so a run without incidents does not pay for any of this. What
happens to messages happens between the link and the protocol, after the link has acknowledged them. Random choices come
from a generator of the node's own, so they change nothing else.
"""

from collections.abc import Iterable
from typing import Any, Final

from roamcast.protocols.api import Listener, Message, Timer
from roamcast.seeds import Random, derive
from roamcast.world.forged import Forged
from roamcast.world.host import HostServices, SimulatedHost
from roamcast.world.incident import Incident
from roamcast.world.scheduler import Due, Scheduler

HELD_MAX: Final = 256
"""Messages that wait at a node that is paused or slow; overflow is dropped silently."""

BEHIND_MAX_S: Final = 5.0
"""A slow node is never further behind than this; what would have to wait longer is dropped silently."""

OVERTAKEN_SHARE: Final = 1 / 3  # reorder: of the messages
UNANSWERED_S: Final = 0.02  # the link gives up on a neighbour that does not exist
AGAIN_WITHIN_S: Final = 0.1  # duplicate: the second time


class FaultyLink(Listener):
    """Stands between the link and a node, for one life, and does to messages what incidents say."""

    def __init__(self, host: "FaultyHost", listener: Listener, scheduler: Scheduler, random: Random) -> None:
        self._host = host
        self._listener = listener
        self._scheduler = scheduler
        self._random = random
        self._free_s = 0.0  # slow: when all before has been handled
        self._latest_s = 0.0  # when the last message that keeps its order arrives
        self._held = 0
        self._is_closed = False

    def close(self) -> None:
        self._is_closed = True

    def on_message(self, sender: int, message: Message) -> None:
        if type(message) is Forged:
            if self._host.is_signed:
                self._host.lose("forged")
                return
            sender, message = message.sender, message.message
        now = self._scheduler.now
        arrives_s = now
        overtaken = again = False
        for incident in self._host.incidents:
            if not incident.from_s <= now < incident.until_s:
                continue
            what = incident.what
            if what == "corrupt":
                if self._random.random() < incident.amount:
                    self._host.count("corrupt")
                    self._host.lose("corrupt")
                    return
            elif what == "duplicate":
                again = again or self._random.random() < incident.amount
            elif what == "delay":
                arrives_s = max(arrives_s, now + incident.amount)
                self._host.count("delay")
            elif what == "reorder" and self._random.random() < OVERTAKEN_SHARE:
                overtaken = True
                self._host.count("reorder")
                arrives_s = max(arrives_s, now + self._random.random() * incident.amount)
        if not overtaken:
            arrives_s = self._latest_s = max(arrives_s, self._latest_s)
        if again:
            self._host.count("duplicate")
            self._arrives(arrives_s + self._random.random() * AGAIN_WITHIN_S, sender, message)
        self._arrives(arrives_s, sender, message)

    def on_send_failed(self, neighbour: int, message: Message) -> None:
        resumes_s = self._host.resumes_s()
        if resumes_s > self._scheduler.now:
            self._scheduler.put(resumes_s, _Failure(self, neighbour, message))
        else:
            self._listener.on_send_failed(neighbour, message)

    def _arrives(self, t_s: float, sender: int, message: Message) -> None:
        """Hands the message over at `t_s`, or when the node is ready for it."""
        now = self._scheduler.now
        ready_s = max(t_s, self._host.resumes_s())
        if ready_s > t_s:
            self._host.count("pause")
        handling_s = self._host.handling_s()
        if handling_s:
            self._host.count("slow")
        if handling_s or self._free_s > ready_s:
            if self._free_s > ready_s + BEHIND_MAX_S:
                self._host.lose("queue")
                return
            self._free_s = ready_s = max(ready_s, self._free_s) + handling_s
        if ready_s <= now:
            self._listener.on_message(sender, message)
        elif self._held >= HELD_MAX:
            self._host.lose("queue")
        else:
            self._held += 1
            self._scheduler.put(ready_s, _Arrival(self, sender, message))

    def hand_over(self, sender: int, message: Message) -> None:
        """A message that waited; if the node is paused by now, it waits on."""
        self._held -= 1
        if self._is_closed:
            return
        resumes_s = self._host.resumes_s()
        if resumes_s > self._scheduler.now:
            self._held += 1
            self._scheduler.put(resumes_s, _Arrival(self, sender, message))
        else:
            self._listener.on_message(sender, message)

    def hand_over_failure(self, neighbour: int, message: Message) -> None:
        if not self._is_closed:
            self.on_send_failed(neighbour, message)


class FaultyHost(SimulatedHost):
    """The host of a node that has incidents, for one life."""

    def __init__(self, services: HostServices, address: int, life: int, random: Random) -> None:
        super().__init__(services, address, life, random)
        self.incidents: list[Incident] = []
        self._mischief = derive(services.seed, "incidents", address, life)
        self._link: FaultyLink | None = None
        self._mishaps = services.mishaps
        self._born_s = services.scheduler.now
        self.junk: Any = None  # what a flooder publishes (`adversaries.py`)
        self.is_signed = services.security.protection == "signed"
        self.among_adversaries = False  # frames may be forged, and nodes may have made-up addresses
        self._nodes = services.medium.topology.nodes

    def suffer(self, incidents: Iterable[Incident]) -> None:
        """Called before `connect`."""
        self.incidents = list(incidents)

    def lose(self, reason: str) -> None:
        self._medium.lose(reason)

    def count(self, what: str) -> None:
        self._mishaps[what] = self._mishaps.get(what, 0) + 1

    def guarded(self, listener: Listener) -> Listener:
        if not self.incidents and not self.among_adversaries:
            return listener
        self._link = FaultyLink(self, listener, self._scheduler, self._mischief)
        return self._link

    def end_life(self) -> None:
        super().end_life()
        if self._link is not None:
            self._link.close()

    def resumes_s(self) -> float:
        now = self._scheduler.now
        resumes_s = now
        for incident in self.incidents:
            if incident.what == "pause" and incident.from_s <= now < incident.until_s:
                resumes_s = max(resumes_s, incident.until_s)
        return resumes_s

    def handling_s(self) -> float:
        """How long the node takes for one message."""
        now = self._scheduler.now
        longest_s = 0.0
        for incident in self.incidents:
            if incident.what == "slow" and incident.from_s <= now < incident.until_s:
                longest_s = max(longest_s, incident.amount)
        return longest_s

    def now(self) -> float:
        true_s = self._scheduler.now
        told_s = true_s
        for incident in self.incidents:
            if incident.what == "clock-jump" and self._born_s <= incident.from_s <= true_s:
                told_s += incident.amount
            elif incident.what == "clock-drift":
                drifted_s = min(true_s, incident.until_s) - max(incident.from_s, self._born_s)
                told_s += incident.amount * max(0.0, drifted_s)
        return told_s

    def set_timer(self, delay_s: float, timer: Timer) -> None:
        rate = 1.0
        for incident in self.incidents:
            if incident.what == "clock-drift" and incident.from_s <= self._scheduler.now < incident.until_s:
                rate += incident.amount
        super().set_timer(delay_s / max(rate, 0.1), timer)

    def ring(self, timer: Any) -> None:
        resumes_s = self.resumes_s()
        alarm = self._timers.get(timer)
        if alarm is not None and alarm.due_s == self._scheduler.now and resumes_s > alarm.due_s:
            alarm.due_s = resumes_s
            self.count("pause")
            self._scheduler.put(resumes_s, alarm)
        else:
            super().ring(timer)

    def transmit(self, receiver: int, message: Message) -> None:
        if receiver >= self._nodes:  # made up by an adversary; no node answers
            self._medium.lose("retries")
            self._scheduler.at(self._scheduler.now + UNANSWERED_S, self._fail, (receiver, message))
            return
        now = self._scheduler.now
        for incident in self.incidents:
            is_on = incident.what == "overflow" and incident.from_s <= now < incident.until_s
            if is_on and self._mischief.random() < incident.amount:
                self.count("overflow")
                self._medium.lose("queue")
                return
        super().transmit(receiver, message)

    def _fail(self, sent: tuple[int, Message]) -> None:
        if self._protocol is not None:
            self._protocol.on_send_failed(*sent)


class _Arrival(Due):
    """A message on its way from the link to a faulty node."""

    __slots__ = ("_link", "_message", "_sender")

    def __init__(self, link: FaultyLink, sender: int, message: Message) -> None:
        self._link = link
        self._sender = sender
        self._message = message

    def due(self) -> None:
        self._link.hand_over(self._sender, self._message)


class _Failure(Due):
    """The report of a failed unicast, for a node that is paused."""

    __slots__ = ("_link", "_message", "_neighbour")

    def __init__(self, link: FaultyLink, neighbour: int, message: Message) -> None:
        self._link = link
        self._neighbour = neighbour
        self._message = message

    def due(self) -> None:
        self._link.hand_over_failure(self._neighbour, self._message)
