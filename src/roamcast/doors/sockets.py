"""A WebSocket, both ways, one JSON object a message.

From the client:

    {"do": "subscribe", "interest": "fire/**"}      {"do": "unsubscribe", "interest": "fire/**"}
    {"do": "publish", "content": "fire/north", "payload": "smoke", "attributes": {...}, "cause": 4294967297}

A payload that is not text is `payload_base64`. A client may add a `tag`, which comes back in the answer. To the client:
`{"kind": "done"}`, `{"kind": "published", "event_id": ...}`, `{"kind": "error", "text": ...}` and, for events,
`{"kind": "delivered", ...}`. A message that makes no sense is answered by an error, and the connection stays.
"""

import asyncio
import base64
import binascii
import contextlib
from typing import Any

import msgspec
from aiohttp import WSMsgType, web

from roamcast.doors.access import Access
from roamcast.doors.cloudevents import checked_traceparent
from roamcast.doors.gate import Gate, as_json, is_internal
from roamcast.errors import ConfigurationError
from roamcast.events import NO_EVENT
from roamcast.library.nodes import Subscription

SUBSCRIPTIONS_MAX = 64  # of one client
DOOR = "http"


class SocketRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="do"):
    tag: str | int | None = None  # comes back in the answer


class Subscribe(SocketRequest, frozen=True, forbid_unknown_fields=True, tag_field="do", tag="subscribe"):
    interest: str = ""


class Unsubscribe(SocketRequest, frozen=True, forbid_unknown_fields=True, tag_field="do", tag="unsubscribe"):
    interest: str = ""


class Publish(SocketRequest, frozen=True, forbid_unknown_fields=True, tag_field="do", tag="publish"):
    content: str | int | float = ""
    payload: str = ""
    payload_base64: str = ""
    attributes: dict[str, str] = {}
    cause: int = NO_EVENT


_decoder = msgspec.json.Decoder(Subscribe | Unsubscribe | Publish)


class Socket:
    """One client."""

    def __init__(self, gate: Gate, access: Access, user: str, socket: web.WebSocketResponse, queue_max: int) -> None:
        self._gate = gate
        self._access = access
        self._user = user
        self._socket = socket
        self._queue_max = queue_max
        self._subscriptions: dict[str, Subscription] = {}
        self._readers: dict[str, asyncio.Task[None]] = {}

    async def run(self, closing: asyncio.Event) -> None:
        """Until the client goes or the door closes."""
        watch = asyncio.ensure_future(self._close_when(closing))
        try:
            async for message in self._socket:
                if message.type in (WSMsgType.TEXT, WSMsgType.BINARY):
                    await self._answer(message.data)
        except ConnectionError:
            pass
        finally:
            watch.cancel()
            for text in list(self._subscriptions):
                self._end(text)

    async def _close_when(self, closing: asyncio.Event) -> None:
        await closing.wait()
        await self._socket.close(code=1001)

    async def _answer(self, data: str | bytes) -> None:
        tag: str | int | None = None
        try:
            request = _decoder.decode(data)
            tag = request.tag
            answer = await self._obey(request)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, ConfigurationError) as error:
            self._gate.refuse(DOOR, str(error))
            answer = {"kind": "error", "text": " ".join(str(error).split())}
        await self._send(answer if tag is None else {**answer, "tag": tag})

    async def _obey(self, request: Subscribe | Unsubscribe | Publish) -> dict[str, Any]:
        if isinstance(request, Publish):
            return await self._publish(request)
        text = request.interest
        if isinstance(request, Unsubscribe):
            if text not in self._subscriptions:
                raise ConfigurationError(f"interest: {text[:80]!r} is not subscribed")
            self._end(text)
        elif text not in self._subscriptions:
            if len(self._subscriptions) >= SUBSCRIPTIONS_MAX:
                raise ConfigurationError(f"subscriptions: {SUBSCRIPTIONS_MAX} are open; allowed: at most as many")
            subscription = self._gate.subscribe(text, user=self._user, access=self._access, queue_max=self._queue_max)
            self._subscriptions[text] = subscription
            self._readers[text] = asyncio.ensure_future(self._read(text, subscription))
        return {"kind": "done"}

    async def _publish(self, request: Publish) -> dict[str, Any]:
        try:
            payload = base64.b64decode(request.payload_base64, validate=True) or request.payload.encode()
        except (ValueError, binascii.Error):
            raise ConfigurationError("payload_base64: is not base64") from None
        if "traceparent" in request.attributes:
            checked_traceparent(request.attributes["traceparent"])
        published = await self._gate.publish(
            DOOR,
            request.content,
            payload,
            user=self._user,
            access=self._access,
            attributes=request.attributes,
            cause=request.cause,
        )
        return {"kind": "published", "event_id": published.event.id, "neighbours": published.neighbours}

    async def _read(self, text: str, subscription: Subscription) -> None:
        lost = 0
        async for delivery in subscription:
            if subscription.lost > lost:
                self._gate.lost[DOOR] += subscription.lost - lost
                lost = subscription.lost
                await self._send({"kind": "lost", "interest": text, "events": lost})
            if is_internal(delivery.event.content):
                continue
            await self._send({"kind": "delivered", "interest": text, **as_json(self._gate.arrival(delivery))})
            self._gate.delivered[DOOR] += 1

    async def _send(self, message: dict[str, Any]) -> None:
        with contextlib.suppress(ConnectionError, RuntimeError):  # the client has gone
            await self._socket.send_str(msgspec.json.encode(message).decode())

    def _end(self, text: str) -> None:
        self._subscriptions.pop(text).close()
        self._readers.pop(text).cancel()
