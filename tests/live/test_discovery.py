"""Nodes that find each other on interfaces; here on loopback, in `test_live_namespaces.py` between machines."""

import asyncio
import itertools
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from roamcast.errors import ConfigurationError
from roamcast.events import Event
from roamcast.interests import Intervals
from roamcast.live.codec import Codec, Datagram, DatagramKind, DropReason
from roamcast.live.diagnosis import AGAIN_S, SILENCE_S, Diagnosis
from roamcast.live.discovery import LONGEST_S, MENTIONS_MAX
from roamcast.live.endpoints import Endpoint, HeardEndpoints, open_socket, parse_endpoint
from roamcast.live.host import BEACONS_MAX
from roamcast.live.interfaces import present
from roamcast.live.keys import new_ring, write_ring
from roamcast.live.node import Delivery, LiveNode, NodeSettings
from roamcast.live.notices import Notice
from roamcast.live.paths import Paths
from roamcast.live.ports import multicast_groups
from roamcast.protocols.catalogue import protocol_class
from roamcast.protocols.flooding.messages import Flood

IPV6: Endpoint = ("ff12::1%eth0", 7400)
IPV4: Endpoint = ("239.255.0.1%eth0", 7400)
BROADCAST: Endpoint = ("10.0.0.255%eth0", 7400)
RADIO: Endpoint = ("ff12::1%wlan0", 7400)
GROUPS = [[IPV6, IPV4, BROADCAST], [RADIO]]


def test_a_broadcast_takes_the_fewest_groups_that_reach_all_neighbours() -> None:
    paths = Paths()
    assert paths.choose(GROUPS) == (IPV6, RADIO), "the preferred ones as long as nobody was heard"
    for group in (IPV6, IPV4, BROADCAST):
        assert paths.heard(1, group, 0.0)
    paths.heard(2, IPV4, 0.0)
    assert paths.choose(GROUPS) == (IPV4, RADIO), "one group reaches both"
    paths.heard(3, IPV6, 0.0)
    assert paths.choose(GROUPS) == (IPV6, IPV4, RADIO)
    paths.heard(4, BROADCAST, 0.0)
    assert set(paths.choose(GROUPS)) == {IPV6, IPV4, BROADCAST, RADIO}


def test_what_is_not_heard_any_more_is_forgotten() -> None:
    paths = Paths()
    paths.heard(1, IPV6, 0.0)
    paths.heard(1, IPV4, 5.0)
    paths.heard(2, None, 3.0)
    assert paths.expire(4.0, 4.0) == [2]
    assert paths.choose(GROUPS)[0] == IPV4
    assert not paths.heard(1, IPV4, 6.0)
    assert paths.heard(1, IPV6, 6.0), "it is news again"
    paths.forget_groups([IPV6, IPV4])
    assert paths.choose([[BROADCAST]]) == (BROADCAST,)
    assert paths.expire(7.0, 0.0) == [1]
    assert len(paths) == 0


def test_forged_senders_cannot_fill_the_memory() -> None:
    paths = Paths()
    for node in range(5000):
        paths.heard(node, IPV4, float(node))
    assert len(paths) == 4096
    assert 4999 in paths
    assert 0 not in paths


def test_networks_meet_in_groups_of_their_own() -> None:
    assert multicast_groups("rescue") == multicast_groups("rescue")
    assert multicast_groups("rescue") != multicast_groups("roamcast")
    ipv4, ipv6 = multicast_groups("rescue")
    assert ipv4.startswith("239.255.")
    assert ipv6.startswith("ff12::")


def said(diagnosis: Diagnosis, now_s: float, neighbours: int = 0, dropped: dict[DropReason, int] | None = None) -> str:
    notice = diagnosis.examine(now_s, neighbours, dropped or {})
    return "" if notice is None else notice.kind


def test_silence_is_mentioned_once_and_again_only_after_a_neighbour_and_a_pause() -> None:
    diagnosis = Diagnosis("check the cable")
    assert said(diagnosis, 0.0) == ""
    assert said(diagnosis, SILENCE_S - 1) == ""
    notice = diagnosis.examine(SILENCE_S, 0, {})
    assert notice is not None
    assert notice.text.endswith("check the cable")
    assert said(diagnosis, AGAIN_S * 5) == "", "it is known"
    assert said(diagnosis, 100.0, neighbours=1) == ""
    assert said(diagnosis, 110.0) == ""
    assert said(diagnosis, 110.0 + SILENCE_S) == "", "too soon after the last time"
    assert said(diagnosis, 700.0, neighbours=1) == ""
    assert said(diagnosis, 710.0) == ""
    assert said(diagnosis, 710.0 + SILENCE_S) == "silence"


@pytest.mark.parametrize(
    ("drop", "advice"),
    [
        (DropReason.FORGED, "roamcast key show"),
        (DropReason.UNKNOWN_KEY, "copy the current one"),
        (DropReason.UNKNOWN_SENDER, "certify all by the same"),
        (DropReason.EXPIRED, "set the clocks"),
        (DropReason.REVOKED, "they were revoked"),
        (DropReason.UNSEALED, "start them with --key"),
        (DropReason.FOREIGN_MAGIC, "give this one --key"),
    ],
)
def test_a_node_among_foreigners_says_what_to_check(drop: DropReason, advice: str) -> None:
    diagnosis = Diagnosis("")
    before = {drop: 3, DropReason.DUPLICATE: 50}
    assert diagnosis.examine(0.0, 0, before) is None
    after = {drop: 7, DropReason.DUPLICATE: 90}
    notice = diagnosis.examine(SILENCE_S, 0, after)
    assert notice is not None
    assert advice in notice.text
    assert notice.fields == {"dropped": {drop.value: 4}}
    assert said(diagnosis, SILENCE_S + 1, 0, after) == ""


@pytest.mark.parametrize("neighbours", [0, 2])
@pytest.mark.parametrize(
    ("drop", "advice"),
    [
        (DropReason.FOREIGN_VERSION, "another version of Roamcast"),
        (DropReason.FOREIGN_NETWORK, "compare --network and --protocol"),
    ],
)
def test_another_network_or_version_is_mentioned_at_once(drop: DropReason, advice: str, neighbours: int) -> None:
    diagnosis = Diagnosis("")
    assert said(diagnosis, 0.0, neighbours) == ""
    notice = diagnosis.examine(0.1, neighbours, {drop: 1})
    assert notice is not None
    assert advice in notice.text
    assert notice.fields == {"dropped": {drop.value: 1}}
    assert said(diagnosis, SILENCE_S + 1, neighbours, {drop: 9}) == "", "it is known, and this is not silence"
    assert said(diagnosis, 0.1 + AGAIN_S, neighbours, {drop: 90}) == "foreigners"


def test_foreigners_after_silence_are_mentioned_too() -> None:
    diagnosis = Diagnosis("")
    assert said(diagnosis, 0.0) == ""
    assert said(diagnosis, SILENCE_S) == "silence"
    assert said(diagnosis, SILENCE_S + 2, 0, {DropReason.FORGED: 1}) == "foreigners"


def test_loopback_is_used_only_if_it_is_asked_for() -> None:
    assert not any(interface.is_loopback for interface in present().values())
    (loopback,) = present(("lo", "nonsense")).values()
    assert (loopback.ipv4, loopback.broadcast, loopback.is_loopback) == ("127.0.0.1", "127.255.255.255", True)


def test_an_interface_that_is_gone_takes_its_endpoints_with_it() -> None:
    neighbours = HeardEndpoints()
    neighbours.learn(1, ("10.0.0.1%eth0", 7400))
    neighbours.learn(2, ("10.0.0.2%wlan0", 7400))
    neighbours.forget_interface("eth0")
    assert (neighbours.endpoint(1), neighbours.endpoint(2)) == (None, ("10.0.0.2%wlan0", 7400))


@pytest.mark.parametrize(
    ("text", "endpoint"),
    [("[::1]:7400", ("::1", 7400)), ("[fe80::1%eth0]:7400", ("fe80::1%eth0", 7400))],
)
def test_ipv6_endpoints(text: str, endpoint: Endpoint) -> None:
    assert parse_endpoint("--peer", text) == endpoint


@pytest.mark.parametrize("text", ["[2001:db8::1%eth0]:7400", "[fe80::1%]:7400", "[x%eth0]:1"])
def test_an_interface_belongs_to_link_local_addresses_only(text: str) -> None:
    with pytest.raises(ConfigurationError, match="is not a link-local endpoint"):
        parse_endpoint("--peer", text)


needs_loopback = pytest.mark.skipif("lo" not in present(("lo",)), reason="no interface lo")
ports = itertools.count(30_000 + os.getpid() % 10_000)


class OnLoopback:
    """Nodes of one machine that share the port of their network."""

    def __init__(self) -> None:
        self.port = next(ports)
        self.nodes: list[LiveNode] = []
        self.notices: list[list[Notice]] = []
        self.got: list[list[int | float | str]] = []

    async def add(self, address: int, key: Path | None = None) -> LiveNode:
        got: list[int | float | str] = []
        notices: list[Notice] = []

        def receive(delivery: Delivery) -> None:
            got.append(delivery.event.content)

        settings = NodeSettings(address=address, interfaces=("lo",), port=self.port, key=key)
        node = await LiveNode.open(settings, receive, on_notice=notices.append)
        self.nodes.append(node)
        self.got.append(got)
        self.notices.append(notices)
        return node

    async def until(self, is_so: Callable[[], bool]) -> None:
        async with asyncio.timeout(10):
            while not is_so():
                await asyncio.sleep(0.01)

    def neighbours(self) -> list[int]:
        return [node.counters()["neighbours"] for node in self.nodes]

    def close(self) -> None:
        for node in self.nodes:
            node.close()


@needs_loopback
@pytest.mark.parametrize("is_sealed", [False, True])
def test_nodes_on_one_machine_find_each_other_without_a_list(tmp_path: Path, is_sealed: bool) -> None:
    async def scene(loopback: OnLoopback) -> None:
        key = None
        if is_sealed:
            key = tmp_path / "net.key"
            write_ring(key, new_ring("roamcast", 0.0))
        for address in (1, 2, 3):
            (await loopback.add(address, key)).subscribe(Intervals.of((0, 10)))
        await loopback.until(lambda: loopback.neighbours() == [2, 2, 2])
        loopback.nodes[0].publish(5)
        await loopback.until(lambda: loopback.got[1:] == [[5], [5]])
        assert loopback.nodes[0].counters()["frames_lost"].get("own address") is None
        assert [notice.kind for notice in loopback.notices[0]] == ["interface", "neighbour", "neighbour"]

    loopback = OnLoopback()

    async def run() -> None:
        try:
            await scene(loopback)
        finally:
            loopback.close()

    asyncio.run(run())


@needs_loopback
def test_forged_senders_cannot_fill_the_log() -> None:
    async def run() -> None:
        loopback = OnLoopback()
        try:
            node = await loopback.add(1)
            codec = Codec("roamcast", "flooding", protocol_class("flooding").messages)
            with open_socket(("127.0.0.1", 0), None) as liar:
                for first in range(1000, 2000, 50):
                    for sender in range(first, first + 50):
                        beacon = codec.encode(Datagram(DatagramKind.BEACON, sender))
                        liar.sendto(beacon, ("127.0.0.1", loopback.port))
                    await loopback.until(lambda first=first: node.counters()["neighbours"] == first - 950)  # type: ignore[misc]
            assert sum(notice.kind == "neighbour" for notice in loopback.notices[0]) < MENTIONS_MAX + 20
        finally:
            loopback.close()

    asyncio.run(run())


@needs_loopback
def test_two_nodes_with_one_address_are_told() -> None:
    async def run() -> None:
        loopback = OnLoopback()
        try:
            await loopback.add(1)
            await loopback.add(1)
            await loopback.until(
                lambda: all(any(n.kind == "address-in-use" for n in each) for each in loopback.notices)
            )
            assert loopback.neighbours() == [0, 0]
        finally:
            loopback.close()

    asyncio.run(run())


@needs_loopback
def test_a_broadcast_is_a_sign_of_life_and_saves_a_beacon() -> None:
    """A node that broadcasts all the time sends beacons over all groups only, now and then."""

    async def run() -> None:
        loopback = OnLoopback()
        try:
            node = await loopback.add(1)
            discovery, link = node.discovery, node._host.link
            sent: list[bool] = []
            discovery._send_beacons = lambda *, everywhere: sent.append(everywhere)  # type: ignore[method-assign]
            discovery._burst.clear()
            discovery._full_s = time.monotonic() + 60
            discovery._tick()
            assert sent == [False], "it was silent"
            link.broadcast(Flood(0, Event(1, 0.0, 5, b"")))
            discovery._tick()
            assert sent == [False]
            assert discovery._beacon is not None
            assert discovery._beacon.when() - asyncio.get_running_loop().time() < LONGEST_S  # type: ignore[attr-defined]
            discovery._full_s = 0.0
            discovery._tick()
            assert sent == [False, True]
        finally:
            loopback.close()

    asyncio.run(run())


@needs_loopback
def test_beacons_wait_for_each_other_unless_an_acknowledgement_is_awaited() -> None:
    async def run() -> None:
        loopback = OnLoopback()
        try:
            host = (await loopback.add(1))._host
            codec = Codec("roamcast", "flooding", protocol_class("flooding").messages)
            taken: list[bytes] = []
            host._take = lambda data, source, group: taken.append(data)  # type: ignore[method-assign]
            beacons = [codec.encode(Datagram(DatagramKind.BEACON, node)) for node in range(2, 2 + BEACONS_MAX)]
            for beacon in beacons:
                host.receive(beacon, ("127.0.0.1", 9))
            assert not taken
            acknowledgement = codec.encode(Datagram(DatagramKind.ACKNOWLEDGEMENT, 2, 1, 7))
            host.receive(acknowledgement, ("127.0.0.1", 9))
            assert taken == [acknowledgement], "no more of them wait than allowed"
            host._take_beacons()
            assert taken == [acknowledgement, *beacons]
            host.link.send(2, Flood(0, Event(1, 0.0, 5, b"")))
            host.receive(acknowledgement, ("127.0.0.1", 9))
            assert taken[-1] == acknowledgement
        finally:
            loopback.close()

    asyncio.run(run())
