"""Live nodes with identities: who says what is proved from end to end, whoever carries it."""

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from time import time
from typing import Any

import msgspec
import pytest

from roamcast.delivery.messages import Carried, Carry, RecordUpdate, Want
from roamcast.errors import ConfigurationError
from roamcast.events import Event, event_id
from roamcast.interests import parse_interest
from roamcast.live.authority import new_authority
from roamcast.live.codec import HEADER_BYTES, Codec, Datagram, DatagramKind
from roamcast.live.credentials import Credentials
from roamcast.live.durability import message_union
from roamcast.live.herald import CredentialAnnouncement
from roamcast.live.identity import (
    SIGNATURE_BYTES,
    Certificate,
    Identity,
    Statement,
    new_identity,
    read_identity,
    verify,
)
from roamcast.live.keys import new_ring, read_ring, write_ring
from roamcast.live.link import WINDOW_S
from roamcast.live.node import Delivery, LiveNode, NodeSettings
from roamcast.live.quotas import PEERS_MAX, Quota, Quotas
from roamcast.live.sealing import SEAL_BYTES, Sealer
from roamcast.live.secret_files import write_secret
from roamcast.live.signing import Signer
from roamcast.protocols.api import Site
from roamcast.protocols.catalogue import protocol_class
from roamcast.protocols.contents import Contents
from roamcast.protocols.flooding.messages import Flood
from roamcast.protocols.overlays.messages import Publish
from roamcast.protocols.routing.messages import Routed
from roamcast.testing.endpoints import free_endpoints

TIMEOUT_S = 20.0
BEACON_BYTES = SEAL_BYTES + HEADER_BYTES + SIGNATURE_BYTES


class Members:
    """Nodes in a line on the loopback interface, certified by one authority."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.authority = new_authority("roamcast")
        self.ring = new_ring("roamcast", 0.0, self.authority.public)
        self.nodes: dict[str, LiveNode] = {}
        self.got: dict[str, list[tuple[int, Any]]] = {}
        self.modulators: list[int | None] = []
        write_ring(folder / "net.key", self.ring)

    def certify(self, name: str, **rights: Any) -> Identity:
        identity = new_identity()
        now_s = int(time())
        certificate = Certificate("roamcast", identity.public, name, now_s, now_s + 3600, **rights)
        self.authority, statement = self.authority.certified(certificate)
        identity = msgspec.structs.replace(identity, certificate=statement)
        write_secret(self.folder / f"{name}.node", identity, "identity")
        return identity

    async def open(self, name: str, listen: tuple[str, int], peers: list[tuple[str, int]], **more: Any) -> LiveNode:
        settings = NodeSettings(
            address=read_identity(self.folder / f"{name}.node").address,
            language="topics",
            listen=listen,
            peers=tuple(peers),
            key=self.folder / "net.key",
            identity=self.folder / f"{name}.node",
            **more,
        )
        self.got[name] = []

        def take(delivery: Delivery) -> None:
            self.got[name].append((delivery.event.publisher, delivery.event.content))
            self.modulators.append(delivery.modulated_by)

        node = self.nodes[name] = await LiveNode.open(settings, take)
        return node

    async def line(self, *names: str) -> None:
        ends = free_endpoints(len(names))
        for place, name in enumerate(names):
            near = [ends[at] for at in (place - 1, place + 1) if 0 <= at < len(names)]
            await self.open(name, ends[place], near)

    def lost(self, name: str) -> dict[str, int]:
        found: dict[str, int] = self.nodes[name].counters()["frames_lost"]
        return found

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(TIMEOUT_S):
            while not holds():
                await asyncio.sleep(0.01)


def live(folder: Path, scene: Callable[[Members], Coroutine[Any, Any, None]]) -> None:
    async def play() -> None:
        members = Members(folder)
        try:
            await scene(members)
        finally:
            for node in members.nodes.values():
                node.close()

    asyncio.run(play())


def test_signed_events_cross_relays_and_forged_ones_do_not(tmp_path: Path) -> None:
    async def scene(members: Members) -> None:
        for name in ("alice", "bob", "carol"):
            members.certify(name)
        mallory = members.certify("mallory")
        await members.line("alice", "bob", "mallory", "carol")
        members.nodes["carol"].subscribe(parse_interest("topics", "fire/**"))
        alice = members.nodes["alice"].settings.address
        members.nodes["alice"].publish("fire/north")
        await members.until(lambda: members.got["carol"] == [(alice, "fire/north")])
        host = members.nodes["mallory"]._host  # a member that has turned: it sends what it likes
        forged = Event(event_id(alice, 999), time(), "fire/forged")
        signed_by_mallory = Signer("roamcast", mallory, certificate(members, mallory)).published(forged)
        changed = Event(event_id(alice, 998), time(), "fire/changed", signature=bytes(64))
        claimed = mallory.address.to_bytes(4, "big") + bytes(64)
        for event in (forged, signed_by_mallory, changed, msgspec.structs.replace(forged, signature=claimed)):
            host.link.broadcast(Flood(1, event))
        await members.until(lambda: sum(members.lost("carol").values()) >= 4)
        assert members.lost("carol") == {"unsigned": 1, "forged statement": 2, "forbidden": 1}
        assert len(members.got["carol"]) == 1
        members.nodes["alice"].publish("fire/south")
        await members.until(lambda: len(members.got["carol"]) == 2)

    live(tmp_path, scene)


def test_repaired_events_keep_their_publishers_signature(tmp_path: Path) -> None:
    """The subscriber starts when the publisher is gone: a relay has kept the event and the interest."""

    async def scene(members: Members) -> None:
        for name in ("alice", "bob", "carol"):
            members.certify(name)
        mallory = members.certify("mallory")
        ends = free_endpoints(4)
        await members.open("alice", ends[0], [ends[1]], repair=True)
        await members.open("bob", ends[1], [ends[0], ends[2], ends[3]], repair=True)
        members.nodes["bob"].subscribe(parse_interest("topics", "fire/**"))
        alice = members.nodes["alice"].settings.address
        members.nodes["alice"].publish("fire/north")
        await members.until(lambda: members.got["bob"] == [(alice, "fire/north")])
        members.nodes.pop("alice").close()
        await members.open("carol", ends[2], [ends[1]], repair=True)
        members.nodes["carol"].subscribe(parse_interest("topics", "fire/**"))
        await members.until(lambda: members.got["carol"] == [(alice, "fire/north")])
        await members.open("mallory", ends[3], [ends[1]], repair=True)
        forged = Event(event_id(alice, 999), time(), "fire/forged")
        signed_by_mallory = Signer("roamcast", mallory, certificate(members, mallory)).published(forged)
        want = Want(alice, 2**40, 1, parse_interest("topics", "**"), is_ordered=False, age_s=0.0, signature=bytes(64))
        for event in (forged, signed_by_mallory):
            members.nodes["mallory"]._host.link.broadcast(Carry((Carried(event, 0.0, 1),), ()))
        members.nodes["mallory"]._host.link.broadcast(RecordUpdate((want,), ()))
        await members.until(lambda: sum(members.lost("bob").values()) >= 3)
        assert members.lost("bob").keys() >= {"unsigned", "forged statement"}
        assert len(members.got["bob"]) == 1

    live(tmp_path, scene)


def certificate(members: Members, identity: Identity) -> Certificate:
    assert identity.certificate is not None
    return msgspec.msgpack.decode(identity.certificate.body, type=Certificate)


def test_a_revocation_told_to_one_node_reaches_all(tmp_path: Path) -> None:
    async def scene(members: Members) -> None:
        for name in ("alice", "bob", "carol"):
            members.certify(name)
        await members.line("alice", "bob", "carol")
        members.nodes["alice"].subscribe(parse_interest("topics", "**"))
        members.nodes["carol"].publish("fire/before")
        await members.until(lambda: len(members.got["alice"]) == 1)
        members.authority, told = members.authority.revoked("carol", time())
        path = tmp_path / "net.key"
        write_ring(path, msgspec.structs.replace(read_ring(path), revoked=tuple(told)), replace=True)
        members.nodes["alice"].reload()
        await asyncio.sleep(0.3)
        with pytest.raises(ConfigurationError, match="is revoked"):
            members.nodes["carol"].publish("fire/after")
        host = members.nodes["carol"]._host  # which does not care
        host.link.broadcast(Flood(1, Event(event_id(carol_address(members), 7), time(), "fire/x", signature=bytes(64))))
        await members.until(lambda: members.lost("bob").get("revoked", 0) > 0)
        assert len(members.got["alice"]) == 1

    live(tmp_path, scene)


def carol_address(members: Members) -> int:
    return members.nodes["carol"].settings.address


def test_a_certificate_expires_and_is_renewed_while_nodes_run(tmp_path: Path) -> None:
    async def scene(members: Members) -> None:
        for name in ("alice", "bob"):
            members.certify(name)
        await members.line("alice", "bob")
        members.nodes["bob"].subscribe(parse_interest("topics", "**"))
        guard = members.nodes["alice"]._guard
        assert guard is not None
        members.nodes["alice"].publish("fire/before")
        await members.until(lambda: len(members.got["bob"]) == 1)
        for node in members.nodes.values():  # an hour and a minute pass
            assert node._guard is not None
            later = node._guard._now
            node._guard._now = node._guard._sealer._now = lambda later=later: later() + 3660  # type: ignore[union-attr]
            node._guard._herald._now = node._guard._now  # type: ignore[union-attr]
        with pytest.raises(ConfigurationError, match=r"is (expired|unknown sender)"):
            members.nodes["alice"].publish("fire/expired")
        for name in ("alice", "bob"):
            identity = read_identity(tmp_path / f"{name}.node")
            now_s = int(time()) + 3660
            renewed = Certificate("roamcast", identity.public, name, now_s, now_s + 3600)
            members.authority, statement = members.authority.certified(renewed)
            identity = msgspec.structs.replace(identity, certificate=statement)
            write_secret(tmp_path / f"{name}.node", identity, "identity", replace=True)
            members.nodes[name].reload()
        async with asyncio.timeout(TIMEOUT_S):
            while len(members.got["bob"]) == 1:
                members.nodes["alice"].publish("fire/after")
                await asyncio.sleep(0.1)

    live(tmp_path, scene)


def test_a_node_that_comes_later_learns_of_revocations_and_members(tmp_path: Path) -> None:
    async def scene(members: Members) -> None:
        for name in ("alice", "bob", "carol"):
            members.certify(name)
        members.authority, told = members.authority.revoked("carol", time())
        ends = free_endpoints(2)
        plain = read_ring(tmp_path / "net.key")
        write_ring(tmp_path / "net.key", msgspec.structs.replace(plain, revoked=tuple(told)), replace=True)
        alice = await members.open("alice", ends[0], [ends[1]])
        write_ring(tmp_path / "net.key", plain, replace=True)
        await asyncio.sleep(0.1)
        bob = await members.open("bob", ends[1], [ends[0]])
        assert bob._guard is not None
        assert alice._guard is not None
        bob_knows, alice_knows = bob._guard._credentials, alice._guard._credentials
        assert bob_knows is not None
        assert alice_knows is not None
        await members.until(lambda: bob_knows.digest == alice_knows.digest)
        assert len(bob_knows.revocations()) == 1

    live(tmp_path, scene)


def test_access_rules_hold_at_the_publisher_at_relays_and_at_subscribers(tmp_path: Path) -> None:
    async def scene(members: Members) -> None:
        alice = members.certify("alice", publishes=("fire/**",))
        members.certify("bob", subscribes=("fire/north",))
        members.certify("carol")
        await members.line("alice", "carol", "bob")
        bob, carol = members.nodes["bob"], members.nodes["carol"]
        with pytest.raises(ConfigurationError, match=r"'fire/\*\*' is not what this node's certificate allows"):
            bob.subscribe(parse_interest("topics", "fire/**"))
        bob.subscribe(parse_interest("topics", "fire/north"))
        carol.subscribe(parse_interest("topics", "**"))
        with pytest.raises(ConfigurationError, match="'water/a' is not what this node's certificate allows"):
            members.nodes["alice"].publish("water/a")
        signer = Signer("roamcast", alice, certificate(members, alice))
        event = signer.published(Event(event_id(alice.address, 5), time(), "water/a"))
        members.nodes["alice"]._host.link.broadcast(Flood(1, event))
        await members.until(lambda: members.lost("carol").get("forbidden") == 1)
        bob._host.protocol.subscribe(parse_interest("topics", "**"))  # past its own check
        members.nodes["alice"].publish("fire/south")
        await members.until(lambda: members.lost("bob").get("forbidden") == 1)
        members.nodes["alice"].publish("fire/north")
        await members.until(lambda: len(members.got["bob"]) == 1)
        assert [content for _, content in members.got["carol"]] == ["fire/south", "fire/north"]

    live(tmp_path, scene)


def test_events_of_a_modulator_are_signed_by_it_and_say_so(tmp_path: Path) -> None:
    async def scene(members: Members) -> None:
        alice = members.certify("alice")
        broker = members.certify("broker", modulates=True)
        members.certify("bob")
        await members.line("broker", "bob")
        members.nodes["bob"].subscribe(parse_interest("topics", "**"))
        members.nodes["broker"]._host.broadcast(Flood(1, Event(event_id(alice.address, 1), time(), "fire/changed")))
        await members.until(lambda: members.got["bob"] == [(alice.address, "fire/changed")])
        assert members.modulators == [broker.address]

    live(tmp_path, scene)


OVERLAYS = {"bootstrap_s": 1, "bootstrap_period_s": 0.2, "update_period_s": 1, "discovery_period_s": 1, "retry_s": 0.5}
# Nodes of SOMER become roots by chance, 9 % of them at the start, and draw again after `out_period_s` without a tree,
# 15 s as published (thesis 4.3.1). Three nodes start without a root three times in four.
QUICK: dict[str, dict[str, Any]] = {
    "flooding": {},
    "waymark": {},
    "ps-maodv": {"refresh_period_s": 1.0},
    "somer": {"refresh_period_s": 1.0, "advertisement_period_s": 1.0, "out_period_s": 1.0},
    "somer-plus": {"refresh_period_s": 1.0, "advertisement_period_s": 1.0},
    "odmrp": {},
    "georendezvous": {},
    "overlays": OVERLAYS,
}


@pytest.mark.slow("every protocol in real time")
def test_every_protocol_works_with_signatures(tmp_path: Path) -> None:
    """All at the same time, each in a network of its own: three nodes in a row."""

    async def network(name: str) -> None:
        folder = tmp_path / name
        folder.mkdir()
        members = Members(folder)
        identities = [members.certify(who, modulates=True) for who in ("a", "b", "c")]
        parameters = QUICK[name] | ({"brokers": str(identities[1].address)} if name == "overlays" else {})
        ends = free_endpoints(3)
        for place, who in enumerate(("a", "b", "c")):
            await members.open(
                who,
                ends[place],
                [ends[at] for at in (place - 1, place + 1) if 0 <= at < 3],
                protocol=name,
                parameters=parameters,
                position=(50.0 + 100.0 * place, 50.0),
                site=Site(400.0, 100.0, 150.0),
            )
        try:
            members.nodes["c"].subscribe(parse_interest("topics", "fire/**"))
            members.nodes["a"].advertise(parse_interest("topics", "fire/**"))
            for _ in range(300):
                await asyncio.sleep(0.2)
                if members.got["c"]:
                    break
                members.nodes["a"].publish("fire/north")
            assert members.got["c"], f"{name}: {[members.lost(who) for who in members.nodes]}"
            for who in members.nodes:
                assert not members.lost(who).keys() & {"unsigned", "forged statement", "forged", "forbidden"}, name
        finally:
            for node in members.nodes.values():
                node.close()

    async def all_networks() -> None:
        await asyncio.gather(*map(network, QUICK))

    asyncio.run(all_networks())


def test_a_node_without_an_identity_is_told_how_to_get_one(tmp_path: Path) -> None:
    members = Members(tmp_path)
    peers = (("127.0.0.1", 9),)

    async def start(**more: Any) -> None:
        await LiveNode.open(
            NodeSettings(language="topics", peers=peers, key=tmp_path / "net.key", **more), lambda delivery: None
        )

    with pytest.raises(ConfigurationError, match="roamcast key certify"):
        asyncio.run(start(address=1))
    members.certify("alice")
    with pytest.raises(ConfigurationError, match="address = 1: the identity's is"):
        asyncio.run(start(address=1, identity=tmp_path / "alice.node"))


def test_nobody_without_the_key_gets_an_answer(tmp_path: Path) -> None:
    """Whatever a stranger sends, not one datagram is sent because of it; beacons come in their own time."""

    async def scene(members: Members) -> None:
        members.certify("alice")
        alice_end, stranger_end = free_endpoints(2)
        heard: list[bytes] = []
        beacons: list[bytes] = []

        class Stranger(asyncio.DatagramProtocol):
            def datagram_received(self, data: bytes, addr: Any) -> None:
                (beacons if len(data) == BEACON_BYTES else heard).append(data)

        loop = asyncio.get_running_loop()
        transport, _ = await loop.create_datagram_endpoint(Stranger, local_addr=stranger_end)
        alice = await members.open("alice", alice_end, [stranger_end])
        await members.until(lambda: len(heard) == 1)  # its announcement
        codec = Codec("roamcast", "flooding", Flood)
        address = alice.settings.address
        plain = codec.encode(Datagram(DatagramKind.UNICAST, 5, address, 1, Flood(1, Event(event_id(5, 1), 0.0, "a"))))
        for data in (plain, heard[0], heard[0][:-1], b"\xcb\x02" + bytes(60), bytes(1400)):
            before = sum(members.lost("alice").values())
            for _ in range(50):
                transport.sendto(data, alice_end)
            await members.until(lambda before=before: sum(members.lost("alice").values()) >= before + 50)  # type: ignore[misc]
        await asyncio.sleep(0.2)
        assert len(heard) == 1
        assert len(beacons) < 10
        transport.close()

    live(tmp_path, scene)


def test_a_quota_limits_each_peer_and_forgets_the_oldest() -> None:
    quotas = Quotas(Quota(datagrams_per_s=10, datagrams_burst=5, bytes_per_s=1000, bytes_burst=1000))
    assert [quotas.allows(1, 10, 0.0) for _ in range(6)] == [True] * 5 + [False]
    assert quotas.allows(2, 10, 0.0), "another peer's share is its own"
    assert quotas.allows(1, 10, 0.1)
    assert not quotas.allows(1, 10, 0.1)
    assert not quotas.allows(3, 1001, 0.1)
    assert quotas.allows(4, 10, 0.1, 3)
    assert not quotas.allows(4, 10, 0.1, 3), "what costs as much as several counts as several"
    assert quotas.allows(5, 10, 0.1, 6), "but is possible"
    assert not quotas.allows(1, 10, -5.0), "a clock that goes back gives nothing"
    for peer in range(2 * PEERS_MAX):
        quotas.allows(peer, 1, 1.0)
    assert len(quotas) == PEERS_MAX


def test_a_peer_over_its_quota_is_not_heard(tmp_path: Path) -> None:
    async def scene(members: Members) -> None:
        for name in ("alice", "bob"):
            members.certify(name)
        ends = free_endpoints(2)
        quota = Quota(datagrams_per_s=0.001, datagrams_burst=20)
        await members.open("alice", ends[0], [ends[1]], quota=quota)
        await members.open("bob", ends[1], [ends[0]])
        members.nodes["alice"].subscribe(parse_interest("topics", "**"))
        for _ in range(60):
            members.nodes["bob"].publish("fire/north")
            await asyncio.sleep(WINDOW_S)  # each in a datagram of its own
        await members.until(lambda: members.lost("alice").get("quota", 0) >= 40)
        assert 10 <= len(members.got["alice"]) <= 20

    live(tmp_path, scene)


def test_an_announcement_costs_few_checks_until_it_is_known_who_sent_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Someone who has the key and is no member makes a node check two signatures at most with a datagram."""
    checks: list[bytes] = []

    def counted(public: Any, signature: bytes, data: bytes) -> bool:
        checks.append(data)
        return verify(public, signature, data)

    async def scene(members: Members) -> None:
        for name in ("alice", "mallory"):
            members.certify(name)
        stranger = new_identity()  # which the authority has not certified
        ends = free_endpoints(2)
        node = await members.open("alice", ends[0], [])
        guard = node._guard
        assert guard is not None
        forged = [Statement(bytes([number]) * 50, bytes(64)) for number in range(8)]
        codec = Codec("roamcast", "flooding", message_union(protocol_class("flooding").messages))

        def announcement(identity: Identity, certificates: list[Statement]) -> bytes:
            said = CredentialAnnouncement(bytes(8), (), tuple(certificates), tuple(forged))
            body = msgspec.msgpack.encode(said)
            credentials = Credentials("roamcast", members.ring.authority or b"")
            sealer = Sealer(members.ring, identity.address, 1, lambda: 2, time, identity, credentials)
            return sealer.seal(codec.encode(Datagram(DatagramKind.ANNOUNCEMENT, identity.address), body))

        monkeypatch.setattr("roamcast.live.identity.verify", counted)
        monkeypatch.setattr("roamcast.live.sealing.verify", counted)
        assert guard.open(announcement(stranger, forged), lambda data: None) is None
        assert len(checks) == 1
        checks.clear()
        mallory = read_identity(members.folder / "mallory.node")
        assert mallory.certificate is not None
        sent = announcement(mallory, [mallory.certificate, *forged[:7]])
        assert guard.open(sent, lambda data: None) is not None
        assert len(checks) == 2 + 15, "a member's announcement is read, and counts as that many datagrams"
        assert guard._quotas._buckets[mallory.address].datagrams <= Quota().datagrams_burst - 16

    live(tmp_path, scene)


def test_a_node_whose_clock_was_behind_believes_certificates_once_it_is_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a machine without a clock of its own, which starts in the past and asks the network for the time."""
    behind_s = 30 * 86_400.0

    async def scene(members: Members) -> None:
        for name in ("alice", "bob"):
            members.certify(name)
        ends = free_endpoints(2)
        with monkeypatch.context() as patched:
            patched.setattr("roamcast.live.host.time.time", lambda: time() - behind_s)
            await members.open("alice", ends[0], [ends[1]])
            await members.open("bob", ends[1], [ends[0]])
            members.nodes["alice"].subscribe(parse_interest("topics", "**"))
            members.nodes["bob"].discovery._send_beacons(everywhere=True)
            await members.until(lambda: "expired" in members.lost("alice"))
        await members.until(lambda: members.nodes["alice"].neighbours == 1)
        members.nodes["bob"].publish("fire/north")
        await members.until(lambda: len(members.got["alice"]) == 1)

    live(tmp_path, scene)


def test_what_travels_in_envelopes_is_signed_and_checked_too() -> None:
    """Every message of Overlays that goes over several hops is in a `Routed`."""
    event = Event(event_id(7, 1), 1.0, "fire/north")
    contents = Contents(protocol_class("overlays").messages)
    message = Routed(7, 8, 0, 0, Publish(0, event, False))
    assert contents.records(message) == [message]
    assert contents.events(message) == [event]
