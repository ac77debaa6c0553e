"""The authority of a network: who is a member. Its file stays with the operator; no node needs it.

The file holds the secret key, and who was certified and revoked. The authority certifies no two keys with the same
address: 31 bits are few enough for a member to search for a key that has another member's address.
"""

from typing import Annotated

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from msgspec import Meta

from roamcast.errors import ConfigurationError
from roamcast.live.identity import Certificate, Revocation, Statement, certify, revoke


class Issued(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A certificate that was issued."""

    address: int
    public: bytes
    name: str
    expires_s: int
    revoked: bool = False


class Authority(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What an authority's file holds."""

    network: str
    secret: Annotated[bytes, Meta(min_length=32, max_length=32)]
    issued: tuple[Issued, ...] = ()

    @property
    def key(self) -> Ed25519PrivateKey:
        return Ed25519PrivateKey.from_private_bytes(self.secret)

    @property
    def public(self) -> bytes:
        return self.key.public_key().public_bytes_raw()

    def certified(self, certificate: Certificate) -> tuple["Authority", Statement]:
        """With one more certificate, which replaces an earlier one of the same key."""
        address = certificate.address
        kept = []
        for issued in self.issued:
            if issued.address != address:
                kept.append(issued)
            elif issued.public != certificate.public:
                raise ConfigurationError(f"certify: address {address} is taken by another key; make a new identity")
            elif issued.revoked:
                raise ConfigurationError(f"certify: node {address} is revoked; make a new identity")
        entry = Issued(address, certificate.public, certificate.name, certificate.expires_s)
        return msgspec.structs.replace(self, issued=(*kept, entry)), certify(self.key, certificate)

    def revoked(self, who: str, now_s: float) -> tuple["Authority", list[Statement]]:
        """Without the node of this address or name; and what the network must be told, earlier revocations included."""
        chosen = [issued for issued in self.issued if who in (str(issued.address), issued.name)]
        if len(chosen) != 1:
            known = ", ".join(f"{issued.name} ({issued.address})" for issued in self.issued) or "nobody"
            raise ConfigurationError(f"revoke: {who!r} names {len(chosen)} nodes; certified: {known}")
        issued = tuple(
            msgspec.structs.replace(each, revoked=True) if each is chosen[0] else each for each in self.issued
        )
        told = [
            revoke(self.key, Revocation(self.network, each.address, each.expires_s))
            for each in issued
            if each.revoked and each.expires_s > now_s
        ]
        return msgspec.structs.replace(self, issued=issued), told


def new_authority(network: str) -> Authority:
    return Authority(network, Ed25519PrivateKey.generate().private_bytes_raw())
