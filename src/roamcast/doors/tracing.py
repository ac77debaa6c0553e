"""OpenTelemetry: a span for every publication and every delivery, in one trace across nodes.

A publication continues the trace of its `traceparent`, or of its cause, or begins one. The event carries the context
of its span (W3C Trace Context), so a delivery is a child of the publication on whatever node it happens. A client gets
the context of the delivery, and an application that publishes with that continues the chain.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Iterator, Sequence

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased
from opentelemetry.trace import Span, SpanKind
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from roamcast.doors.settings import TracingEntry
from roamcast.errors import ConfigurationError
from roamcast.events import NO_EVENT, Content, Event
from roamcast.library.nodes import Node
from roamcast.live.node import Delivery
from roamcast.live.notices import Level, Notice

REMEMBERED_MAX = 4096  # events whose context is known
EXPORT_TIMEOUT_S = 5.0
CARRIED = ("traceparent", "tracestate")

_propagator = TraceContextTextMapPropagator()

logging.getLogger("opentelemetry").addHandler(logging.NullHandler())  # `Reporting` tells the operator what matters
logging.getLogger("opentelemetry").propagate = False


class Reporting(SpanExporter):
    """An exporter that tells the operator once when its collector is away, and once when it is back."""

    def __init__(self, exporter: SpanExporter, name: str, notify: Callable[[Notice], None]) -> None:
        self._exporter = exporter
        self._name = name
        self._notify = notify
        self._loop = asyncio.get_running_loop()
        self._works = True

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """In a thread of the library."""
        result = self._exporter.export(spans)
        works = result == SpanExportResult.SUCCESS
        if works != self._works:
            self._works = works
            text = "takes spans again" if works else "does not take spans; they are lost"
            notice = Notice(Level.INFO if works else Level.WARNING, "door", f"tracing door: {self._name} {text}")
            with contextlib.suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self._notify, notice)
        return result

    def shutdown(self) -> None:
        self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return self._exporter.force_flush(timeout_millis)


class Tracing:
    """The spans of one node."""

    def __init__(self, node: Node, exporter: SpanExporter, share: float = 1.0) -> None:
        resource = Resource.create(
            {
                "service.name": "roamcast",
                "service.namespace": node.network,
                "service.instance.id": str(node.address),
                "roamcast.protocol": node.protocol,
            }
        )
        self.provider = TracerProvider(
            resource=resource, sampler=ParentBased(TraceIdRatioBased(share)), shutdown_on_exit=False
        )
        self.provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer = self.provider.get_tracer("roamcast")
        self._contexts: dict[int, dict[str, str]] = {}  # of events seen lately, oldest first

    @contextlib.contextmanager
    def publishing(self, content: Content, attributes: dict[str, str], cause: int) -> Iterator[Span]:
        """The span of a publication; puts its context among the attributes."""
        parent = attributes if "traceparent" in attributes else self._contexts.get(cause, {})
        context = _propagator.extract(parent) if parent else None
        with self._tracer.start_as_current_span(
            f"publish {_short(content)}", context, SpanKind.PRODUCER, _common(content)
        ) as span:
            if cause != NO_EVENT:
                span.set_attribute("roamcast.cause", str(cause))
            for name in CARRIED:
                attributes.pop(name, None)
            _propagator.inject(attributes)
            yield span

    def published(self, span: Span, event: Event) -> None:
        span.set_attribute("messaging.message.id", str(event.id))
        span.set_attribute("messaging.message.body.size", len(event.payload))
        self._remember(event.id, {}, trace.set_span_in_context(span))

    def delivered(self, delivery: Delivery, attributes: dict[str, str]) -> None:
        """The span of a delivery: from publication to now, if the clocks agree so far."""
        event = delivery.event
        if not delivery.hops or "traceparent" not in attributes or event.id in self._contexts:
            return  # published here, without a trace, or delivered to another subscription already
        now_ns = time.time_ns()
        start_ns = min(now_ns, now_ns - round(1e9 * max(0.0, min(delivery.latency_s, 1e6))))
        described: dict[str, str | int | float] = {
            **_common(event.content),
            "messaging.message.id": str(event.id),
            "roamcast.publisher": str(event.publisher),
            "roamcast.hops": delivery.hops,
        }
        span = self._tracer.start_span(
            f"deliver {_short(event.content)}",
            _propagator.extract(attributes),
            SpanKind.CONSUMER,
            described,
            start_time=start_ns,
        )
        span.end(now_ns)
        self._remember(event.id, attributes, trace.set_span_in_context(span))

    def seen(self, event: Event, attributes: dict[str, str]) -> dict[str, str]:
        """The attributes as a client gets them: with the context of the delivery at this node."""
        return {**attributes, **self._contexts.get(event.id, {})}

    def close(self) -> None:
        self.provider.force_flush(round(1000 * EXPORT_TIMEOUT_S))
        self.provider.shutdown()

    def _remember(self, event_id: int, attributes: dict[str, str], context: Context) -> None:
        carried = {name: attributes[name] for name in CARRIED if name in attributes}
        _propagator.inject(carried, context)
        while len(self._contexts) >= REMEMBERED_MAX:
            del self._contexts[next(iter(self._contexts))]
        self._contexts[event_id] = carried


def exporter_of(entry: TracingEntry) -> SpanExporter:
    if entry.endpoint == "console":
        import sys

        from opentelemetry.sdk.trace.export import ConsoleSpanExporter

        return ConsoleSpanExporter(out=sys.stderr)
    if not entry.endpoint.startswith(("http://", "https://")):
        raise ConfigurationError(f"door.tracing.endpoint: {entry.endpoint!r} is neither an HTTP address nor 'console'")
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    return OTLPSpanExporter(endpoint=entry.endpoint, timeout=EXPORT_TIMEOUT_S)


def _common(content: Content) -> dict[str, str]:
    return {"messaging.system": "roamcast", "messaging.destination.name": _short(content)}


def _short(content: Content) -> str:
    return str(content)[:128]
