"""Pub/Sub ODMRP over UDP: eight nodes in a row on the loopback interface, some of them brokers, the others clients."""

import asyncio
from pathlib import Path

import pytest

from roamcast.interests import parse_interest
from roamcast.interests.content import write
from roamcast.live.node import Delivery, LiveNode, NodeSettings, parse_content
from roamcast.testing.endpoints import free_endpoints
from roamcast.trace.files import read_trace
from roamcast.trace.summary import summarise

NODES = 8
BROKERS = {1, 3, 5, 7}
PARAMETERS = {
    "route_wait_s": 0.3,
    "refresh_interval_s": 1.0,
    "jitter_s": 0.002,
    "table_pause_s": 0.01,
    "confirm_timeout_s": 0.06,
}
GOLF: dict[str, int | str] = {
    "@id": "001",
    "player": "woods",
    "hole": 15,
    "holescore": 4,
    "totalscore": 52,
    "currentrank": 2,
}


async def tournament(folder: Path, advertisement: bool) -> dict[int, list[Delivery]]:
    """Nodes 0 (a client) and 7 (a broker) publish; 6 (a client), 4 (a client) and 3 (a broker) subscribe."""
    endpoints = free_endpoints(NODES)
    got: dict[int, list[Delivery]] = {address: [] for address in range(NODES)}
    nodes: list[LiveNode] = []
    for address in range(NODES):
        peers = tuple(endpoints[beside] for beside in (address - 1, address + 1) if 0 <= beside < NODES)
        settings = NodeSettings(
            address=address,
            protocol="odmrp",
            language="content",
            parameters={**PARAMETERS, "broker_share": float(address in BROKERS), "advertisement": advertisement},
            listen=endpoints[address],
            peers=peers,
            trace=folder / str(address),
        )
        nodes.append(await LiveNode.open(settings, got[address].append))
    nodes[6].subscribe(parse_interest("content", "/PGMFORUM[player = 'woods' and hole > 9]"))
    nodes[4].subscribe(parse_interest("content", "/PGMFORUM[hole <= 9]"))
    nodes[3].subscribe(parse_interest("content", "/PGMFORUM"))
    for publisher in (0, 7):
        nodes[publisher].advertise(parse_interest("content", "/PGMFORUM"))
    await asyncio.sleep(4.0)  # clients find their brokers, and brokers that ask hear of them at the next refresh
    nodes[0].publish(parse_content("content", write("PGMFORUM", GOLF)), b"birdie")
    nodes[7].publish(parse_content("content", write("PGMFORUM", GOLF | {"player": "els", "hole": 3})))
    for _ in range(60):
        await asyncio.sleep(0.1)
        if sum(map(len, got.values())) >= 4:
            break
    await asyncio.sleep(0.3)  # whatever comes too much would come now
    for node in nodes:
        node.close()
    return got


@pytest.mark.parametrize("advertisement", [False, True])
def test_eight_nodes_on_loopback(tmp_path: Path, advertisement: bool) -> None:
    got = asyncio.run(tournament(tmp_path, advertisement))
    heard = {address: sorted(each.event.publisher for each in deliveries) for address, deliveries in got.items()}
    assert heard == {0: [], 1: [], 2: [], 3: [0, 7], 4: [7], 5: [], 6: [0], 7: []}
    (delivery,) = got[6]
    assert delivery.event.payload == b"birdie"
    assert delivery.hops >= 6
    trace = read_trace(tmp_path / "3")
    assert summarise(trace)["frames"]["JoinTable"] >= 1
    assert "broker" in [row["category"] for row in trace.to_pylist() if row["kind"] == "structure"]
