"""Identities, certificates, revocations: what the authority said is believed, and nothing else."""

from pathlib import Path

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from hypothesis import given
from hypothesis import strategies as st

from roamcast.errors import ConfigurationError
from roamcast.live import credentials as credentials_module
from roamcast.live.authority import Authority, new_authority
from roamcast.live.codec import DropReason
from roamcast.live.credentials import Credentials
from roamcast.live.identity import (
    Certificate,
    Identity,
    Statement,
    address_of,
    new_identity,
    own_certificate,
    read_certificate,
    read_revocation,
)
from roamcast.live.keys import new_ring
from roamcast.live.sealing import Sealer

NOW_S = 1_800_000_000


def member(authority: Authority, identity: Identity | None = None, days: int = 30) -> tuple[Authority, Identity]:
    """A node that the authority has certified."""
    identity = identity or new_identity()
    certificate = Certificate(authority.network, identity.public, "a", NOW_S, NOW_S + days * 86_400)
    authority, statement = authority.certified(certificate)
    return authority, msgspec.structs.replace(identity, certificate=statement)


def statement_of(identity: Identity) -> Statement:
    assert identity.certificate is not None
    return identity.certificate


def public(authority: Authority) -> Ed25519PublicKey:
    return Ed25519PublicKey.from_public_bytes(authority.public)


def test_the_address_follows_from_the_key() -> None:
    identity = new_identity()
    assert identity.address == address_of(identity.public)
    assert 0 <= identity.address < 2**31
    assert len({new_identity().address for _ in range(50)}) == 50


@given(st.data())
def test_any_change_of_a_certificate_is_found(data: st.DataObject) -> None:
    authority, identity = member(new_authority("rescue"))
    statement = statement_of(identity)
    body = bytearray(statement.body)
    body[data.draw(st.integers(0, len(body) - 1))] ^= data.draw(st.integers(1, 255))
    assert read_certificate(public(authority), statement) is not None
    assert read_certificate(public(authority), Statement(bytes(body), statement.signature)) is None
    assert read_certificate(public(new_authority("rescue")), statement) is None


def test_a_certificate_is_no_revocation_and_the_other_way_round() -> None:
    authority, identity = member(new_authority("rescue"))
    authority, told = authority.revoked(str(identity.address), NOW_S)
    assert read_revocation(public(authority), statement_of(identity)) is None
    assert read_certificate(public(authority), told[0]) is None
    assert read_revocation(public(authority), told[0]) is not None


def test_no_two_keys_with_the_same_address_are_certified() -> None:
    authority, identity = member(new_authority("rescue"))
    squatter = msgspec.structs.replace(authority.issued[0], public=bytes(32))
    taken = msgspec.structs.replace(authority, issued=(squatter,))
    with pytest.raises(ConfigurationError, match="is taken by another key"):
        member(taken, identity)
    assert len(member(authority, identity, days=60)[0].issued) == 1, "a renewal replaces"


def test_a_revoked_node_is_not_certified_again() -> None:
    authority, identity = member(new_authority("rescue"))
    authority, _ = authority.revoked(str(identity.address), NOW_S)
    with pytest.raises(ConfigurationError, match="is revoked"):
        member(authority, identity)
    with pytest.raises(ConfigurationError, match="'zoe' names 0 nodes"):
        authority.revoked("zoe", NOW_S)


def test_credentials_expire_and_are_revoked_for_good() -> None:
    authority, identity = member(new_authority("rescue"))
    known = Credentials("rescue", authority.public)
    assert known.certificate(identity.address, NOW_S) is DropReason.UNKNOWN_SENDER
    assert known.add_certificate(statement_of(identity), NOW_S)
    assert not known.add_certificate(statement_of(identity), NOW_S), "known already"
    assert isinstance(known.certificate(identity.address, NOW_S), Certificate)
    assert known.certificate(identity.address, NOW_S + 31 * 86_400) is DropReason.EXPIRED
    assert known.certificate(identity.address, NOW_S - 86_400) is DropReason.EXPIRED, "not valid yet"
    authority, told = authority.revoked(str(identity.address), NOW_S)
    assert known.add_revocation(told[0], NOW_S)
    assert not known.add_revocation(told[0], NOW_S)
    assert known.certificate(identity.address, NOW_S) is DropReason.REVOKED
    assert not known.add_certificate(statement_of(identity), NOW_S), "it does not come back"
    after = Credentials("rescue", authority.public)
    after.recall(known.remembered(), NOW_S)
    assert after.certificate(identity.address, NOW_S) is DropReason.REVOKED
    assert after.digest == known.digest != 0
    known.expire(NOW_S + 31 * 86_400)
    assert (len(known), known.digest) == (0, 0)
    after.recall(b"\xff nonsense", NOW_S)


def test_statements_of_another_authority_or_network_are_not_kept() -> None:
    authority, _ = member(new_authority("rescue"))
    _, stranger = member(new_authority("rescue"))
    _, elsewhere = member(msgspec.structs.replace(authority, network="elsewhere"))
    known = Credentials("rescue", authority.public)
    assert not known.add_certificate(statement_of(stranger), NOW_S)
    assert not known.add_certificate(statement_of(elsewhere), NOW_S)
    assert not known.add_certificate(statement_of(member(authority)[1]), NOW_S + 40 * 86_400), "expired"
    assert len(known) == 0


def test_a_directory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(credentials_module, "CERTIFICATES_MAX", 5)
    monkeypatch.setattr(credentials_module, "REVOCATIONS_MAX", 5)
    authority = new_authority("rescue")
    known = Credentials("rescue", authority.public)
    for _ in range(9):
        authority, identity = member(authority)
        known.add_certificate(statement_of(identity), NOW_S)
    assert len(known) == 5
    for issued in authority.issued:
        authority, told = authority.revoked(str(issued.address), NOW_S)
        for statement in told:
            known.add_revocation(statement, NOW_S)
    assert len(known) == 5


def signed_sealer(authority: Authority, identity: Identity, known: Credentials, life: int = 1) -> Sealer:
    ring = msgspec.structs.replace(RING, authority=authority.public)
    return Sealer(ring, identity.address, life, lambda: life + 1, lambda: float(NOW_S), identity, known)


RING = new_ring("rescue", 0.0)


def test_a_member_cannot_send_in_the_name_of_another() -> None:
    authority, alice = member(new_authority("rescue"))
    authority, mallory = member(authority)
    authority, bob = member(authority)
    known = Credentials("rescue", authority.public)
    for identity in (alice, mallory):
        known.add_certificate(statement_of(identity), NOW_S)
    receiver = signed_sealer(authority, bob, known)
    honest = signed_sealer(authority, alice, known)
    forger = signed_sealer(authority, mallory, known, life=2**32 - 1)
    forger._address = alice.address
    forger.load(msgspec.structs.replace(RING, authority=authority.public))
    assert receiver.open(honest.seal(b"one")) == (alice.address, b"one")
    assert receiver.open(forger.seal(b"two")) is DropReason.FORGED
    assert receiver.open(honest.seal(b"three")) == (alice.address, b"three"), "the forger has used up nothing"
    unknown = signed_sealer(authority, bob, known)
    assert receiver.open(unknown.seal(b"four")) is DropReason.UNKNOWN_SENDER
    shared = Sealer(RING, alice.address, 1, lambda: 2, lambda: float(NOW_S))
    assert receiver.open(shared.seal(b"five")) is DropReason.FOREIGN_VERSION, "no way back to unsigned datagrams"
    shared._version = 2
    shared.load(RING)
    assert receiver.open(shared.seal(b"six")) is DropReason.UNSIGNED
    authority, told = authority.revoked(str(alice.address), NOW_S)
    known.add_revocation(told[0], NOW_S)
    assert receiver.open(honest.seal(b"seven")) is DropReason.REVOKED


def test_a_node_checks_its_own_certificate() -> None:
    authority, identity = member(new_authority("rescue"))
    assert own_certificate(identity, authority.public, "rescue", NOW_S).address == identity.address
    for wrong, text in [
        (new_identity(), "has no certificate"),
        (msgspec.structs.replace(new_identity(), certificate=identity.certificate), "is of another key"),
    ]:
        with pytest.raises(ConfigurationError, match=text):
            own_certificate(wrong, authority.public, "rescue", NOW_S)
    with pytest.raises(ConfigurationError, match="has expired"):
        own_certificate(identity, authority.public, "rescue", NOW_S + 31 * 86_400)
    with pytest.raises(ConfigurationError, match="not by the authority"):
        own_certificate(identity, new_authority("rescue").public, "rescue", NOW_S)


def test_too_many_rules_do_not_fit_a_certificate(tmp_path: Path) -> None:
    authority = new_authority("rescue")
    rules = tuple(f"{number}/" + "x" * 90 for number in range(12))
    with pytest.raises(ConfigurationError, match="allowed: at most 900"):
        authority.certified(Certificate("rescue", bytes(32), "a", NOW_S, NOW_S + 1, rules))
