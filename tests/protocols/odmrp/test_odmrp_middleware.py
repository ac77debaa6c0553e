"""Sections 1 and 5: the interface between mesh and middleware is generic. Here is one that knows nothing but areas."""

from typing import Any

import msgspec

from roamcast.events import Event
from roamcast.interests import Interest
from roamcast.protocols.api import Host
from roamcast.protocols.components import ComposedProtocol, Inputs
from roamcast.protocols.odmrp.mesh import Mesh
from roamcast.protocols.odmrp.messages import Data, JoinRequest, MemberEntry, Messages
from roamcast.protocols.odmrp.middleware import Middleware
from roamcast.protocols.odmrp.parameters import OdmrpParameters
from roamcast.testing import TinyNet

Area = tuple[float, float]
"""From west to east, in metres."""


class Regions(Middleware):
    """Events are for the nodes in an area: a request asks for an area, a member attaches where it is."""

    def __init__(self, host: Host, at_m: float | None) -> None:
        super().__init__(host)
        self.address = host.address
        self.at_m = at_m
        self.members: list[int] = []
        self.got: list[Any] = []
        self.asked_to_admit = 0

    def declare(self, inputs: Inputs) -> None:
        """It gets everything through the mesh."""

    def answer(self, context: bytes, known_version: int | None) -> MemberEntry | None:
        west_m, east_m = msgspec.msgpack.decode(context, type=Area)
        if self.at_m is None or not west_m <= self.at_m < east_m:
            return None
        return MemberEntry(self.address, 1, msgspec.msgpack.encode(self.at_m))

    def read(self, context: bytes) -> Any:
        return msgspec.msgpack.decode(context, type=float)

    def admits(self, kept: Any, data: Data) -> bool:
        self.asked_to_admit += 1
        return bool(kept < float(data.event.content))

    def on_members(self, members: tuple[MemberEntry, ...], lifetime_s: float | None) -> None:
        self.members += [member.address for member in members]

    def on_data(self, data: Data) -> None:
        self.got.append(data.event.content)


class Geocast(ComposedProtocol):
    messages = Messages

    def __init__(self, host: Host, at_m: float | None) -> None:
        super().__init__(host)
        self.regions = Regions(host, at_m)
        self.mesh = Mesh(host, OdmrpParameters(jitter_s=0.0, table_pause_s=0.01), self.regions)
        self.compose(self.mesh)

    def start(self) -> None:
        """A mesh begins with its first request."""

    def subscribe(self, interest: Interest) -> None:
        raise AssertionError("there are no subscriptions")

    def unsubscribe(self, interest: Interest) -> None:
        raise AssertionError("there are no subscriptions")

    def publish(self, event: Event) -> None:
        self.mesh.see(event.id)
        self.host.broadcast(Data(self.host.address, (0,), 1, event))


AT_M = {0: None, 1: None, 2: 100.0, 3: None, 4: 900.0}


def network() -> TinyNet[Geocast]:
    return TinyNet([(0, 1), (1, 2), (1, 3), (3, 4)], lambda host: Geocast(host, AT_M[host.address]))


def ask(net: TinyNet[Geocast], area: Area) -> None:
    request = JoinRequest(0, 1, 1, hops=1, context=msgspec.msgpack.encode(area), listing=0, channels=())
    net.host(0).broadcast(request)
    net.run(1.0)


def test_a_request_is_answered_by_whoever_is_in_the_area() -> None:
    net = network()
    ask(net, (0.0, 500.0))
    assert net.node(0).regions.members == [2]
    assert list(net.node(1).mesh.downstream[0]) == [2]
    assert 0 not in net.node(3).mesh.downstream


def test_relays_forward_what_the_middleware_admits() -> None:
    net = network()
    ask(net, (0.0, 1000.0))
    assert sorted(net.node(0).regions.members) == [2, 4]
    net.publish(0, 500.0)  # for all west of 500 m: node 1 forwards for node 2, node 3 for nobody
    net.run(1.0)
    assert net.node(2).regions.got == [500.0]
    assert net.node(4).regions.got == []
    net.publish(0, 950.0)
    net.run(1.0)
    assert net.node(4).regions.got == [950.0]
    assert net.node(3).regions.asked_to_admit == 2


def test_a_node_whose_context_changes_joins_at_once() -> None:
    net = network()
    ask(net, (0.0, 500.0))
    net.node(4).regions.at_m = 300.0
    net.node(4).mesh.join_again()
    net.run(1.0)
    assert net.node(0).regions.members == [2, 4]
