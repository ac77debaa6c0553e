"""A tournament on one machine: live nodes that move over the course, each with its page, and a map of it all.

Every device is a `Participant` with a socket of its own on loopback. A few times a second everyone is where the course
says, and the links of each node become those to the devices in range; datagrams go over the machine's network stack as
on any other machine.

The script: visitors register their subscriptions, officials announce each result, visitors beat them to it now and
then, and toward the end some look for a shared taxi and others offer one. Then the script is over, and the nodes go on:
every page can still register and publish.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from typing import Any

import msgspec

import roamcast
from roamcast.apps.golf_forum import forms, tournament
from roamcast.apps.golf_forum.course import Course, Person
from roamcast.apps.golf_forum.pages import WEB, serve_files, serve_participant, tell_status
from roamcast.apps.golf_forum.participant import Device, Participant
from roamcast.apps.golf_forum.story import Story
from roamcast.apps.server import PageServer
from roamcast.events import Event
from roamcast.interests import XPaths

TICK_S = 0.25
FIRST_RESULT_S = 10.0  # after the beginning
SETTLE_S = 3.0  # until nodes know their neighbours
TAXI_AT = 0.7  # of the script
PARAMETERS = {"refresh_interval_s": 4.0, "forwarding_timeout_s": 12.0, "refresh_max_s": 8.0, "client_refresh_s": 3.0}
"""Of ODMRP: everyone is faster than a walker, so routes are refreshed more often."""


class DemoOutcome(msgspec.Struct, frozen=True):
    """What the script came to."""

    nodes: int
    published: int
    expected: int  # pairs of an event and a device that has a matching subscription when it is published
    delivered: int  # of these


class GolfForumDemo:
    """Start it with `running`, then `play` the script."""

    def __init__(self, course: Course, *, seed: int = 1, listen: str = "127.0.0.1:0") -> None:
        self.course = course
        self.server = PageServer(listen)
        self.participants: dict[int, Participant] = {}
        self._seed = seed
        self._began_s = 0.0
        finishes = course.finishes(600.0)
        # On the course: shortly before the first flight is done.
        self._start_s = max(0.0, finishes[0].t_s - FIRST_RESULT_S) if finishes else 0.0
        self._expected: set[tuple[str, int]] = set()
        self._got: set[tuple[str, int]] = set()
        self._events = 0
        self._kinds: dict[int, str] = {}  # of devices
        visitors = [person for person in course.people if person.role == "gallery"]
        self._visitor = {person.number: n for n, person in enumerate(visitors)}
        described = course.described() | {"mode": "live"}
        for person in described["people"]:
            if person["role"] != "player":
                person["page"] = f"/device/{person['number']}/"
                person["device"] = _kind(self._device(course.people[person["number"]]))
                self._kinds[person["number"]] = person["device"]
        self.story = Story(described, self.now)

    def now(self) -> float:
        """Seconds since the beginning, by the clock."""
        return time.monotonic() - self._began_s if self._began_s else 0.0

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator["GolfForumDemo"]:
        async with contextlib.AsyncExitStack() as stack:
            for person in self.course.people:
                if person.has_device:
                    participant = self._participant(person)
                    await stack.enter_async_context(participant)
                    self.participants[person.number] = participant
                    serve_participant(self.server, participant, f"/device/{person.number}")
            self.server.page("/", WEB / "course.html")
            serve_files(self.server)
            self.story.listener = self.server.feed("/feed", self.story.snapshot).send
            await stack.enter_async_context(self.server)
            self._began_s = time.monotonic()
            async with asyncio.TaskGroup() as tasks:
                chores = [
                    tasks.create_task(self._move()),
                    tasks.create_task(tell_status([*self.participants.values()])),
                ]
                try:
                    yield self
                finally:
                    for chore in chores:
                        chore.cancel()

    async def play(self, duration_s: float = 60.0) -> DemoOutcome:
        """The script, from the beginning to its end."""
        async with asyncio.TaskGroup() as tasks:
            for number, visitor in self._visitor.items():
                tasks.create_task(self._register(number, visitor))
            tasks.create_task(self._announce(duration_s))
            tasks.create_task(self._share_taxis(TAXI_AT * duration_s, duration_s))
            tasks.create_task(asyncio.sleep(duration_s - self.now()))
        return DemoOutcome(len(self.participants), self._events, len(self._expected), len(self._expected & self._got))

    def _device(self, person: Person) -> Device:
        """Officials and most visitors are brokers; of every five visitors one is a client and one a constrained one."""
        visitor = self._visitor.get(person.number, 0)
        constrained = person.role == "gallery" and visitor % 5 == 3
        broker = person.role == "announcer" or (visitor % 5 != 1 and not constrained)
        return Device(person.name, person.number, person.hole, broker, constrained)

    def _participant(self, person: Person) -> Participant:
        def watched(activity: roamcast.Activity) -> None:
            if activity.kind == "heard" and activity.event_id is not None and activity.peer is not None:
                self.story.heard(activity.event_id, activity.peer, person.number, activity.label)
            elif activity.kind == "structure" and activity.label == "home":
                self.story.tell("home", node=person.number, broker=activity.peer)

        def told(message: dict[str, Any]) -> None:
            if message["kind"] == "published":
                self._published(person.number, message)
            elif message["kind"] == "notice":
                self._delivered(person.number, message)
            elif message["kind"] == "status":
                self._changed(person.number)

        participant = Participant(
            self._device(person),
            parameters=PARAMETERS,
            on_activity=watched,
            listen="127.0.0.1:0",
            discover=False,
            network="golf-forum",
            position=self.course.place(person.number, self._start_s),
        )
        participant.listeners.append(told)
        return participant

    def _published(self, number: int, message: dict[str, Any]) -> None:
        self._events += 1
        event = Event(int(message["event"]), 0.0, message["xml"], b"")
        for other, participant in self.participants.items():
            interests = [subscription.interest for each in participant.wanted for subscription in each.open]
            if other != number and any(isinstance(each, XPaths) and each.matches(event) for each in interests):
                self._expected.add((message["event"], other))
        fields = {name: message[name] for name in ("event", "type", "official", "values")}
        self.story.tell("published", node=number, **fields)

    def _delivered(self, number: int, message: dict[str, Any]) -> None:
        if (message["event"], number) not in self._got:
            self._got.add((message["event"], number))
            fields = {name: message[name] for name in ("event", "hops", "latency_ms", "matches")}
            self.story.tell("delivered", node=number, **fields)

    def _changed(self, number: int) -> None:
        kind = _kind(self.participants[number].device)
        if self._kinds[number] != kind:
            self._kinds[number] = kind
            self.story.tell("device", node=number, device=kind)

    async def _move(self) -> None:
        links: dict[int, list[int]] = {}
        told: list[list[int]] = []
        while True:
            t_s = self._start_s + self.now()
            near = self.course.in_range(t_s)
            for number, participant in self.participants.items():
                participant.node.move(*self.course.place(number, t_s))
                if near[number] != links.get(number):
                    participant.node.link([self.participants[other].node.endpoint for other in near[number]])
            links = near
            places = self.course.places(t_s)
            if places != told:
                self.story.tell("places", at=places)
                told = places
            await asyncio.sleep(TICK_S)

    async def _until(self, t_s: float) -> None:
        await asyncio.sleep(max(0.0, t_s - self.now()))

    async def _register(self, number: int, visitor: int) -> None:
        await self._until(SETTLE_S + 0.2 * visitor)
        self.participants[number].subscribe(tournament.wish(visitor))

    async def _announce(self, duration_s: float) -> None:
        results = tournament.results(self.course, self._start_s + duration_s, self._seed)
        for result in results:
            due_s = result.t_s - self._start_s
            if due_s < SETTLE_S or due_s >= duration_s:
                continue
            await self._until(due_s)
            if result.remark:
                witness = next(n for n in self._visitor if self.course.people[n].flight == result.flight)
                await self.participants[witness].publish(forms.SCORE, {**result.values, "remark": result.remark})
            else:
                official = self.participants[int(result.values["hole"]) - 1]
                await official.publish(forms.SCORE, dict(result.values))

    async def _share_taxis(self, from_s: float, until_s: float) -> None:
        visitors = list(self._visitor)
        await self._until(from_s)
        for n, number in enumerate(visitors[: 2 * len(tournament.RIDE_WISHES)]):
            self.participants[number].subscribe(tournament.ride_wish(n))
        for n, ride in enumerate(tournament.RIDES):
            await self._until(from_s + (until_s - from_s) * (n + 1) / (len(tournament.RIDES) + 1))
            await self.participants[visitors[-1 - n]].publish(forms.TAXI, dict(ride))


def _kind(device: Device) -> str:
    return "constrained" if device.constrained else "broker" if device.broker else "client"
