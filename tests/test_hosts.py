"""One contract, three hosts: every message of every protocol, as large as it gets, arrives whole through each."""

import asyncio
from typing import Any, ClassVar

import msgspec
import pytest

from roamcast.events import Event
from roamcast.fields import ADDRESS_MAX
from roamcast.interests import Interest, Intervals, Topics, XPaths, parse_interest
from roamcast.live.codec import Codec
from roamcast.live.endpoints import open_socket
from roamcast.live.host import Clock, UdpHost
from roamcast.live.journal import Journal
from roamcast.protocols.api import NOBODY, Host, Message, Parameters, Protocol, Timer
from roamcast.protocols.catalogue import PROTOCOLS
from roamcast.seeds import Random
from roamcast.testing import TinyNet
from roamcast.world.scenario import Run, Scenario
from roamcast.world.simulator import Simulation

ROWS = 40
"""Entries of every table: what a node of a network with hundreds of nodes might send."""

DEPTH = 6
"""Tables within tables below this depth stay empty: some messages may contain messages."""

LARGE: dict[type, Any] = {
    Intervals: Intervals.of(*((3 * low, 3 * low + 1) for low in range(ROWS))),
    Topics: parse_interest("topics", " ".join(f"area/{row}/alarms/**" for row in range(ROWS))),
    XPaths: parse_interest("content", "/PGMFORUM[hole = 7]"),
    Event: Event(ADDRESS_MAX << 32 | 7, 1.5e9, "fire/north", bytes(3000), 5),
}


ALTERNATIVES = 3
"""Of the types that a field may have, such as the languages of interests, examples take this many in turn."""


def largest(kind: msgspec.inspect.Type, alternative: int, depth: int = 0) -> Any:
    """A value of the type with every number at its upper bound and every table full, the inner ones less so."""
    match kind:
        case msgspec.inspect.StructType(cls=cls):
            if cls in LARGE:
                return LARGE[cls]
            return cls(*(largest(field.type, alternative, depth + 1) for field in kind.fields))
        case msgspec.inspect.IntType():
            return kind.le if kind.le is not None else 200 if kind.lt is None else kind.lt - 1
        case msgspec.inspect.FloatType():
            return 200.5 if kind.le is None else float(kind.le)
        case msgspec.inspect.BoolType():
            return True
        case msgspec.inspect.StrType():
            return "topology/of/some/length"
        case msgspec.inspect.BytesType():
            return bytes(min(kind.max_length or 64, 200))
        case msgspec.inspect.LiteralType():
            return kind.values[-1]
        case msgspec.inspect.NoneType():
            return None
        case msgspec.inspect.UnionType():
            some = [each for each in kind.types if not isinstance(each, msgspec.inspect.NoneType)]
            if depth > DEPTH and len(some) < len(kind.types):
                return None
            return largest(some[alternative % len(some)], alternative, depth)
        case msgspec.inspect.TupleType():
            return tuple(largest(each, alternative, depth + 1) for each in kind.item_types)
        case msgspec.inspect.VarTupleType():
            rows = 0 if depth > DEPTH else min(ROWS if depth < 2 else 3, kind.max_length or ROWS)
            return tuple(largest(kind.item_type, alternative, depth + 1) for _ in range(rows))
        case msgspec.inspect.EnumType():
            return list(kind.cls)[-1]
    raise AssertionError(f"no value for {kind}")


def examples(messages: Any) -> list[Message]:
    """Large messages of each type, and of each payload of those that carry several."""
    union = msgspec.inspect.type_info(messages)
    found: dict[bytes, Message] = {}
    for kind in union.types if isinstance(union, msgspec.inspect.UnionType) else (union,):
        assert isinstance(kind, msgspec.inspect.StructType)
        payloads = [field.type for field in kind.fields if field.name == "payload"]
        some = payloads[0].types if payloads and isinstance(payloads[0], msgspec.inspect.UnionType) else (None,)
        for payload in some:
            make: Any = kind.cls
            fields = [payload if payload and field.name == "payload" else field.type for field in kind.fields]
            for alternative in range(ALTERNATIVES):
                message = make(*(largest(field, alternative, 1) for field in fields))
                found[msgspec.msgpack.encode(message)] = message
    return list(found.values())


class Carrier(Protocol):
    """Sends what it is told to send, and keeps what arrives."""

    name: ClassVar[str] = "carrier"
    summary: ClassVar[str] = "for tests"
    Parameters: ClassVar[type[Parameters]] = Parameters
    messages: ClassVar[Any] = None

    def __init__(self, host: Host, parameters: object = None) -> None:
        super().__init__(host)
        self.arrived: list[tuple[int, Message]] = []
        self.failed: list[Message] = []

    def start(self) -> None: ...
    def subscribe(self, interest: Interest) -> None: ...
    def unsubscribe(self, interest: Interest) -> None: ...
    def publish(self, event: Event) -> None: ...
    def on_timer(self, timer: Timer) -> None: ...

    def on_message(self, sender: int, message: Message) -> None:
        self.arrived.append((sender, message))

    def on_send_failed(self, neighbour: int, message: Message) -> None:
        self.failed.append(message)


def carrier_of(messages: Any) -> type[Carrier]:
    return type("CarrierOf", (Carrier,), {"messages": messages})


def through_tinynet(kind: type[Carrier], sent: list[Message]) -> list[Message]:
    net: TinyNet[Carrier] = TinyNet([(0, 1)], kind)
    for message in sent:
        net.host(0).broadcast(message)
        net.host(0).send(1, message)
        net.run(1.0)
    assert net.host(0).backlog() == 0
    assert net.node(0).failed == []
    return [message for _, message in net.node(1).arrived]


def through_simulator(kind: type[Carrier], sent: list[Message], monkeypatch: pytest.MonkeyPatch) -> list[Message]:
    monkeypatch.setattr(Carrier, "messages", kind.messages)
    run = Run(Scenario(nodes=2, area_m=(100.0, 100.0), duration_s=10.0 * len(sent) + 10), f"{__name__}:Carrier", {}, 1)
    simulation = Simulation(run, actions=[], faults=[])
    carriers = [protocol for protocol in simulation.protocols if isinstance(protocol, Carrier)]
    for number, message in enumerate(sent):
        for receiver in (NOBODY, 1):
            if receiver == NOBODY:
                carriers[0].host.broadcast(message)
            else:
                carriers[0].host.send(1, message)
        simulation.run_until(10.0 * (number + 1))
        assert carriers[0].host.backlog() == 0
    assert carriers[0].failed == []
    return [message for _, message in carriers[1].arrived]


async def through_udp(kind: type[Carrier], sent: list[Message]) -> list[Message]:
    codec = Codec("test", "carrier", kind.messages)
    sockets = [open_socket(("127.0.0.1", 0), None) for _ in range(2)]
    carriers: list[Carrier] = []
    for address, sock in enumerate(sockets):
        clock = Clock()
        journal = Journal(address, clock.now)
        other = sockets[1 - address].getsockname()
        host = UdpHost(
            address,
            codec,
            journal,
            [other],
            life=1,
            clock=clock,
            random=Random(1),
            on_delivery=lambda *_: None,
            on_failure=lambda failure: pytest.fail(failure.error),
        )
        host.protocol = kind(host)
        carriers.append(host.protocol)
        host.listen(sock)
    for number, message in enumerate(sent):
        carriers[0].host.broadcast(message)
        carriers[0].host.send(1, message)
        async with asyncio.timeout(10):
            while len(carriers[1].arrived) < 2 * (number + 1) or carriers[0].host.backlog():
                await asyncio.sleep(0.001)
    for carrier in carriers:
        assert isinstance(carrier.host, UdpHost)
        carrier.host.close()
    assert carriers[0].failed == []
    return [message for _, message in carriers[1].arrived]


@pytest.mark.parametrize("name", PROTOCOLS)
def test_every_message_arrives_through_every_host(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sent = examples(PROTOCOLS[name].messages)
    assert any(len(msgspec.msgpack.encode(message)) > 1376 for message in sent), "some need several frames"
    expected = [message for message in sent for _ in range(2)]
    kind = carrier_of(PROTOCOLS[name].messages)
    assert through_tinynet(kind, sent) == expected
    assert through_simulator(kind, sent, monkeypatch) == expected
    assert asyncio.run(through_udp(kind, sent)) == expected
