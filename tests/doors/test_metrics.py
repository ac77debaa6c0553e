"""Prometheus metrics, and the dashboard that shows them."""

import json
import re

import aiohttp
from prometheus_client.parser import text_string_to_metric_families
from tests.doors.nodes import ANYWHERE, row, run, until

from roamcast.doors.metrics import DASHBOARD
from roamcast.doors.opening import Doors
from roamcast.protocols.waymark.waymark import Waymark

BOTH = {"metrics": {"listen": ANYWHERE}, "http": {"listen": ANYWHERE}}


async def samples(client: aiohttp.ClientSession, doors: Doors) -> dict[str, float]:
    """Values by name and labels, as Prometheus would read them."""
    async with client.get(f"{doors.places['metrics']}/metrics") as answer:
        assert answer.status == 200
        families = list(text_string_to_metric_families(await answer.text()))
    found = {}
    for family in families:
        assert family.documentation.endswith(".")
        for sample in family.samples:
            labels = ",".join(f"{name}={value}" for name, value in sorted(sample.labels.items()))
            found[f"{sample.name}{{{labels}}}" if labels else sample.name] = sample.value
    return found


def test_the_metrics_tell_what_the_node_did() -> None:
    async def work() -> None:
        async with row({}, BOTH) as (here, there), aiohttp.ClientSession() as client:
            stream = there.gate.node.subscribe("fire/**")
            for _ in range(3):
                await here.gate.node.publish("fire/north")
            for _ in range(3):
                await anext(stream)
            await client.post(f"{there.places['http']}/events/a", data=b"x")
            await client.post(f"{there.places['http']}/events/a//b")
            found = await samples(client, there)
            assert found["roamcast_delivered_total"] == 3
            assert found["roamcast_published_total"] == 1
            assert found["roamcast_latency_seconds_count"] == 3
            assert found["roamcast_latency_seconds_bucket{le=+Inf}"] == 3
            assert found["roamcast_frames_sent_total{message=Flood}"] >= 1
            assert found["roamcast_subscriptions"] == 1
            assert found["roamcast_door_published_total{door=http}"] == 1
            assert found["roamcast_door_refused_total{door=http}"] == 1
            assert found["roamcast_node_info{address=2,network=roamcast,protocol=flooding}"] == 1
            assert {"roamcast_queue_frames", "roamcast_custody_bytes", "roamcast_neighbours"} <= found.keys()

    run(work)


def test_frames_are_counted_by_the_reason_of_their_drop() -> None:
    async def work() -> None:
        async with row({}, BOTH) as (here, there), aiohttp.ClientSession() as client:
            endpoint = here.gate.node._running._host._socket
            host, _, port = there.gate.node.endpoint.rpartition(":")
            assert endpoint is not None
            endpoint.sendto(b"nonsense", (host, int(port)))
            await until(lambda: bool(there.gate.node.counters["frames_lost"]))
            found = await samples(client, there)
            assert sum(value for name, value in found.items() if name.startswith("roamcast_frames_dropped_total")) == 1

    run(work)


def test_the_role_in_a_tree_and_custody_are_metrics() -> None:
    async def work() -> None:
        async with row(BOTH, {}, protocol="ps-maodv") as (tree, _), aiohttp.ClientSession() as client:
            tree.gate.node.subscribe("fire/**")
            while not any(name.startswith("roamcast_role{aspect=parent") for name in await samples(client, tree)):
                pass
        async with row(BOTH, protocol="waymark") as (alone,), aiohttp.ClientSession() as client:
            protocol = alone.gate.node._running._host.protocol
            assert isinstance(protocol, Waymark)
            published = await alone.gate.node.publish("fire/north", b"nobody is here")
            protocol.custody.keep(published.event, {7}, hops=0, round_=0, born_s=published.event.time_s)
            found = await samples(client, alone)
            assert found["roamcast_custody_events"] == 1
            assert found["roamcast_custody_bytes"] > 0

    run(work)


def test_every_metric_of_the_dashboard_exists_and_has_the_labels_it_uses() -> None:
    async def work() -> None:
        async with row(BOTH) as (doors,), aiohttp.ClientSession() as client:
            answer = await client.get(f"{doors.places['metrics']}/metrics")
            families = list(text_string_to_metric_families(await answer.text()))
        endings = {"counter": ("_total",), "histogram": ("_bucket", "_sum", "_count"), "info": ("_info",)}
        known = {family.name + ending for family in families for ending in endings.get(family.type, ("",))}
        known |= {family.name for family in families if family.type == "gauge"}
        dashboard = json.loads(DASHBOARD.read_text(encoding="utf-8"))
        targets = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", [])]
        used = {name for expression in targets for name in re.findall(r"\broamcast_\w+", expression)}
        assert used <= known, used - known
        wanted = ("delivered", "latency", "frames_sent", "frames_dropped", "neighbours", "role", "queue", "custody")
        assert [word for word in wanted if not any(word in name for name in used)] == []
        assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])

    run(work)
