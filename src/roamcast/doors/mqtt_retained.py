"""Retained messages between the MQTT doors of a network; `retained.py` says how."""

import asyncio
from collections.abc import Callable, Coroutine
from enum import Enum
from typing import Any

from roamcast.doors.gate import ClientEvent, Gate
from roamcast.doors.mqtt_topics import mqtt_topic_of
from roamcast.doors.retained import (
    ASK,
    RETAIN,
    STAMP,
    Retained,
    RetainedValue,
    asked,
    question,
    read_stamp,
    written_stamp,
)
from roamcast.errors import ConfigurationError
from roamcast.events import Event
from roamcast.interests.topics import Topics
from roamcast.library.nodes import Subscription

ASK_AFTER_S = (0.2, 1.0, 4.0)
"""When a node that begins to want topics asks for what is retained: its interest takes a while to be known."""

AGAIN_AFTER_S = 0.5  # an origin publishes a message again at most this often
QUESTIONS_MAX = 64  # that wait; then the oldest is dropped


class Kind(Enum):
    """What an arriving event is to the clients of a door."""

    MESSAGE = "message"  # it has just been published
    PAST = "past"  # it was published before, but is new here
    KNOWN = "known"  # it was published before, and is known here


class Tasks:
    """Work in the background that ends with its door."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class RetainedExchange:
    def __init__(self, gate: Gate, most: int, tasks: Tasks, set_retained: Callable[[str, bytes], None]) -> None:
        """`set_retained` is told the MQTT topic and payload of what clients should get that subscribe later."""
        self._gate = gate
        self._tasks = tasks
        self._set_retained = set_retained
        self._retained = Retained(most)
        self._again_s: dict[str, float] = {}  # topic -> when it may be published again
        self._questions: Subscription | None = None

    def close(self) -> None:
        if self._questions is not None:
            self._questions.close()

    def published(self, event: Event, payload: bytes) -> None:
        """A client of this door has published a message to be retained."""
        self._keep(RetainedValue(str(event.content), payload, (event.time_s, event.id), is_own=True))
        if self._questions is None:
            try:
                self._questions = self._gate.node.subscribe(Topics.of(ASK), queue_max=QUESTIONS_MAX)
            except ConfigurationError as error:  # nor that; nodes that come later do not learn what is retained here
                self._gate.refuse("mqtt", str(error))
            else:
                self._tasks.start(self._answer(self._questions))

    def arrived(self, arrival: ClientEvent) -> Kind:
        event = arrival.event
        if RETAIN not in arrival.attributes or event.publisher == self._gate.node.address:
            return Kind.MESSAGE
        stamp = (event.time_s, event.id)
        if STAMP not in arrival.attributes:
            self._keep(RetainedValue(str(event.content), arrival.payload, stamp, is_own=False))
            return Kind.MESSAGE
        original = read_stamp(arrival.attributes[STAMP], stamp)
        is_news = self._keep(RetainedValue(str(event.content), arrival.payload, original, is_own=False))
        return Kind.PAST if is_news else Kind.KNOWN

    def ask(self, patterns: list[str]) -> None:
        """This node begins to want such topics."""
        self._tasks.start(self._ask(patterns))

    def _keep(self, kept: RetainedValue) -> bool:
        is_news, gone = self._retained.keep(kept)
        if is_news:
            self._set_retained(mqtt_topic_of(kept.content), kept.payload)
        for content in gone:
            self._set_retained(mqtt_topic_of(content), b"")
            self._again_s.pop(content, None)
        return is_news

    async def _ask(self, patterns: list[str]) -> None:
        waited_s = 0.0
        for after_s in ASK_AFTER_S:
            await asyncio.sleep(after_s - waited_s)
            waited_s = after_s
            try:
                await self._gate.node.publish(ASK, question(patterns))
            except ConfigurationError as error:  # this node's certificate does not allow it
                self._gate.refuse("mqtt", str(error))

    async def _answer(self, questions: Subscription) -> None:
        async for delivery in questions:
            wanted = asked(delivery.event.payload)
            if wanted is not None:
                for kept in self._retained.own_within(wanted):
                    await self._publish_again(kept, delivery.event)

    async def _publish_again(self, kept: RetainedValue, cause: Event) -> None:
        now_s = asyncio.get_running_loop().time()
        if self._again_s.get(kept.content, 0.0) <= now_s:
            self._again_s[kept.content] = now_s + AGAIN_AFTER_S
            attributes = {RETAIN: "1", STAMP: written_stamp(kept.stamp)}
            await self._gate.publish_again(kept.content, kept.payload, attributes, cause)
