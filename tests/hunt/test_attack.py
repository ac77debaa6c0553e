"""Whatever well-formed nonsense a stranger sends: nothing raises, traffic is bounded, and networks recover.

`make fuzz` sends far more of it.
"""

import os
from typing import Any

import msgspec
import pytest

from roamcast.hunt import Attack, Nonsense, attack
from roamcast.protocols.catalogue import PROTOCOLS
from roamcast.seeds import Random

MESSAGES = int(os.environ.get("ROAMCAST_NONSENSE", "400"))
PARAMETERS: dict[str, dict[str, Any]] = {"overlays": {"brokers": "1-2"}}
DEPLOYABLE = [name for name, protocol in PROTOCOLS.items() if not protocol.is_limit]


@pytest.mark.parametrize("seed", range(1, 4))
@pytest.mark.parametrize("name", DEPLOYABLE)
def test_a_network_survives_nonsense_and_recovers(name: str, seed: int) -> None:
    outcome = attack(Attack(name, MESSAGES, seed, PARAMETERS.get(name, {})))
    assert outcome.frames_per_message < 50
    assert outcome.delivered == outcome.expected


@pytest.mark.parametrize("name", DEPLOYABLE)
def test_a_network_with_identities_recovers_from_a_member(name: str) -> None:
    outcome = attack(Attack(name, MESSAGES, 1, PARAMETERS.get(name, {}), identified=True))
    assert outcome.frames_per_message < 50
    assert outcome.delivered == outcome.expected


@pytest.mark.parametrize("name", PROTOCOLS)
def test_nonsense_is_of_every_kind_and_passes_the_decoder(name: str) -> None:
    union: Any = PROTOCOLS[name].messages
    nonsense = Nonsense(union, Random(7), [0, 1, 9], [9])
    decoder = msgspec.msgpack.Decoder(union)
    kinds = set()
    for _ in range(500):
        message = nonsense.message()
        assert decoder.decode(msgspec.msgpack.encode(message)) == message
        kinds.add(type(message))
    info = msgspec.inspect.type_info(union)
    assert len(kinds) == (len(info.types) if isinstance(info, msgspec.inspect.UnionType) else 1)
