"""Relocation and modulators that carry state: windows stay exact, and the lighter variants lose only what they may."""

import pytest

from roamcast.interests import Intervals
from roamcast.protocols.api import Protocol
from roamcast.protocols.overlays import Overlays
from roamcast.seeds import derive
from roamcast.testing import TinyNet

PRODUCER, BROKERS, CONSUMER = 0, (1, 2, 3), 4
LINKS = [(0, 1), (1, 2), (1, 3), (2, 3), (1, 4), (2, 4), (3, 4)]
WINDOW = "filter(content < 50) | aggregate(sum, content, 3)"
RELOCATION = [
    "HandoffRequest",
    "HandoffAck",
    "Detour",
    "DetourAck",
    "HandoffState",
    "HandoffDone",
    "Forward",
    "ClientDelivery",
]


def network(**parameters: str) -> TinyNet[Protocol]:
    settings = {"unicast": "oracle", "brokers": "1-3", "adaptors": "", "bootstrap_s": 2.0, "bootstrap_period_s": 0.3}
    net: TinyNet[Protocol] = TinyNet(
        LINKS, "overlays", settings | {"discovery_period_s": 1000.0, "retry_s": 0.5} | parameters, oracle=True
    )
    net.subscribe(CONSUMER, Intervals.of((0, 60)))
    net.node(PRODUCER).advertise(Intervals.of((0, 60)))
    net.run(4.0)
    return net


def relocate(net: TinyNet[Protocol], destination: int, form: str) -> None:
    for address in BROKERS:
        node = net.node(address)
        assert isinstance(node, Overlays)
        assert node.broker is not None
        if CONSUMER in node.broker.clients.table:
            node.broker.relocation.migrate(CONSUMER, destination, form)  # type: ignore[arg-type]


@pytest.mark.parametrize("drops", [0, 6])
def test_a_modulator_that_moves_computes_what_it_would_have_computed_in_one_place(drops: int) -> None:
    """State consistent: windows that are open when the modulator moves are closed at the new broker, exactly."""
    for seed in range(80):
        random = derive(seed, "window")
        net = network(modulator=WINDOW)
        for _ in range(drops):
            net.drop(random.choice(RELOCATION), count=1)
        contents: list[int] = []
        for _ in range(16):
            net.run(random.choice((0.0, 0.001, 0.003, 0.1)))
            if random.random() < 0.4:
                relocate(net, random.choice(BROKERS), random.choice(("horizontal", "upstream", "downstream")))
            else:
                contents.append(random.randrange(60))
                net.publish(PRODUCER, contents[-1])
        net.run(20.0)
        kept = [content for content in contents if content < 50]
        sums = [sum(kept[at : at + 3]) for at in range(0, len(kept) - 2, 3)]
        assert net.contents(CONSUMER) == sums, f"seed {seed}"


def strictly_rising(contents: list[int]) -> bool:
    return contents == sorted(set(contents))


@pytest.mark.parametrize(
    ("relocation", "losses"),
    [("strict", range(1)), ("fresh-modulator", range(1)), ("unbuffered", range(1, 200)), ("loose", range(1, 200))],
)
def test_the_lighter_variants_may_lose_but_never_repeat_or_reorder(relocation: str, losses: range) -> None:
    lost = 0
    for seed in range(40):
        random = derive(seed, "light")
        net = network(relocation=relocation)
        for content in range(20):
            if random.random() < 0.2:
                net.drop("Forward", count=1)
            net.publish(PRODUCER, content)
            if random.random() < 0.5:
                relocate(net, random.choice(BROKERS), "horizontal")
            net.run(0.002)
        net.run(20.0)
        got = [int(content) for content in net.contents(CONSUMER)]
        assert strictly_rising(got)
        lost += 20 - len(got)
    assert lost in losses
