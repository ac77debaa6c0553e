"""The service as a protocol's author sees it."""

import pytest

from roamcast.errors import ConfigurationError
from roamcast.protocols.api import Host
from roamcast.protocols.routing import NS2, Aodv, AodvParameters, ShortestPath, Unicast, unicast
from roamcast.testing import Courier, TinyNet, line
from roamcast.testing.courier import CourierParameters


@pytest.mark.parametrize("name", ["aodv", "oracle"])
def test_both_services_keep_the_same_promises(name: str) -> None:
    net = TinyNet(line(4), Courier.maker(unicast=name), nodes=6, oracle=True)
    sender = net.node(0)
    sender.send(3, "over three hops")
    sender.send(0, "to myself")
    sender.send(5, "to nobody")
    assert (sender.received, sender.returned) == ([], [])  # the owner is never called from inside send
    net.run(40.0)
    assert net.node(3).received == [(0, "over three hops", 3)]
    assert sender.received == [(0, "to myself", 0)]
    assert sender.returned == [(5, "to nobody")]


def test_the_owner_may_send_again_what_came_back() -> None:
    class Stubborn(Courier):
        def on_unreachable(self, destination: int, payload: object) -> None:
            self.returned.append((destination, "again"))
            if len(self.returned) < 3:
                self.send(destination, "again")

    def make(host: Host) -> Stubborn:
        return Stubborn(host, CourierParameters(unicast="oracle"))

    net = TinyNet([], make, nodes=2, oracle=True)
    net.node(0).send(1, "hello")
    net.run(1.0)
    assert len(net.node(0).returned) == 3


def test_services_by_name() -> None:
    net = TinyNet(line(2), Courier.maker(), oracle=True)
    owner = net.node(0)

    def build(name: str, parameters: AodvParameters | None = None) -> Unicast:
        return unicast(
            name,
            net.host(0),
            owner.inputs,
            arrived=owner.on_arrival,
            unreachable=owner.on_unreachable,
            parameters=parameters,
        )

    assert isinstance(build("aodv", NS2), Aodv)
    assert isinstance(build("oracle"), ShortestPath)
    with pytest.raises(ConfigurationError, match="'ospf' is unknown; allowed: aodv, oracle"):
        build("ospf")


def test_the_oracle_needs_a_host_that_has_one() -> None:
    with pytest.raises(ConfigurationError, match="oracle"):
        TinyNet(line(2), Courier.maker(unicast="oracle"))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("ttl_start_hops", 0),
        ("net_diameter_hops", 300),
        ("request_retries", -1),
        ("buffer_packets", 0),
        ("active_route_timeout_s", 0.0),
        ("active_route_timeout_s", float("nan")),
        ("broadcast_jitter_s", -0.1),
        ("delete_period_s", 1.0),
    ],
)
def test_nonsense_parameters_are_refused_by_name(field: str, value: float) -> None:
    with pytest.raises(ValueError, match=rf"^{field} = "):
        AodvParameters(**{field: value})  # type: ignore[arg-type]
