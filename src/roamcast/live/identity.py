"""Who a node is: an Ed25519 key, the address that follows from it, and the authority's word that it is a member.

A *statement* is bytes and the authority's signature over them. There are two: a certificate says that a public key is a
member until some time, and what it may publish, subscribe to and modulate; a revocation takes a membership back. The
signature covers a context, so that no statement can be taken for another, and the bytes as they were sent, so that no
encoding has to be canonical.

A node's address is the first 31 bits of the BLAKE2b hash of its public key. 31 bits are few enough to be found again by
trying keys; therefore the authority certifies no two keys with the same address (`authority.py`).
"""

from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Annotated, Final

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from msgspec import Meta

from roamcast.errors import ConfigurationError
from roamcast.fields import Address
from roamcast.live.secret_files import read_secret

PUBLIC_BYTES: Final = 32
SIGNATURE_BYTES: Final = 64
BODY_BYTES_MAX: Final = 900  # of a statement, so that it fits a datagram with all that goes with it
RULES_MAX: Final = 16  # patterns in a certificate
RULE_CHARACTERS_MAX: Final = 100
CLOCK_SKEW_S: Final = 300  # a certificate is valid this long before it was issued: clocks differ
TIME_MAX: Final = 2**40

Public = Annotated[bytes, Meta(min_length=PUBLIC_BYTES, max_length=PUBLIC_BYTES)]
SignatureBytes = Annotated[bytes, Meta(min_length=SIGNATURE_BYTES, max_length=SIGNATURE_BYTES)]
UnixTime = Annotated[int, Meta(ge=0, le=TIME_MAX)]
Rule = Annotated[str, Meta(max_length=RULE_CHARACTERS_MAX)]
Rules = Annotated[tuple[Rule, ...], Meta(max_length=RULES_MAX)]

_CERTIFICATE: Final = b"roamcast certificate 1\0"
_REVOCATION: Final = b"roamcast revocation 1\0"


class Certificate(msgspec.Struct, frozen=True, array_like=True, dict=True):
    """The authority certifies that the owner of this key is a member."""

    network: Annotated[str, Meta(max_length=100)]
    public: Public
    name: Annotated[str, Meta(max_length=64)]  # for people
    issued_s: UnixTime
    expires_s: UnixTime
    publishes: Rules | None = None  # interests in the network's language that its events must match; None: anything
    subscribes: Rules | None = None  # interests that its subscriptions must lie within; None: anything
    modulates: bool = False  # may change other nodes' events, as a broker that runs modulators does

    @cached_property
    def address(self) -> int:
        return address_of(self.public)

    @cached_property
    def key(self) -> Ed25519PublicKey:
        return Ed25519PublicKey.from_public_bytes(self.public)

    def is_valid(self, now_s: float) -> bool:
        return self.issued_s - CLOCK_SKEW_S <= now_s < self.expires_s


class Revocation(msgspec.Struct, frozen=True, array_like=True):
    """The authority says: this node is no member any more."""

    network: Annotated[str, Meta(max_length=100)]
    address: Address
    expires_s: UnixTime  # when the certificate does; the revocation can be forgotten after that


class Statement(msgspec.Struct, frozen=True, array_like=True):
    """What the authority says, as it travels."""

    body: Annotated[bytes, Meta(max_length=BODY_BYTES_MAX)]  # MessagePack of a certificate or a revocation
    signature: SignatureBytes


_certificates: msgspec.msgpack.Decoder[Certificate] = msgspec.msgpack.Decoder(Certificate)
_revocations: msgspec.msgpack.Decoder[Revocation] = msgspec.msgpack.Decoder(Revocation)


class Identity(msgspec.Struct, frozen=True, forbid_unknown_fields=True, dict=True):
    """What a node's identity file holds. Only this node has it."""

    secret: Annotated[bytes, Meta(min_length=32, max_length=32)]
    certificate: Statement | None = None  # None: the authority has not certified it yet

    @cached_property
    def key(self) -> Ed25519PrivateKey:
        return Ed25519PrivateKey.from_private_bytes(self.secret)

    @cached_property
    def public(self) -> bytes:
        return self.key.public_key().public_bytes_raw()

    @property
    def address(self) -> int:
        return address_of(self.public)


def new_identity() -> Identity:
    return Identity(Ed25519PrivateKey.generate().private_bytes_raw())


def read_identity(path: Path) -> Identity:
    return read_secret(path, Identity, "identity", "an identity")


def address_of(public: bytes) -> int:
    """The address of the node that has this key."""
    return int.from_bytes(blake2b(public, digest_size=4, person=b"roamcast node 1").digest(), "big") >> 1


def certify(authority: Ed25519PrivateKey, certificate: Certificate) -> Statement:
    body = msgspec.msgpack.encode(certificate)
    if len(body) > BODY_BYTES_MAX:
        raise ConfigurationError(f"certificate: {len(body)} bytes; allowed: at most {BODY_BYTES_MAX}; too many rules")
    return Statement(body, authority.sign(_CERTIFICATE + body))


def revoke(authority: Ed25519PrivateKey, revocation: Revocation) -> Statement:
    body = msgspec.msgpack.encode(revocation)
    return Statement(body, authority.sign(_REVOCATION + body))


def read_certificate(authority: Ed25519PublicKey, statement: Statement) -> Certificate | None:
    """The certificate, or None if the authority did not say this."""
    if not verify(authority, statement.signature, _CERTIFICATE + statement.body):
        return None
    try:
        return _certificates.decode(statement.body)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None


def read_revocation(authority: Ed25519PublicKey, statement: Statement) -> Revocation | None:
    """The revocation, or None if the authority did not say this."""
    if not verify(authority, statement.signature, _REVOCATION + statement.body):
        return None
    try:
        return _revocations.decode(statement.body)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None


def verify(public: Ed25519PublicKey, signature: bytes, data: bytes) -> bool:
    try:
        public.verify(signature, data)
    except InvalidSignature:
        return False
    return True


def own_certificate(identity: Identity, authority: bytes, network: str, now_s: float) -> Certificate:
    """The certificate in an identity file, checked as any other node would."""
    if identity.certificate is None:
        raise ConfigurationError("identity: has no certificate; let the authority make one with `roamcast key certify`")
    certificate = read_certificate(Ed25519PublicKey.from_public_bytes(authority), identity.certificate)
    if certificate is None or certificate.network != network:
        raise ConfigurationError(f"identity: its certificate is not by the authority of network {network!r}")
    if certificate.public != identity.public:
        raise ConfigurationError("identity: its certificate is of another key")
    if now_s >= certificate.expires_s:
        raise ConfigurationError("identity: its certificate has expired; let the authority certify it again")
    return certificate
