"""A neighbour may say anything: nothing raises, nothing leaves the wire's ranges, and honest traffic goes on."""

from hypothesis import given, settings
from hypothesis import strategies as st

from roamcast.protocols.api import Message
from roamcast.protocols.routing import Aodv, AodvParameters
from roamcast.protocols.routing.messages import Hello, Rerr, Routed, Rrep, Rreq
from roamcast.testing import Courier, Note, TinyNet, line

edges32 = st.sampled_from([0, 1, 2, 3, 5, 2**31 - 1, 2**31, 2**32 - 2, 2**32 - 1])
addresses = st.one_of(st.integers(0, 4), st.sampled_from([5, 2**31 - 2, 2**31 - 1]))
hops = st.sampled_from([0, 1, 2, 35, 254, 255])
flags = st.booleans()
wild = st.one_of(
    st.builds(Rreq, hops, hops, edges32, addresses, st.none() | edges32, addresses, edges32, flags, flags),
    st.builds(Rrep, hops, addresses, edges32, addresses, edges32),
    st.builds(Rerr, st.lists(st.tuples(addresses, st.none() | edges32), max_size=6).map(tuple), flags),
    st.builds(Hello, edges32, edges32),
    st.builds(Routed, addresses, addresses, hops, hops, st.builds(Note, st.just("forged"))),
)
LIAR = 3  # on the line 0 - 1 - 2, heard by all


@settings(deadline=None, derandomize=True, max_examples=120)
@given(
    st.lists(st.tuples(wild, st.sampled_from([0.0, 0.01, 1.0]), st.none() | st.integers(0, 2)), max_size=25),
    st.booleans(),
)
def test_nothing_that_fits_the_wire_raises(lies: list[tuple[Message, float, int | None]], eager: bool) -> None:
    parameters = AodvParameters(hello=eager, local_repair=eager, gratuitous=eager)
    net = TinyNet([*line(3), (0, LIAR), (1, LIAR), (2, LIAR)], Courier.maker(parameters))
    for number, (lie, wait_s, victim) in enumerate(lies):
        if victim is None:
            net.host(LIAR).broadcast(lie)
        else:
            net.host(LIAR).send(victim, lie)
        net.node(0).send(2, f"note {number}")
        net.run(wait_s)
    for address in (0, 1, 2):
        net.unlink(LIAR, address) if net.linked(LIAR, address) else None
    net.run(200.0)  # what was learned from the liar ages away
    net.node(0).send(2, "honest")
    net.run(30.0)
    assert "honest" in [text for _, text, _ in net.node(2).received]


def test_objects_beyond_the_wire_do_not_raise_either() -> None:
    net = TinyNet(line(3), Courier.maker())
    for number in (-(2**70), -1, 2**32, 2**70):
        net.node(0).on_message(1, Rrep(-5, number, number, 0, -number))
        net.node(0).on_message(1, Rerr(((number, number), (2, number))))
        net.node(0).on_message(1, Hello(number, number))


def test_a_route_to_oneself_is_never_learned() -> None:
    net = TinyNet(line(3), Courier.maker())
    service = net.node(0).unicast
    assert isinstance(service, Aodv)
    net.node(0).on_message(1, Rrep(3, 0, 7, 5, 6000))
    net.node(0).on_message(1, Rreq(5, 3, 7, 2, None, 0, 7))
    assert service.routes.find(0, net.now_s) is None


def test_an_endless_lifetime_ends() -> None:
    net = TinyNet(line(3), Courier.maker())
    service = net.node(0).unicast
    assert isinstance(service, Aodv)
    net.node(0).on_message(1, Rrep(3, 9, 7, 0, 2**32 - 1))
    assert service.routes.usable(9, 49.0) is not None
    assert service.routes.usable(9, 51.0) is None


def test_a_packet_does_not_circle_for_ever() -> None:
    net = TinyNet(line(2), Courier.maker(AodvParameters(hops_max=20)))
    net.node(0).on_message(1, Rrep(3, 9, 7, 0, 6000))  # each is told that the other knows the way to 9
    net.node(1).on_message(0, Rrep(3, 9, 7, 1, 6000))
    net.node(0).send(9, "x")
    net.run(1.0)
    assert net.frames["Note"] == 20
    assert "drops: unicast-too-many-hops" in net.transcript("dropped")
