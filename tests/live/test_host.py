"""Hosts on the loopback interface, in one process: what the contract promises a protocol, over real sockets."""

import asyncio
import socket
import time
from collections.abc import Callable, Coroutine
from typing import Any, ClassVar

from roamcast.delivery.inboxes import Handed
from roamcast.errors import PeerError
from roamcast.events import Event
from roamcast.interests import Interest
from roamcast.live.codec import Codec, Datagram, DatagramKind
from roamcast.live.endpoints import Endpoint, open_socket
from roamcast.live.host import Clock, Failure, UdpHost
from roamcast.live.journal import Journal
from roamcast.live.link import ATTEMPTS_MAX, DATAGRAMS_PER_WINDOW, QUEUE_MAX, UNICASTS_UNDER_WAY, WINDOW_S
from roamcast.live.quotas import Quota
from roamcast.protocols.api import Host, Message, Parameters, Protocol, Timer
from roamcast.seeds import Random


class Note(Message, frozen=True, array_like=True, tag=16):
    text: str


CODEC = Codec("test", "scripted", Note)


class Scripted(Protocol):
    """Writes down every call, and does in `on_message` what the note says."""

    name: ClassVar[str] = "scripted"
    summary: ClassVar[str] = "for tests"
    Parameters: ClassVar[type[Parameters]] = Parameters
    messages: ClassVar[Any] = Note

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self.calls: asyncio.Queue[tuple[Any, ...]] = asyncio.Queue()
        self.depth = 0

    def start(self) -> None:
        pass

    def subscribe(self, interest: Interest) -> None:
        pass

    def unsubscribe(self, interest: Interest) -> None:
        pass

    def publish(self, event: Event) -> None:
        assert self.depth == 0
        self.calls.put_nowait(("publish", event.id))

    def on_message(self, sender: int, message: Message) -> None:
        assert isinstance(message, Note)
        self.depth += 1
        match message.text:
            case "refuse":
                raise PeerError("as told")
            case "break":
                raise RuntimeError("a bug")
            case "deliver":
                self.host.deliver(Event(1 << 32 | 1, self.host.now(), 7), 1)
            case "deliver nonsense":
                self.host.deliver(Event(-5, self.host.now(), 7), 1)
            case "wait":
                self.host.set_timer(0.0, ("echo", 0))
            case "fail later":
                self.host.set_timer(0.0, ("break", 0))
        self.depth -= 1
        self.calls.put_nowait(("message", sender, message.text))

    def on_timer(self, timer: Timer) -> None:
        assert timer[0] != "break"
        assert self.depth == 0
        self.calls.put_nowait(("timer", *timer))

    def on_send_failed(self, neighbour: int, message: Message) -> None:
        assert self.depth == 0
        assert isinstance(message, Note)
        self.calls.put_nowait(("failed", neighbour, message.text))


class Network:
    """Hosts that hear each other, by static links or through a group whose port they share."""

    def __init__(self) -> None:
        self.hosts: dict[int, UdpHost] = {}
        self.protocols: dict[int, Scripted] = {}
        self.journals: dict[int, Journal] = {}
        self.endpoints: dict[int, Endpoint] = {}
        self.failures: asyncio.Queue[Failure] = asyncio.Queue()
        self.deliveries: asyncio.Queue[tuple[Event, int, float]] = asyncio.Queue()

    async def link(self, *addresses: int) -> None:
        sockets = {address: open_socket(("127.0.0.1", 0), None) for address in addresses}
        self.endpoints |= {address: sock.getsockname() for address, sock in sockets.items()}
        for address, sock in sockets.items():
            others = [endpoint for other, endpoint in self.endpoints.items() if other != address]
            await self._add(address, sock, others)

    async def share(self, group: Endpoint, *addresses: int) -> None:
        for address in addresses:
            await self._add(address, open_socket(("127.0.0.1", group[1]), group), [group])

    async def _add(self, address: int, sock: socket.socket, neighbourhood: list[Endpoint]) -> None:
        clock = Clock()
        self.journals[address] = Journal(address, clock.now)
        self.hosts[address] = host = UdpHost(
            address,
            CODEC,
            self.journals[address],
            neighbourhood,
            life=1,
            clock=clock,
            random=Random(address),
            on_delivery=lambda handed, latency_s: self._delivered(address, handed, latency_s),
            on_failure=self.failures.put_nowait,
            position=(3.0, 4.0),
        )
        host.protocol = self.protocols[address] = Scripted(host)
        host.listen(sock)

    def _delivered(self, address: int, handed: Handed, latency_s: float) -> None:
        self.protocols[address].publish(handed.event)  # an application that answers at once
        self.deliveries.put_nowait((handed.event, handed.hops, latency_s))

    async def call(self, address: int) -> tuple[Any, ...]:
        """The next call that the protocol of `address` got."""
        return await asyncio.wait_for(self.protocols[address].calls.get(), 5)

    def lost(self, address: int) -> dict[str, int]:
        counted: dict[str, int] = self.journals[address].counters()["frames_lost"]
        return counted

    def frames_sent(self) -> int:
        return sum(journal.counters()["frames_sent"].get("Note", 0) for journal in self.journals.values())

    async def until(self, is_so: Callable[[], bool]) -> None:
        async with asyncio.timeout(5):
            while not is_so():
                await asyncio.sleep(0.001)

    def close(self) -> None:
        for host in self.hosts.values():
            host.close()


def on_network(scenario: Callable[[Network], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    """A test that runs `scenario` on a network of its own."""

    async def run() -> None:
        network = Network()
        try:
            await scenario(network)
        finally:
            network.close()
            await asyncio.sleep(0)  # lets the transports close

    def test() -> None:
        asyncio.run(run())

    test.__name__ = scenario.__name__
    return test


@on_network
async def test_a_broadcast_reaches_every_link(network: Network) -> None:
    await network.link(1, 2, 3)
    network.hosts[1].broadcast(Note("hello"))
    assert await network.call(2) == ("message", 1, "hello")
    assert await network.call(3) == ("message", 1, "hello")


@on_network
async def test_a_unicast_reaches_its_receiver_alone_before_and_after_it_was_heard(network: Network) -> None:
    await network.link(1, 2, 3)
    network.hosts[1].send(2, Note("unknown"))
    assert await network.call(2) == ("message", 1, "unknown")
    network.hosts[2].send(1, Note("known"))
    assert await network.call(1) == ("message", 2, "known")
    network.hosts[1].broadcast(Note("last"))
    assert await network.call(3) == ("message", 1, "last")
    assert network.lost(3) == {"overheard": 1}
    assert network.lost(1) == {}


@on_network
async def test_a_unicast_that_nobody_acknowledges_is_retried_and_reported(network: Network) -> None:
    await network.link(1, 2)
    network.hosts[1].send(9, Note("anybody?"))
    assert await network.call(1) == ("failed", 9, "anybody?")
    counters = network.journals[1].counters()
    assert counters["frames_sent"] == {"Note": ATTEMPTS_MAX}
    assert counters["sends_failed"] == 1
    assert network.lost(2) == {"overheard": ATTEMPTS_MAX}


@on_network
async def test_a_repeated_unicast_is_acknowledged_again_and_passed_on_once(network: Network) -> None:
    await network.link(1)
    loop = asyncio.get_running_loop()
    with open_socket(("127.0.0.1", 0), None) as stranger:
        for _ in range(2):
            data = CODEC.encode(Datagram(DatagramKind.UNICAST, 5, 1, 77, Note("once")))
            await loop.sock_sendto(stranger, data, network.endpoints[1])
            answer = await asyncio.wait_for(loop.sock_recv(stranger, 100), 5)
            assert CODEC.decode(answer) == Datagram(DatagramKind.ACKNOWLEDGEMENT, 1, 5, 77)
    assert await network.call(1) == ("message", 5, "once")
    assert network.protocols[1].calls.empty()
    assert network.lost(1) == {"duplicate": 1}


@on_network
async def test_an_acknowledgement_counts_only_from_the_receiver(network: Network) -> None:
    await network.link(1, 2)
    network.hosts[1].send(9, Note("to nine"))
    loop = asyncio.get_running_loop()
    (sequence,) = network.hosts[1].link.waiting
    with open_socket(("127.0.0.1", 0), None) as liar:
        forged = CODEC.encode(Datagram(DatagramKind.ACKNOWLEDGEMENT, 8, 1, sequence))
        await loop.sock_sendto(liar, forged, network.endpoints[1])
        assert await network.call(1) == ("failed", 9, "to nine")


@on_network
async def test_unicasts_to_a_neighbour_take_turns_and_keep_their_order(network: Network) -> None:
    await network.link(1, 2)
    texts = [str(number) for number in range(5 * UNICASTS_UNDER_WAY)]
    for text in texts:
        network.hosts[1].send(2, Note(text))
    assert len(network.hosts[1].link.waiting) == UNICASTS_UNDER_WAY
    assert network.hosts[1].backlog() == len(texts)
    assert [await network.call(2) for _ in texts] == [("message", 1, text) for text in texts]
    await network.until(lambda: network.hosts[1].backlog() == 0)


@on_network
async def test_what_waits_for_a_silent_neighbour_is_bounded_and_does_not_delay_others(network: Network) -> None:
    await network.link(1, 2)
    for number in range(UNICASTS_UNDER_WAY + QUEUE_MAX + 3):
        network.hosts[1].send(9, Note(str(number)))
    assert network.hosts[1].backlog() == UNICASTS_UNDER_WAY + QUEUE_MAX
    assert network.lost(1) == {"queue": 3}
    assert await network.call(1) == ("failed", 9, "0")
    network.hosts[1].send(2, Note("to two"))
    assert await network.call(2) == ("message", 1, "to two")


@on_network
async def test_a_message_larger_than_a_frame_travels_in_fragments(network: Network) -> None:
    await network.link(1, 2)
    long = "x" * 80_000
    network.hosts[1].broadcast(Note(long))
    assert await network.call(2) == ("message", 1, long)
    network.hosts[1].send(2, Note(long))
    assert network.hosts[1].backlog() > 8, "fragments wait for those before them to be acknowledged"
    assert await network.call(2) == ("message", 1, long)
    await network.until(lambda: network.hosts[1].backlog() == 0)
    assert network.protocols[1].calls.empty()


@on_network
async def test_a_large_message_to_a_silent_neighbour_fails_once(network: Network) -> None:
    await network.link(1, 2)
    network.hosts[1].send(9, Note("z" * 20_000))
    assert await network.call(1) == ("failed", 9, "z" * 20_000)
    assert network.hosts[1].backlog() < 15, "what was left of it is not sent"
    await network.until(lambda: network.hosts[1].backlog() == 0)
    assert network.protocols[1].calls.empty()


@on_network
async def test_a_message_too_large_for_the_link_never_leaves(network: Network) -> None:
    await network.link(1, 2)
    network.hosts[1].broadcast(Note("x" * 300_000))
    network.hosts[1].send(2, Note("y" * 300_000))
    network.hosts[1].send(2, Note("short"))
    assert await network.call(2) == ("message", 1, "short")
    assert network.protocols[1].calls.empty(), "the neighbour has not failed"
    assert network.lost(1) == {"oversized": 2}


@on_network
async def test_nodes_that_share_a_port_on_one_machine_hear_a_group_and_can_send(network: Network) -> None:
    with open_socket(("127.0.0.1", 0), None) as free:
        group = ("239.255.82.67", free.getsockname()[1])
    await network.share(group, 1, 2, 3)
    network.hosts[1].broadcast(Note("all"))
    assert await network.call(2) == ("message", 1, "all")
    assert await network.call(3) == ("message", 1, "all")
    assert network.lost(1) == {"own address": 1}
    pairs = [(2, 1), (3, 2), (1, 3), (3, 1)]
    for sender, receiver in pairs:
        network.hosts[sender].send(receiver, Note("one"))
        assert await network.call(receiver) == ("message", sender, "one")
    await network.until(lambda: not any(host.link.waiting for host in network.hosts.values()))
    # By now each has heard its own echo and knows that the port is shared: nobody needs a second attempt any more.
    before = network.frames_sent()
    for sender, receiver in pairs:
        network.hosts[sender].send(receiver, Note("two"))
        assert await network.call(receiver) == ("message", sender, "two")
    await network.until(lambda: not any(host.link.waiting for host in network.hosts.values()))
    assert network.frames_sent() - before == len(pairs)
    assert all(protocol.calls.empty() for protocol in network.protocols.values())


@on_network
async def test_what_a_protocol_refuses_is_counted_and_the_node_goes_on(network: Network) -> None:
    await network.link(1, 2)
    for text in ("refuse", "deliver nonsense", "fine"):
        network.hosts[1].broadcast(Note(text))
    assert await network.call(2) == ("message", 1, "fine")
    assert network.lost(2) == {"refused": 2}
    assert network.failures.empty()


@on_network
async def test_small_broadcasts_of_one_round_share_datagrams_and_arrive_in_order(network: Network) -> None:
    await network.link(1, 2)
    datagrams: list[bytes] = []
    link: Any = network.hosts[2].link
    receive = link.receive

    def counted(data: bytes, *more: Any) -> Any:
        datagrams.append(data)
        return receive(data, *more)

    link.receive = counted
    for number in range(200):
        network.hosts[1].broadcast(Note(f"note {number}"))
    got = [(await network.call(2))[2] for _ in range(200)]
    assert got == [f"note {number}" for number in range(200)]
    assert len(datagrams) < 10
    await asyncio.sleep(0.05)
    network.hosts[1].broadcast(Note("alone"))
    assert (await network.call(2))[2] == "alone"
    assert datagrams[-1] == CODEC.encode(Datagram(DatagramKind.BROADCAST, 1, message=Note("alone")))


@on_network
async def test_a_node_that_broadcasts_in_every_round_fills_its_datagrams(network: Network) -> None:
    """Each event in a datagram of its own is what cost 40,000 events/s, and what quotas took for an attack."""
    await network.link(1, 2)
    sent: list[bytes] = []
    host: Any = network.hosts[1]
    transmit = host._transmit

    def counted(data: bytes, endpoints: Any) -> None:
        sent.append(data)
        transmit(data, endpoints)

    host.link._transmit = counted
    began_s = time.monotonic()
    for number in range(400):
        host.broadcast(Note(f"note {number:090}"))
        assert number > 0 or len(sent) == 1, "one alone does not wait"
        await asyncio.sleep(0)
    windows = 1 + (time.monotonic() - began_s) / WINDOW_S
    got = [(await network.call(2))[2] for _ in range(400)]
    assert got == [f"note {number:090}" for number in range(400)]
    full = sum(len(data) > host.link.frame_bytes_max - 200 for data in sent)
    assert len(sent) - full <= DATAGRAMS_PER_WINDOW * (windows + 1)
    quota = Quota()
    assert quota.datagrams_per_s > 4 * DATAGRAMS_PER_WINDOW / WINDOW_S
    assert quota.bytes_per_s > 40_000 * 150, "40,000 small events per second"


@on_network
async def test_what_is_broadcast_before_a_node_closes_still_leaves(network: Network) -> None:
    await network.link(1, 2)
    for text in ("first", "last"):
        network.hosts[1].broadcast(Note(text))
    network.hosts[1].close()
    assert [(await network.call(2))[2] for _ in range(2)] == ["first", "last"]


@on_network
async def test_a_message_that_runs_into_a_bug_is_dropped_and_reported_with_its_bytes(network: Network) -> None:
    await network.link(1, 2)
    network.hosts[1].broadcast(Note("break"))
    failure = await asyncio.wait_for(network.failures.get(), 5)
    assert failure.error.startswith("RuntimeError: a bug (on_message, line ")
    assert b"break" in failure.datagram
    assert not failure.restarts
    network.hosts[1].broadcast(Note("fine"))
    assert await network.call(2) == ("message", 1, "fine")
    assert network.lost(2) == {"failed": 1}


@on_network
async def test_a_protocol_that_keeps_failing_is_to_start_over(network: Network) -> None:
    await network.link(1, 2)
    for _ in range(5):
        network.hosts[1].broadcast(Note("break"))
    failures = [await asyncio.wait_for(network.failures.get(), 5) for _ in range(5)]
    assert [failure.restarts for failure in failures] == [False] * 4 + [True]


@on_network
async def test_a_timer_that_runs_into_a_bug_makes_the_protocol_start_over(network: Network) -> None:
    await network.link(1, 2)
    network.hosts[1].broadcast(Note("fail later"))
    failure = await asyncio.wait_for(network.failures.get(), 5)
    assert failure.restarts
    assert failure.datagram == b""


@on_network
async def test_noise_on_the_socket_is_counted_by_reason(network: Network) -> None:
    await network.link(1, 2)
    loop = asyncio.get_running_loop()
    foreign = Codec("elsewhere", "scripted", Note).encode(Datagram(DatagramKind.BROADCAST, 5, message=Note("hi")))
    broken = CODEC.encode(Datagram(DatagramKind.BROADCAST, 5, message=Note("hi")))[:-1]
    with open_socket(("127.0.0.1", 0), None) as stranger:
        for data in (b"", b"GET / HTTP/1.1", foreign, broken, bytes([0xCA, 1]), bytes(3000)):
            await loop.sock_sendto(stranger, data, network.endpoints[1])
    network.hosts[2].broadcast(Note("after the noise"))
    assert await network.call(1) == ("message", 2, "after the noise")
    assert network.lost(1) == {
        "oversized": 1,
        "truncated": 2,
        "foreign magic": 1,
        "foreign network": 1,
        "malformed body": 1,
    }


@on_network
async def test_a_delivery_reaches_the_application_after_the_call_that_caused_it(network: Network) -> None:
    await network.link(1, 2)
    network.hosts[1].broadcast(Note("deliver"))
    event, hops, latency_s = await asyncio.wait_for(network.deliveries.get(), 5)
    assert (event.publisher, event.content, hops) == (1, 7, 1)
    assert 0 <= latency_s < 5
    assert await network.call(2) == ("message", 1, "deliver")
    assert await network.call(2) == ("publish", event.id)


@on_network
async def test_a_timer_of_no_delay_still_fires_after_the_call(network: Network) -> None:
    await network.link(1, 2)
    network.hosts[1].broadcast(Note("wait"))
    assert await network.call(2) == ("message", 1, "wait")
    assert await network.call(2) == ("timer", "echo", 0)


@on_network
async def test_setting_a_pending_timer_moves_it_and_cancelling_forgets_it(network: Network) -> None:
    await network.link(1)
    host = network.hosts[1]
    host.set_timer(0.01, ("moved", 1))
    host.set_timer(0.0, ("cancelled", 1))
    host.set_timer(0.02, ("stays", 1))
    host.set_timer(0.04, ("moved", 1))
    host.cancel_timer(("cancelled", 1))
    host.cancel_timer(("never set", 1))
    assert await network.call(1) == ("timer", "stays", 1)
    assert await network.call(1) == ("timer", "moved", 1)
    assert network.protocols[1].calls.empty()


@on_network
async def test_a_closed_host_calls_nobody(network: Network) -> None:
    await network.link(1)
    host = network.hosts[1]
    host.set_timer(0.0, ("late", 0))
    host.send(9, Note("nobody"))
    host.close()
    await asyncio.sleep(0.06)
    assert network.protocols[1].calls.empty()


@on_network
async def test_a_host_knows_what_it_was_told(network: Network) -> None:
    await network.link(1)
    host = network.hosts[1]
    assert (host.address, host.position(), host.velocity(), host.site, host.oracle) == (1, (3, 4), (0, 0), None, None)
    earlier = host.now()
    await asyncio.sleep(0.05)
    host.move((3.0, 24.0))
    velocity = host.velocity()
    assert velocity is not None
    assert host.position() == (3, 24)
    assert velocity[0] == 0
    assert 0 < velocity[1] <= 20 / 0.05
    await asyncio.sleep(0.05)
    host.move((3.0, 24.0))
    assert host.velocity() == (0, 0)  # it has stopped
    assert host.now() >= earlier > 1_700_000_000
