"""HTTP: publish by POST, subscribe by GET as server-sent events, both over a WebSocket.

- `POST /events/TOPIC`: the body is the payload. `POST /events` with a CloudEvent takes the topic from its subject.
- `GET /events?subscribe=INTEREST`: server-sent events, each a JSON object; `&format=cloudevents` makes CloudEvents.
- `GET /socket`: a WebSocket (`sockets.py`).
- `GET /health`: whether the node works, and how many neighbours it has.

`?ttl_s=`, `?priority=`, `?custody=` and `?timeout_s=` of a POST, `&durable=NAME` and `&ordered` of a GET are those of
`roamcast.Node`. A durable subscription goes on while its client is away; an event is acknowledged when it was written.

For languages other than `topics` the content is `POST /events?content=...`. The headers `traceparent` and `tracestate`
travel with an event. `Roamcast-Cause: ID` names the event that led to this one.
"""

import asyncio
from typing import Any

import msgspec
from aiohttp import hdrs, web

from roamcast.doors import cloudevents
from roamcast.doors.gate import Gate, Terms, as_json, is_internal
from roamcast.doors.settings import HttpEntry
from roamcast.doors.sockets import Socket
from roamcast.doors.web import USER, WebDoor
from roamcast.errors import ConfigurationError
from roamcast.events import NO_EVENT, Content
from roamcast.live.node import EVENT_BYTES_MAX

BODY_TIMEOUT_S = 20.0
TIMEOUT_MAX_S = 60.0
CUSTODY_MAX = 1000
KEEP_ALIVE_S = 15.0  # a silent stream sends a comment this often, which finds clients that are gone
SOCKET_MESSAGE_BYTES_MAX = 2 * EVENT_BYTES_MAX  # a payload in base64 is larger than the event


class HttpDoor(WebDoor):
    name = "http"
    open_paths = ("/health",)

    def __init__(self, gate: Gate, entry: HttpEntry) -> None:
        super().__init__(gate, entry)
        self._closing = asyncio.Event()

    def routes(self) -> list[web.AbstractRouteDef]:
        return [
            web.get("/health", self._health),
            web.post("/events", self._publish),
            web.post("/events/{topic:.+}", self._publish),
            web.get("/events", self._stream),
            web.get("/socket", self._socket),
        ]

    async def close(self) -> None:
        self._closing.set()
        await super().close()

    async def _health(self, request: web.Request) -> web.Response:
        counters = self.gate.node.counters
        answer = {name: counters[name] for name in ("address", "protocol", "uptime_s", "neighbours", "queue")}
        return web.json_response({"status": "ok", **answer})

    async def _publish(self, request: web.Request) -> web.Response:
        async with asyncio.timeout(BODY_TIMEOUT_S):
            body = await request.read()
        subject, attributes, payload = _message(request, body)
        published = await self.gate.publish(
            self.name,
            content_of(self.gate.node.language, _named(request) or subject),
            payload,
            user=request[USER],
            access=self.access,
            attributes=attributes,
            cause=_cause(request.headers.get("Roamcast-Cause")),
            terms=_terms(request),
        )
        event = published.event
        known = {"neighbours": published.neighbours, "stored": published.stored, "custody": published.custody}
        return web.json_response({"event_id": event.id, "time_s": event.time_s, **known}, status=202)

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        wanted = request.query.getall("subscribe", [])
        if not wanted:
            raise ConfigurationError("subscribe: is missing; write /events?subscribe=fire/**")
        form = request.query.get("format", "json")
        if form not in ("json", "cloudevents"):
            raise ConfigurationError(f"format: {form[:40]!r} is unknown; allowed: json, cloudevents")
        subscription = self.gate.subscribe(
            " ".join(wanted),
            user=request[USER],
            access=self.access,
            queue_max=self.entry.queue,
            durable=request.query.get("durable", ""),
            ordered="ordered" in request.query,
        )
        response = web.StreamResponse(
            headers={hdrs.CONTENT_TYPE: "text/event-stream", hdrs.CACHE_CONTROL: "no-store", "X-Accel-Buffering": "no"}
        )
        try:
            await response.prepare(request)
            await response.write(b": subscribed\n\n")
            lost = 0
            while not self._closing.is_set():
                delivery = await self._next(subscription)
                if subscription.lost > lost:
                    self.gate.lost[self.name] += subscription.lost - lost
                    lost = subscription.lost
                    await response.write(f"event: lost\ndata: {lost}\n\n".encode())
                if delivery is None:
                    await response.write(b": alive\n\n")
                    continue
                if is_internal(delivery.event.content):
                    continue
                arrival = self.gate.arrival(delivery)
                shown = (
                    cloudevents.to_structured(arrival, self.gate.node.network) if form != "json" else as_json(arrival)
                )
                data = msgspec.json.encode(shown)
                await response.write(b"id: %d\ndata: %s\n\n" % (delivery.event.id, data))
                self.gate.delivered[self.name] += 1
        except (ConnectionError, StopAsyncIteration):
            pass  # the client has gone, or the node
        finally:
            subscription.close()
        return response

    async def _next(self, subscription: Any) -> Any:
        """The next delivery; None after a while without one, or when the door closes."""
        arriving = asyncio.ensure_future(anext(subscription))
        closing = asyncio.ensure_future(self._closing.wait())
        try:
            await asyncio.wait((arriving, closing), timeout=KEEP_ALIVE_S, return_when=asyncio.FIRST_COMPLETED)
            return arriving.result() if arriving.done() else None
        finally:
            for task in (arriving, closing):
                task.cancel()

    async def _socket(self, request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse(max_msg_size=SOCKET_MESSAGE_BYTES_MAX, heartbeat=KEEP_ALIVE_S)
        await socket.prepare(request)
        await Socket(self.gate, self.access, request[USER], socket, self.entry.queue).run(self._closing)
        return socket


def content_of(language: str, text: str) -> Content:
    """What an event is about, as a client wrote it."""
    if not text:
        raise ConfigurationError("content: is missing; write /events/TOPIC, or a CloudEvent with a subject")
    if language != "intervals":
        return text
    try:
        return int(text) if text.lstrip("+-").isdigit() else float(text)
    except ValueError:
        raise ConfigurationError(f"content: {text[:80]!r} is not a number") from None


def _named(request: web.Request) -> str:
    return request.match_info.get("topic") or request.query.get("content", "")


def _message(request: web.Request, body: bytes) -> tuple[str, dict[str, str], bytes]:
    """Subject, attributes and payload of what was posted."""
    media = request.content_type.lower()
    if media == cloudevents.BATCH:
        raise web.HTTPUnsupportedMediaType(text="batches of CloudEvents are not supported; post them one by one")
    if media == cloudevents.STRUCTURED or "ce-specversion" in request.headers:
        structured = media == cloudevents.STRUCTURED
        parsed = cloudevents.from_structured(body) if structured else cloudevents.from_binary(request.headers, body)
        return parsed.subject, {**_trace(request), **parsed.attributes}, parsed.payload
    attributes = _trace(request)
    if hdrs.CONTENT_TYPE in request.headers and media not in ("application/x-www-form-urlencoded", "text/plain"):
        attributes["content-type"] = request.headers[hdrs.CONTENT_TYPE]
    return "", attributes, body


def _trace(request: web.Request) -> dict[str, str]:
    found = {name: request.headers[name] for name in cloudevents.TRACE if name in request.headers}
    if "traceparent" in found:
        cloudevents.checked_traceparent(found["traceparent"])
    return found


def _terms(request: web.Request) -> Terms:
    try:
        terms = msgspec.convert(dict(request.query), Terms, strict=False)
    except msgspec.ValidationError as error:
        raise ConfigurationError(f"query: {error}") from None
    if not 0 <= terms.timeout_s <= TIMEOUT_MAX_S or not 0 <= terms.custody <= CUSTODY_MAX:
        raise ConfigurationError(f"query: timeout_s is at most {TIMEOUT_MAX_S:g}, custody at most {CUSTODY_MAX}")
    return terms


def _cause(text: str | None) -> int:
    if text is None:
        return NO_EVENT
    if not text.isascii() or not text.isdigit() or len(text) > 19:
        raise ConfigurationError(f"Roamcast-Cause: {text[:40]!r} is not the id of an event")
    return int(text)
