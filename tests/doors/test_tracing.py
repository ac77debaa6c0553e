"""OpenTelemetry: a causal chain across nodes is one trace."""

import asyncio
import gzip

import aiohttp
from aiohttp import web
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from tests.doors.nodes import ANYWHERE, free_port, row, run
from tests.doors.test_cloudevents import TRACEPARENT
from tests.doors.test_http import subscribed

from roamcast.doors.access import Access
from roamcast.doors.gate import Gate
from roamcast.doors.opening import Doors, open_doors
from roamcast.doors.settings import DoorEntry, door_settings
from roamcast.doors.tracing import Tracing
from roamcast.live.notices import Notice


def traced(doors: Doors) -> InMemorySpanExporter:
    """Has the node record its spans in memory."""
    exporter = InMemorySpanExporter()
    tracing = Tracing(doors.gate.node, exporter)
    tracing.provider.add_span_processor(SimpleSpanProcessor(exporter))
    doors.gate.tracing = tracing
    doors.gate.node.observe(doors.gate._trace)
    return exporter


def span_ids(span: ReadableSpan) -> tuple[int, int, int | None]:
    assert span.context is not None
    return span.context.trace_id, span.context.span_id, None if span.parent is None else span.parent.span_id


def test_a_chain_over_three_nodes_is_one_trace() -> None:
    async def work() -> None:
        table = {"http": {"listen": ANYWHERE}}
        async with row(table, table, table) as nodes, aiohttp.ClientSession() as client:
            exporters = [traced(doors) for doors in nodes]
            places = [doors.places["http"] for doors in nodes]
            second = await subscribed(client, nodes[1], "subscribe=fire/**")
            third = await subscribed(client, nodes[2], "subscribe=alarm/**")
            first = await subscribed(client, nodes[0], "subscribe=evacuate/**")
            # A sensor's event makes node 2 raise an alarm, and the alarm makes node 3 evacuate.
            await client.post(f"{places[0]}/events/fire/north", headers={"traceparent": TRACEPARENT})
            fire = await second.next()
            headers = {"traceparent": fire["attributes"]["traceparent"]}
            await client.post(f"{places[1]}/events/alarm/north", headers=headers)
            alarm = await third.next()
            await client.post(f"{places[2]}/events/evacuate/north", headers={"Roamcast-Cause": str(alarm["event_id"])})
            evacuate = await first.next()
            assert evacuate["cause"] == alarm["event_id"]
        spans: dict[str, ReadableSpan] = {}
        for number, exporter in enumerate(exporters, 1):
            spans |= {f"{span.name} at {number}": span for span in exporter.get_finished_spans()}
        chain = [
            *("publish fire/north at 1", "deliver fire/north at 2"),
            *("publish alarm/north at 2", "deliver alarm/north at 3"),
            *("publish evacuate/north at 3", "deliver evacuate/north at 1"),
        ]
        assert sorted(spans) == sorted(chain)
        parent = int(TRACEPARENT.split("-")[2], 16)
        for name in chain:
            trace_id, span_id, above = span_ids(spans[name])
            assert (name, trace_id) == (name, int(TRACEPARENT.split("-")[1], 16))
            assert (name, above) == (name, parent)
            parent = span_id
        assert spans["deliver evacuate/north at 1"].attributes["roamcast.hops"] == 2  # type: ignore[index]
        assert spans["publish fire/north at 1"].resource.attributes["service.instance.id"] == "1"

    run(work)


def test_spans_reach_a_collector_and_the_operator_learns_if_they_do_not() -> None:
    async def work() -> None:
        bodies: list[bytes] = []

        async def take(request: web.Request) -> web.Response:
            bodies.append(await request.read())
            return web.Response()

        collector = web.Application()
        collector.add_routes([web.post("/v1/traces", take)])
        runner = web.AppRunner(collector)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        there = f"http://127.0.0.1:{runner.addresses[0][1]}/v1/traces"
        nobody = f"http://127.0.0.1:{free_port()}/v1/traces"
        access = Access("http", DoorEntry(), "topics")
        notices: list[Notice] = []
        async with row({}) as (doors,):
            for place in (there, nobody):
                settings = door_settings({"tracing": place})
                async with open_doors(doors.gate.node, settings, notices.append) as opened:
                    await opened.gate.publish("http", "fire/north", b"smoke", user="anonymous", access=access)
                    tracing = opened.gate.tracing
                    assert tracing is not None
                    await asyncio.to_thread(tracing.provider.force_flush)
        await runner.cleanup()
        requests = [ExportTraceServiceRequest.FromString(gunzip(body)) for body in bodies]
        names = [
            span.name for each in requests for spans in each.resource_spans for scope in spans.scope_spans
            for span in scope.spans
        ]  # fmt: skip
        assert names == ["publish fire/north"]
        assert [notice.text for notice in notices] == [f"tracing door: {nobody} does not take spans; they are lost"]

    run(work)


def gunzip(body: bytes) -> bytes:
    return gzip.decompress(body) if body.startswith(b"\x1f\x8b") else body


def test_without_a_parent_a_trace_begins_and_the_payload_stays_what_it_was() -> None:
    async def work() -> None:
        async with row({}, {}) as (here, there):
            exporter = traced(here)
            fires = there.gate.node.subscribe("fire/**")
            access = Access("http", DoorEntry(), "topics")
            await here.gate.publish("http", "fire/north", b"smoke", user="anonymous", access=access)
            arrival = Gate(there.gate.node).arrival(await anext(fires))
            assert arrival.payload == b"smoke"
            (span,) = exporter.get_finished_spans()
            trace_id, span_id, above = span_ids(span)
            assert above is None
            assert list(arrival.attributes) == ["traceparent"]
            assert arrival.attributes["traceparent"].startswith(f"00-{trace_id:032x}-{span_id:016x}-")

    run(work)
