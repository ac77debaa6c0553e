"""A node as its application sees it, and the trace it leaves."""

import asyncio
from pathlib import Path

import pytest

from roamcast.errors import ConfigurationError
from roamcast.interests import Intervals, Topics
from roamcast.live.endpoints import HeardEndpoints, parse_endpoint
from roamcast.live.node import Delivery, LiveNode, NodeSettings, parse_content
from roamcast.testing.endpoints import free_endpoints
from roamcast.trace.files import read_trace
from roamcast.trace.summary import summarise


async def exchange(folder: Path) -> tuple[Delivery, dict[int, dict[str, object]]]:
    """Node 1 publishes one event that node 2 wants and one that it does not want; both keep traces."""
    here, there = free_endpoints(2)
    deliveries: asyncio.Queue[Delivery] = asyncio.Queue()
    settings = [
        NodeSettings(address=1, listen=here, peers=(there,), trace=folder / "1"),
        NodeSettings(address=2, listen=there, peers=(here,), trace=folder / "2", parameters={"jitter_s": "0"}),
    ]
    publisher, subscriber = [await LiveNode.open(chosen, deliveries.put_nowait) for chosen in settings]
    subscriber.subscribe(Intervals.of((0, 10)))
    publisher.publish(50, b"not wanted")
    publisher.publish(5, b"wanted")
    delivery = await asyncio.wait_for(deliveries.get(), 5)
    subscriber.unsubscribe(Intervals.of((0, 10)))
    counters = {1: publisher.counters(), 2: subscriber.counters()}
    publisher.close()
    subscriber.close()
    subscriber.close()
    return delivery, counters


def test_the_same_flooding_that_is_simulated_delivers_over_udp_and_leaves_the_same_trace(tmp_path: Path) -> None:
    delivery, counters = asyncio.run(exchange(tmp_path))
    assert (delivery.event.publisher, delivery.event.content, delivery.event.payload) == (1, 5, b"wanted")
    assert delivery.hops == 1
    assert counters[1]["frames_sent"] == {"Flood": 2}
    assert (counters[2]["delivered"], counters[2]["frames_received"]) == (1, 2)
    sent, received = (read_trace(tmp_path / name).to_pylist() for name in ("1", "2"))
    published = [row for row in sent if row["kind"] == "published"]
    assert [(row["node"], row["value"], row["bytes"]) for row in published] == [(1, 50.0, 10), (1, 5.0, 6)]
    (delivered,) = (row for row in received if row["kind"] == "delivered")
    assert (delivered["node"], delivered["peer"], delivered["event_id"]) == (2, 1, delivery.event.id)
    assert {row["run_id"] for row in sent + received} == {"roamcast"}
    kinds = [row["kind"] for row in received]
    assert {"subscribed", "unsubscribed", "delivered", "load", "end"} <= set(kinds)


def test_live_traces_can_be_summarised_like_simulated_ones(tmp_path: Path) -> None:
    asyncio.run(exchange(tmp_path))
    summary = summarise(read_trace(tmp_path / "1"))
    assert summary["publications"] == 2
    assert summary["frames"] == {"Flood": 2}


async def journey(folder: Path) -> None:
    settings = NodeSettings(address=1, peers=(("127.0.0.1", 9),), position=(0.0, 0.0), trace=folder / "1")
    node = await LiveNode.open(settings, lambda delivery: None)
    node.move((30.0, 40.0))
    with pytest.raises(ConfigurationError, match="must be finite"):
        node.move((float("nan"), 0.0))
    node.close()


def test_a_node_that_moves_leaves_its_path_in_the_trace(tmp_path: Path) -> None:
    asyncio.run(journey(tmp_path))
    rows = [row for row in read_trace(tmp_path / "1").to_pylist() if row["kind"] == "position"]
    assert [(row["node"], row["x_m"], row["y_m"]) for row in rows] == [(1, 0.0, 0.0), (1, 30.0, 40.0)]
    assert rows[0]["t"] <= rows[1]["t"]


async def refused_settings(settings: NodeSettings) -> None:
    await LiveNode.open(settings, lambda delivery: None)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (NodeSettings(address=-1, peers=(("127.0.0.1", 9),)), "address = -1: must be between 0 and 2147483647"),
        (NodeSettings(address=1), "key: none given, so anyone in range could read and forge"),
        (NodeSettings(address=1, protocol="smoke", peers=(("127.0.0.1", 9),)), "protocol: 'smoke' is unknown"),
        (NodeSettings(address=1, listen=("127.0.0.1", 5), group=("239.1.1.1", 6)), "port 5 must be the port of"),
        (
            NodeSettings(address=1, listen=("203.0.113.7", 0), peers=(("127.0.0.1", 9),), plain=True),
            "cannot open 203.0.113.7:0",
        ),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings: NodeSettings, expected: str) -> None:
    with pytest.raises(ConfigurationError, match=expected):
        asyncio.run(refused_settings(settings))


def test_an_application_is_told_what_it_cannot_ask_for() -> None:
    async def ask() -> None:
        node = await LiveNode.open(NodeSettings(address=1, peers=(("127.0.0.1", 9),)), lambda delivery: None)
        try:
            with pytest.raises(ConfigurationError, match=r"'1\.\.2' is not subscribed"):
                node.unsubscribe(Intervals.of((1, 2)))
            with pytest.raises(ConfigurationError, match="matches nothing"):
                node.subscribe(Intervals())
            with pytest.raises(ConfigurationError, match="matches nothing"):
                node.advertise(Topics())
            with pytest.raises(ConfigurationError, match="allowed: at most 261120"):
                node.publish(1, bytes(261_120))
            assert node.counters()["published"] == 0
            node.publish(1, bytes(1270))
            assert node.counters()["frames_lost"] == {}
        finally:
            node.close()

    asyncio.run(ask())


@pytest.mark.parametrize(
    ("language", "text", "content"),
    [("intervals", "12", 12), ("intervals", "-1.5", -1.5), ("topics", "fire/north", "fire/north")],
)
def test_content_is_what_the_language_speaks_of(language: str, text: str, content: object) -> None:
    assert parse_content(language, text) == content


@pytest.mark.parametrize(
    ("language", "text"),
    [("intervals", "x"), ("intervals", "nan"), ("intervals", str(2**63)), ("topics", "fire/*"), ("topics", "a//b")],
)
def test_other_content_is_refused(language: str, text: str) -> None:
    with pytest.raises(ConfigurationError):
        parse_content(language, text)


@pytest.mark.parametrize("text", ["", "host", ":1", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:70000", "127.0.0.1:-1"])
def test_endpoints_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(ConfigurationError, match=r"--peer: .* is not an endpoint"):
        parse_endpoint("--peer", text)


def test_a_name_becomes_an_address() -> None:
    assert parse_endpoint("--peer", "localhost:7400") == ("127.0.0.1", 7400)


def test_an_endpoint_stands_for_a_node_only_while_it_is_its_alone() -> None:
    neighbours = HeardEndpoints()
    neighbours.learn(1, ("10.0.0.1", 7400))
    assert neighbours.endpoint(1) == ("10.0.0.1", 7400)
    assert neighbours.endpoint(2) is None
    neighbours.learn(2, ("10.0.0.1", 7400))
    assert neighbours.endpoint(1) is None
    neighbours.learn(2, ("10.0.0.2", 7400))
    assert (neighbours.endpoint(1), neighbours.endpoint(2)) == (("10.0.0.1", 7400), ("10.0.0.2", 7400))


def test_forged_senders_cannot_fill_the_memory() -> None:
    neighbours = HeardEndpoints()
    for node in range(10_000):
        neighbours.learn(node, ("10.0.0.1", node))
    assert len(neighbours) == 4096
    assert neighbours.endpoint(9_999) == ("10.0.0.1", 9_999)
    assert neighbours.endpoint(0) is None
