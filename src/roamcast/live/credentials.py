"""What a node knows of the authority's word: certificates and revocations, its own and those it heard of.

Only what the authority has signed is kept, so no member can fill it, except with nodes that the authority has
certified. Beyond `CERTIFICATES_MAX` the certificates that were used least recently are forgotten; they can be asked for
again. Revocations are kept until the certificate that they are about has expired.

Two directories with the same contents have the same digest; neighbours compare it to find out whether one of them lacks
something (`herald.py`).
"""

from hashlib import blake2b

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from roamcast.live.codec import DropReason
from roamcast.live.identity import Certificate, Revocation, Statement, read_certificate, read_revocation

CERTIFICATES_MAX = 4096
REVOCATIONS_MAX = 1024


class _Known(msgspec.Struct):
    statement: Statement
    said: Certificate | Revocation
    digest: int


class Credentials:
    """Who is a member, as far as this node knows."""

    def __init__(self, network: str, authority: bytes) -> None:
        self.digest = 0  # of all that is known
        self._network = network
        self._authority = Ed25519PublicKey.from_public_bytes(authority)
        self._certificates: dict[int, _Known] = {}  # by address, the one used least recently first
        self._revocations: dict[int, _Known] = {}  # by address
        self._digests: set[int] = set()

    def __len__(self) -> int:
        return len(self._certificates) + len(self._revocations)

    def certificate(self, address: int, now_s: float) -> Certificate | DropReason:
        """The node's certificate, or why it is not to be believed."""
        if address in self._revocations:
            return DropReason.REVOKED
        known = self._certificates.pop(address, None)
        if known is None:
            return DropReason.UNKNOWN_SENDER
        self._certificates[address] = known
        assert type(known.said) is Certificate
        return known.said if known.said.is_valid(now_s) else DropReason.EXPIRED

    def add_certificate(self, statement: Statement, now_s: float) -> bool:
        """Whether this is a certificate that was not known, of a node that is not revoked."""
        digest = _digest(statement)
        if digest in self._digests:
            return False  # before the costly check: every announcement repeats it
        certificate = read_certificate(self._authority, statement)
        if certificate is None or certificate.network != self._network or now_s >= certificate.expires_s:
            return False
        address = certificate.address
        if address in self._revocations:
            return False
        known = self._certificates.get(address)
        if known is not None and isinstance(known.said, Certificate) and known.said.issued_s >= certificate.issued_s:
            return False
        self._drop(self._certificates, address)
        if len(self._certificates) >= CERTIFICATES_MAX:
            self._drop(self._certificates, next(iter(self._certificates)))
        self._keep(self._certificates, address, _Known(statement, certificate, digest))
        return True

    def add_revocation(self, statement: Statement, now_s: float) -> bool:
        """Whether this is a revocation that was not known. The node's certificate is forgotten."""
        digest = _digest(statement)
        if digest in self._digests:
            return False
        revocation = read_revocation(self._authority, statement)
        if revocation is None or revocation.network != self._network or now_s >= revocation.expires_s:
            return False
        known = self._revocations.get(revocation.address)
        if known is not None and known.said.expires_s >= revocation.expires_s:
            return False
        self._drop(self._revocations, revocation.address)
        if len(self._revocations) >= REVOCATIONS_MAX:
            soonest = min(self._revocations, key=lambda address: self._revocations[address].said.expires_s)
            self._drop(self._revocations, soonest)
        self._drop(self._certificates, revocation.address)
        self._keep(self._revocations, revocation.address, _Known(statement, revocation, digest))
        return True

    def expire(self, now_s: float) -> None:
        """Forgets what is out of date."""
        for table in (self._certificates, self._revocations):
            for address in [address for address, known in table.items() if now_s >= known.said.expires_s]:
                self._drop(table, address)

    def statement(self, address: int) -> Statement | None:
        """The certificate of a node, to pass on."""
        known = self._certificates.get(address)
        return None if known is None else known.statement

    def addresses(self) -> list[int]:
        return sorted(self._certificates)

    def revocations(self) -> list[Statement]:
        return [self._revocations[address].statement for address in sorted(self._revocations)]

    def remembered(self) -> bytes:
        """What must survive a restart."""
        return msgspec.msgpack.encode(([known.statement for known in self._certificates.values()], self.revocations()))

    def recall(self, remembered: bytes, now_s: float) -> None:
        """Takes back what was remembered; it is checked again."""
        try:
            certificates, revocations = msgspec.msgpack.decode(remembered, type=tuple[list[Statement], list[Statement]])
        except msgspec.MsgspecError:
            return
        for statement in revocations:
            self.add_revocation(statement, now_s)
        for statement in certificates:
            self.add_certificate(statement, now_s)

    def _keep(self, table: dict[int, _Known], address: int, known: _Known) -> None:
        table[address] = known
        self._digests.add(known.digest)
        self.digest ^= known.digest

    def _drop(self, table: dict[int, _Known], address: int) -> None:
        known = table.pop(address, None)
        if known is not None:
            self._digests.discard(known.digest)
            self.digest ^= known.digest


def _digest(statement: Statement) -> int:
    return int.from_bytes(blake2b(statement.body + statement.signature, digest_size=8).digest(), "big")
