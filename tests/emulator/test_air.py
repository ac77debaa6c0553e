"""What is between machines, without machines: ports are pairs of sockets."""

import asyncio
import socket
from collections.abc import Awaitable, Callable

from roamcast.emulator.air import Air, without_checksum
from roamcast.emulator.disturbance import Disturbances
from roamcast.seeds import Random
from roamcast.world.incident import Incident

BROADCAST = b"\xff" * 6


def frame(to: bytes, payload: bytes = b"hello") -> bytes:
    return to + bytes(6) + b"\x88\xb5" + payload


def machine(number: int) -> bytes:
    return bytes([2, 0, 0, 0, 0, number])


Work = Callable[[Air, list[socket.socket]], Awaitable[None]]


def in_air(count: int, work: Work, *, loss: float = 0.0, **rates: float) -> None:
    async def run() -> None:
        pairs = [socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM) for _ in range(count)]
        ports, cards = [Port(a) for a, _ in pairs], [b for _, b in pairs]
        air = Air(ports, delay_s=0.001, loss=loss, random=Random(1), **rates)  # type: ignore[arg-type]
        for number, card in enumerate(cards):
            card.setblocking(False)
            air.switch(number, on=True)
        await work(air, cards)
        air.close()
        for a, b in pairs:
            a.close()
            b.close()

    asyncio.run(run())


class Port:
    """A socket that answers like one of the packet family."""

    def __init__(self, inner: socket.socket) -> None:
        inner.setblocking(False)
        self._inner = inner

    def fileno(self) -> int:
        return self._inner.fileno()

    def recvfrom(self, size: int) -> tuple[bytes, tuple[str, int, int]]:
        return self._inner.recv(size), ("port", 0, 0)

    def send(self, data: bytes) -> int:
        return self._inner.send(data)


def heard(card: socket.socket) -> bytes | None:
    try:
        return card.recv(65536)
    except BlockingIOError:
        return None


def test_only_machines_in_range_hear_a_broadcast() -> None:
    async def work(air: Air, cards: list[socket.socket]) -> None:
        air.connect(0, 1, in_range=True)
        air.connect(1, 2, in_range=True)
        cards[0].send(frame(BROADCAST))
        await asyncio.sleep(0.05)
        assert [heard(card) for card in cards] == [None, frame(BROADCAST), None]
        assert air.hops_from(0) == [0, 1, 2]
        air.connect(1, 2, in_range=False)
        assert air.hops_from(0) == [0, 1, -1]

    in_air(3, work)


def test_a_frame_to_one_machine_reaches_that_one_alone() -> None:
    async def work(air: Air, cards: list[socket.socket]) -> None:
        air.connect(0, 1, in_range=True)
        air.connect(0, 2, in_range=True)
        cards[0].send(frame(machine(2)))
        cards[1].send(frame(machine(2)))  # out of range
        await asyncio.sleep(0.05)
        assert [heard(card) for card in cards] == [None, None, frame(machine(2))]
        assert heard(cards[2]) is None

    in_air(3, work)


def test_a_machine_that_is_off_neither_sends_nor_hears() -> None:
    async def work(air: Air, cards: list[socket.socket]) -> None:
        air.connect(0, 1, in_range=True)
        air.switch(1, on=False)
        cards[0].send(frame(BROADCAST))
        cards[1].send(frame(BROADCAST))
        await asyncio.sleep(0.05)
        assert [heard(card) for card in cards] == [None, None]

    in_air(2, work)


def test_loss_is_random_and_as_high_as_asked() -> None:
    async def work(air: Air, cards: list[socket.socket]) -> None:
        air.connect(0, 1, in_range=True)
        arrived = 0
        for _ in range(400):
            cards[0].send(frame(BROADCAST))
            await asyncio.sleep(0)
        await asyncio.sleep(0.1)
        while heard(cards[1]) is not None:
            arrived += 1
        assert 60 <= arrived <= 140  # 0.25 of 400: four standard deviations

    in_air(2, work, loss=0.75)


def test_a_shared_medium_carries_one_frame_at_a_time() -> None:
    async def work(air: Air, cards: list[socket.socket]) -> None:
        air.connect(0, 1, in_range=True)
        air.connect(1, 2, in_range=True)
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        cards[0].send(frame(BROADCAST, bytes(986)))  # 1000 bytes: 80 ms at 100 kbit/s
        cards[2].send(frame(BROADCAST, bytes(986)))  # cannot hear the first, but waits: they share a hearer
        times_s: list[float] = []
        while len(times_s) < 2:
            await asyncio.sleep(0.002)
            if heard(cards[1]) is not None:
                times_s.append(loop.time() - began_s)
        assert times_s[0] >= 0.08
        assert times_s[1] >= 0.16

    in_air(3, work, shared_bps=100_000)


def test_the_frames_of_a_link_follow_each_other_at_its_rate() -> None:
    async def work(air: Air, cards: list[socket.socket]) -> None:
        air.connect(0, 1, in_range=True)
        air.connect(2, 1, in_range=True)
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        for sender in (0, 0, 2):
            cards[sender].send(frame(BROADCAST, bytes([sender]) + bytes(985)))  # 80 ms at 100 kbit/s
        arrived: list[tuple[int, float]] = []
        while len(arrived) < 3:
            await asyncio.sleep(0.002)
            if (data := heard(cards[1])) is not None:
                arrived.append((data[14], loop.time() - began_s))
        assert sorted(sender for sender, _ in arrived[:2]) == [0, 2]  # links do not wait for each other
        assert arrived[2][0] == 0
        assert arrived[2][1] >= 0.16

    in_air(3, work, rate_bps=100_000)


def test_a_deaf_machine_is_heard_all_the_same() -> None:
    async def work(air: Air, cards: list[socket.socket]) -> None:
        air.connect(0, 1, in_range=True)
        air.deafen(1, 0, deaf=True)
        cards[0].send(frame(BROADCAST))
        cards[1].send(frame(BROADCAST))
        await asyncio.sleep(0.05)
        assert [heard(card) for card in cards] == [frame(BROADCAST), None]
        air.deafen(1, 0, deaf=False)
        cards[0].send(frame(BROADCAST))
        await asyncio.sleep(0.05)
        assert heard(cards[1]) == frame(BROADCAST)

    in_air(2, work)


def test_links_may_work_in_one_direction() -> None:
    async def work(air: Air, cards: list[socket.socket]) -> None:
        air.listen([[1], []])
        cards[0].send(frame(BROADCAST))
        cards[1].send(frame(BROADCAST))
        await asyncio.sleep(0.05)
        assert [heard(card) for card in cards] == [None, frame(BROADCAST)]

    in_air(2, work)


def test_a_datagram_loses_its_checksum_and_nothing_else() -> None:
    header = bytes(12) + b"\x08\x00" + b"\x45" + bytes(8) + b"\x11" + bytes(10)
    datagram = header + b"\1\2\3\4\0\x0d" + b"\xab\xcd" + b"hello"
    assert without_checksum(datagram) == header + b"\1\2\3\4\0\x0d" + b"\0\0" + b"hello"
    assert without_checksum(frame(BROADCAST)) == frame(BROADCAST)


def test_incidents_strike_the_frames_of_their_machine() -> None:
    disturbances = Disturbances(Random(1))
    assert disturbances.leaves(3)
    full = Incident(what="overflow", node=3, from_s=1.0, until_s=2.0, amount=1.0)
    late = Incident(what="delay", node=4, from_s=1.0, until_s=2.0, amount=0.5)
    doubled = Incident(what="duplicate", node=4, from_s=1.0, until_s=2.0, amount=1.0)
    broken = Incident(what="corrupt", node=5, from_s=1.0, until_s=2.0, amount=1.0)
    for incident in (full, late, doubled, broken):
        disturbances.begin(incident)
    assert not disturbances.leaves(3)
    first_s, second_s = disturbances.arrivals(4)
    assert first_s == 0.5
    assert 0.5 < second_s < 0.6
    assert disturbances.arrivals(5) == []
    assert not disturbances.strikes(0)
    assert disturbances.count == 3
    for incident in (full, late, doubled, broken):
        disturbances.end(incident)
    assert not any(map(disturbances.strikes, range(6)))
