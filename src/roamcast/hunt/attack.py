"""A network under attack by one of its own: a stranger that sends well-formed nonsense, then falls silent.

Four nodes in a row run a protocol. A stranger that hears two of them sends random messages. Where nodes have
identities, it sends in its own name and about itself only, as hosts drop everything else; otherwise in the name of
addresses that it makes up, itself and the nodes among them. Nothing may raise, and the traffic that it causes is
bounded. Once it has been silent for the time that the protocol states, every event is delivered again.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from roamcast.hunt.nonsense import Nonsense
from roamcast.interests import Intervals
from roamcast.protocols.api import Protocol, Site
from roamcast.protocols.catalogue import protocol_class
from roamcast.protocols.contents import Contents
from roamcast.seeds import derive
from roamcast.testing import TinyNet, line

NODES = 4
STRANGER = 9
SETTLE_S = 30.0  # before the attack
EVENTS = 20


class Attack(msgspec.Struct, frozen=True):
    protocol: str
    messages: int  # that the stranger sends
    seed: int = 1
    parameters: dict[str, Any] = {}
    interval_s: float = 0.01  # between two of them
    heal_s: float = 60.0  # silence before the events
    identified: bool = False  # nodes have identities: the stranger sends in its own name only


class AttackOutcome(msgspec.Struct, frozen=True):
    delivered: int  # of the events after the attack
    expected: int
    frames_per_message: float  # that the nodes sent for each message of the stranger's


def attack(plan: Attack) -> AttackOutcome:
    """Runs the attack; an exception of the protocol's comes out, with the message that caused it."""
    net = _network(plan.protocol, plan.parameters, plan.seed)
    net.subscribe(NODES - 1, Intervals.of((0, 100)))
    net.run(SETTLE_S)
    random = derive(plan.seed, "stranger")
    addresses = [*range(NODES), STRANGER, STRANGER + 1]
    nonsense = Nonsense(protocol_class(plan.protocol).messages, random, addresses, [STRANGER, STRANGER + 1])
    contents = Contents(protocol_class(plan.protocol).messages)
    before = net.frames.total()
    for _ in range(plan.messages):
        message = nonsense.message()
        victim = random.choice([1, NODES - 1])
        sender = STRANGER if plan.identified else random.choice([STRANGER, STRANGER, STRANGER + 1, victim - 1])
        if plan.identified and any(getattr(each, each.signed_by) != STRANGER for each in contents.records(message)):
            continue  # a record that it cannot sign
        try:
            net.host(victim).arrives(sender, message)
            net.run(plan.interval_s)
            net.records.clear()
        except Exception as error:
            error.add_note(f"after {message!r} from {sender} to {victim}; {plan!r}")
            raise
    caused = net.frames.total() - before
    net.run(plan.heal_s)
    already = len(net.contents(NODES - 1))
    for number in range(EVENTS):
        net.publish(0, number)
        net.run(0.5)
    net.run(10.0)
    delivered = len(set(net.contents(NODES - 1)[already:]) & set(range(EVENTS)))
    return AttackOutcome(delivered, EVENTS, caused / max(1, plan.messages))


def _network(protocol: str, parameters: Mapping[str, Any], seed: int) -> TinyNet[Protocol]:
    return TinyNet(
        line(NODES),
        protocol,
        parameters,
        seed=seed,
        site=Site(600.0, 200.0, 150.0),
        positions_m={node: (50.0 + 120.0 * node, 100.0) for node in range(NODES)},
        oracle=True,
        language="intervals",
    )
