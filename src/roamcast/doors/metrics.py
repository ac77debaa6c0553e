"""Prometheus metrics of a node at `GET /metrics`.

Everything but the latencies is read from the node's counters on request, so a door that is not scraped costs
one observation per delivery. `dashboard.json` shows these metrics in Grafana.
"""

from collections.abc import Iterator
from pathlib import Path

from aiohttp import hdrs, web
from prometheus_client import CollectorRegistry, Histogram, Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from roamcast.doors.gate import DOORS, Gate
from roamcast.doors.settings import HttpEntry
from roamcast.doors.web import WebDoor
from roamcast.live.node import Delivery

DASHBOARD = Path(__file__).with_name("dashboard.json")
BUCKETS_S = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 300.0)

_COUNTERS = (
    ("published", "roamcast_published", "Events that this node has published."),
    ("delivered", "roamcast_delivered", "Events that were delivered to this node's application."),
    ("bytes_sent", "roamcast_sent_bytes", "Bytes in frames that this node has sent."),
    ("frames_received", "roamcast_frames_received", "Frames that were accepted."),
    ("sends_failed", "roamcast_sends_failed", "Unicasts that were never acknowledged."),
    ("system_refused", "roamcast_system_refused", "Datagrams that the operating system did not take."),
    ("restarts", "roamcast_protocol_restarts", "How often the protocol had to start over."),
)
_GAUGES = (
    ("neighbours", "roamcast_neighbours", "Nodes that were heard lately."),
    ("subscriptions", "roamcast_subscriptions", "Interests of the application."),
    ("queue", "roamcast_queue_frames", "Frames that wait to be sent or acknowledged."),
    ("uptime_s", "roamcast_uptime_seconds", "How long the node runs."),
    ("frame_bytes_max", "roamcast_frame_bytes_max", "The largest frame."),
)
_BY_LABEL = (
    ("frames_sent", "roamcast_frames_sent", "Frames that were sent, by message.", "message"),
    ("frames_lost", "roamcast_frames_dropped", "Datagrams that were dropped, by reason.", "reason"),
    ("dropped", "roamcast_events_dropped", "What the protocol gave up, by reason.", "reason"),
)


class NodeCollector(Collector):
    """The node's counters as metrics."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate

    def collect(self) -> Iterator[Metric]:
        node = self._gate.node
        counters = node.counters
        for name, metric, text in _COUNTERS:
            yield CounterMetricFamily(metric, text, value=counters[name])
        for name, metric, text in _GAUGES:
            yield GaugeMetricFamily(metric, text, value=counters[name])
        for name, metric, text, label in _BY_LABEL:
            family = CounterMetricFamily(metric, text, labels=[label])
            for value, count in counters[name].items():
                family.add_metric([value], count)
            yield family
        custody = counters.get("custody") or {}
        for name, metric, text in (
            ("events", "roamcast_custody_events", "Events that this node keeps for others."),
            ("bytes", "roamcast_custody_bytes", "Bytes of events that this node keeps for others."),
        ):
            yield GaugeMetricFamily(metric, text, value=custody.get(name, 0))
        yield self._roles(counters["structure"])
        node_info = {"address": str(node.address), "network": node.network, "protocol": node.protocol}
        yield InfoMetricFamily("roamcast_node", "Which node this is.", value=node_info)
        yield from self._doors()

    def _roles(self, structure: dict[str, str]) -> Metric:
        """What the node is in the structure of its protocol: the value of each role is 1."""
        family = GaugeMetricFamily(
            "roamcast_role", "The node's place in the protocol's structure.", labels=["aspect", "place"]
        )
        for aspect, place in structure.items():
            family.add_metric([aspect, place], 1)
        return family

    def _doors(self) -> Iterator[Metric]:
        gate = self._gate
        for values, metric, text in (
            (gate.published, "roamcast_door_published", "Events that clients have published."),
            (gate.delivered, "roamcast_door_delivered", "Events that were handed to clients."),
            (gate.lost, "roamcast_door_lost", "Events that slow clients did not take."),
            (gate.refused, "roamcast_door_refused", "Logins, requests and messages that were refused."),
        ):
            family = CounterMetricFamily(metric, text, labels=["door"])
            for door in DOORS:
                family.add_metric([door], values[door])
            yield family
        clients = GaugeMetricFamily("roamcast_door_clients", "Clients that are connected.", labels=["door"])
        for door in DOORS:
            clients.add_metric([door], gate.clients[door])
        yield clients


class MetricsDoor(WebDoor):
    name = "metrics"

    def __init__(self, gate: Gate, entry: HttpEntry) -> None:
        super().__init__(gate, entry)
        self.registry = CollectorRegistry()
        self.registry.register(NodeCollector(gate))
        self._latency = Histogram(
            "roamcast_latency_seconds",
            "From publication to delivery, by the clocks of publisher and subscriber.",
            buckets=BUCKETS_S,
            registry=self.registry,
        )
        gate.node.observe(self._delivered)

    def routes(self) -> list[web.AbstractRouteDef]:
        return [web.get("/metrics", self._metrics)]

    async def _metrics(self, request: web.Request) -> web.Response:
        encode, content_type = choose_encoder(request.headers.get(hdrs.ACCEPT, ""))
        return web.Response(body=encode(self.registry), headers={hdrs.CONTENT_TYPE: content_type})

    def _delivered(self, delivery: Delivery) -> None:
        if delivery.hops:  # not from this very node
            self._latency.observe(max(0.0, delivery.latency_s))
