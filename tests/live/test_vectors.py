"""The test vectors of docs/security.md."""

import re
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from roamcast.events import Event, event_id
from roamcast.interests import parse_interest
from roamcast.live.credentials import Credentials
from roamcast.live.identity import Certificate, Identity, Revocation, certify, revoke
from roamcast.live.keys import Key, KeyRing
from roamcast.live.sealing import Sealer
from roamcast.live.signing import Signer, Verifier
from roamcast.protocols.waymark.messages import Want

DOCUMENT = (Path(__file__).parents[2] / "docs" / "security.md").read_text(encoding="utf-8")
BLOCKS = [block.strip() for block in DOCUMENT.split("## Test vectors")[1].split("```")[1::2]]
AUTHORITY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
ALICE = Identity(bytes(range(32, 64)))
CERTIFICATE = Certificate("rescue", ALICE.public, "alice", 1_800_000_000, 1_900_000_000, ("fire/**",), None, True)
STATEMENT = certify(AUTHORITY, CERTIFICATE)
PUBLIC = AUTHORITY.public_key().public_bytes_raw()
NOW_S = 1_800_000_000.0


def values(block: str) -> list[str]:
    return re.findall(r"^\w+ +(\w+)$", block, re.MULTILINE)


def known() -> Credentials:
    credentials = Credentials("rescue", PUBLIC)
    assert credentials.add_certificate(STATEMENT, NOW_S)
    return credentials


def test_a_datagram_sealed_with_a_shared_key() -> None:
    vector = bytes.fromhex(BLOCKS[0])
    ring = KeyRing("rescue", (Key(1, bytes(range(32)), 0.0),))
    sender = Sealer(ring, 7, 9, lambda: 10, lambda: NOW_S)
    sender._instance = 0x1122334455667788
    sender.load(ring)
    assert sender.seal(b"fire") == vector
    assert Sealer(ring, 2, 1, lambda: 2, lambda: NOW_S).open(vector) == (7, b"fire")


def test_statements() -> None:
    revocation = revoke(AUTHORITY, Revocation("rescue", ALICE.address, 1_900_000_000))
    assert values(BLOCKS[1]) == [
        ALICE.public.hex(),
        str(ALICE.address),
        STATEMENT.body.hex(),
        STATEMENT.signature.hex(),
        revocation.body.hex(),
        revocation.signature.hex(),
    ]


def test_a_signed_datagram() -> None:
    vector = bytes.fromhex(BLOCKS[2])
    ring = KeyRing("rescue", (Key(1, bytes(range(32)), 0.0),), PUBLIC)
    identity = Identity(ALICE.secret, STATEMENT)
    sender = Sealer(
        ring, ALICE.address, 9, next_life=lambda: 10, now=lambda: NOW_S, identity=identity, credentials=known()
    )
    sender._instance = 0x1122334455667788
    sender.load(ring)
    assert sender.seal(b"fire") == vector
    receiver = Sealer(ring, 2, 1, next_life=lambda: 2, now=lambda: NOW_S, credentials=known())
    assert receiver.open(vector) == (ALICE.address, b"fire")


def test_events_and_records() -> None:
    signer = Signer("rescue", Identity(ALICE.secret, STATEMENT), CERTIFICATE)
    event = Event(event_id(ALICE.address, 1), 1_800_000_000.5, "fire/north", b"smoke")
    published, modulated = signer.published(event), signer.outgoing(event)
    record = signer.outgoing(Want(ALICE.address, 1, 0, parse_interest("topics", "fire/**")))
    assert values(BLOCKS[3]) == [(each.signature or b"").hex() for each in (published, modulated, record)]
    verifier = Verifier("rescue", "topics", known())
    assert verifier.refusal(published, NOW_S) is None
    assert verifier.refusal(modulated, NOW_S) is None
    assert verifier.refused_record(record, NOW_S) is None
