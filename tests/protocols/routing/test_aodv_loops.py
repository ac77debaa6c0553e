"""Whatever happens to links and frames, at no instant do next hops form a cycle, and no packet vanishes uncounted.

Timeouts are short here, so that expiry, deletion, retries and repairs fall into the few seconds of a script.
"""

from collections.abc import Sequence
from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from roamcast.protocols.api import NOBODY
from roamcast.protocols.routing import Aodv, AodvParameters
from roamcast.testing import Courier, TinyNet

NODES = 4

QUICK = AodvParameters(
    net_diameter_hops=8,
    node_traversal_time_s=0.01,
    net_traversal_time_s=0.16,
    path_discovery_time_s=0.32,
    request_retries=1,
    ttl_threshold_hops=3,
    active_route_timeout_s=0.8,
    my_route_timeout_s=0.6,
    hello_interval_s=0.2,
    delete_period_s=2.5,
    blacklist_timeout_s=0.2,
    buffer_timeout_s=1.5,
    broadcast_jitter_s=0.004,
)


class Step(NamedTuple):
    kind: str
    a: int
    b: int
    wait_s: float


FAR = NODES - 1  # most notes go to one node at the end, so that the routes to it have a history

node = st.integers(0, NODES - 1)
waits = st.sampled_from([0.0, 0.0015, 0.02, 0.02, 0.1, 0.3])
sends = st.builds(Step, st.just("send"), node, st.sampled_from([FAR, FAR, FAR, *range(NODES)]), waits)
changes = st.builds(Step, st.sampled_from(["link", "unlink"]), st.one_of(node, st.just(FAR)), node, waits)
cuts = st.builds(Step, st.just("cut"), node, node, waits)
losses = st.builds(Step, st.sampled_from(["Rreq", "Rrep", "Rerr", "Rerr"]), node, node, waits)
scripts = st.lists(st.one_of(sends, sends, changes, changes, cuts, losses), min_size=20, max_size=60)
variants = st.fixed_dictionaries(
    {
        "hello": st.booleans(),
        "local_repair": st.booleans(),
        "gratuitous": st.booleans(),
        "destination_only": st.booleans(),
    }
)


def assert_no_loops(net: TinyNet[Courier]) -> None:
    """Follows the next hops from every node towards every destination."""
    tables = {}
    for address in net.addresses:
        service = net.node(address).unicast
        assert isinstance(service, Aodv)
        tables[address] = service.routes
    for destination in net.addresses:
        for start in net.addresses:
            at, path = start, [start]
            while at not in (destination, NOBODY):
                at = tables[at].next_hop(destination, net.now_s)
                assert at not in path, f"to {destination}: {[*path, at]}\n{net.transcript()}"
                path.append(at)


def perform(net: TinyNet[Courier], step: Step, number: int) -> int:
    """Does one step of a script; how many notes it sent. `b` picks among the nodes that a link can (not) be cut from.

    Cuts cause loops: a node that heard FAR no longer does, meets a node that may still route to FAR through it,
    and asks around.
    """
    if step.kind == "send":
        return send(net, step.a, step.b, number)
    if step.kind == "link":
        connect(net, step.a, step.b)
    elif step.kind == "unlink" and net.neighbours(step.a):
        net.unlink(step.a, pick(net.neighbours(step.a), step.b))
    elif step.kind == "cut" and net.neighbours(FAR):
        last = pick(net.neighbours(FAR), step.a)
        net.unlink(last, FAR)
        connect(net, last, step.b)
        return send(net, last, FAR, number)
    elif step.kind.startswith("R"):
        net.drop(step.kind, sender=step.a)
    return 0


def send(net: TinyNet[Courier], source: int, destination: int, number: int) -> int:
    net.node(source).send(destination, f"note {number}")
    return 1


def connect(net: TinyNet[Courier], a: int, choice: int) -> None:
    apart = [address for address in net.addresses if address != a and not net.linked(a, address) and address != FAR]
    if apart:
        net.link(a, pick(apart, choice))
    elif a == FAR or not net.linked(a, FAR):
        net.link(FAR, pick(range(NODES - 1), choice))


def pick(options: Sequence[int], choice: int) -> int:
    return options[choice % len(options)]


@settings(deadline=None, derandomize=True, max_examples=250)
@given(scripts, variants, st.integers(0, 3))
def test_never_a_cycle_and_never_a_silent_loss(script: list[Step], variant: dict[str, bool], seed: int) -> None:
    links = [(n, n + 1) for n in range(NODES - 1)]
    net = TinyNet(links, Courier.maker(replace(QUICK, **variant)), seed=seed)
    net.check(lambda: assert_no_loops(net))
    sent = 0
    for number, step in enumerate(script):
        sent += perform(net, step, number)
        net.run(step.wait_s)
    net.run(8.0)
    couriers = [net.node(address) for address in net.addresses]
    received = [text for courier in couriers for _, text, _ in courier.received]
    given_up = [record for record in net.records if record.kind == "dropped"]
    assert len(received) == len(set(received))
    assert len(received) + len(given_up) == sent, net.transcript()
    assert sum(len(courier.returned) for courier in couriers) <= len(given_up)
