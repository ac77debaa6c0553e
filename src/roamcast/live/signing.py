"""Signatures of events and records, end to end: relays carry them and check them, but cannot make them.

The publisher signs all fields of its event. `Event.signature` is 64 bytes then. A node that changed an event, as a
modulator of the overlays does, signs what it made of it: then `signature` is the address of that node in 4 bytes, and
its signature in 64. That is accepted only from a node whose certificate says that it may modulate, and the application
is told which node it was. That a modulated event has a certain publisher is only the claim of the modulating node.

A record, such as a subscription that others pass on, is signed by the node that it is about (`protocols/contents.py`
says which fields). Its host signs it when it leaves, and every host on the way checks it.

Signatures that were checked are remembered by a digest, so an event costs one check however many copies arrive.
"""

from hashlib import blake2b
from typing import Any, Final

import msgspec

from roamcast.errors import ConfigurationError, PeerError
from roamcast.events import Event
from roamcast.interests import Interest, parse_interest, union_all
from roamcast.live.codec import DropReason
from roamcast.live.credentials import Credentials
from roamcast.live.identity import SIGNATURE_BYTES, Certificate, Identity, verify

VERIFIED_MAX: Final = 8192
RULES_MAX: Final = 1024
MODULATED_BYTES: Final = 4 + SIGNATURE_BYTES

_EVENT: Final = b"roamcast event 1\0"
_RECORD: Final = b"roamcast record 1\0"
_MODULATED: Final = b"roamcast modulated 1\0"
_encode = msgspec.msgpack.Encoder().encode


def modulated_by(event: Event) -> int | None:
    """The node that made this event out of its publisher's; None: it is as it was published."""
    signature = event.signature
    return None if signature is None or len(signature) != MODULATED_BYTES else int.from_bytes(signature[:4], "big")


def signer_of(event: Event) -> int:
    """The node that vouches for an event: its publisher, or who changed it."""
    modulator = modulated_by(event)
    return event.publisher if modulator is None else modulator


def event_bytes(network: str, event: Event, *, is_modulated: bool = False) -> bytes:
    """What is signed."""
    fields = (network, event.id, float(event.time_s), event.content, event.payload, event.cause, event.utility)
    return (_MODULATED if is_modulated else _EVENT) + _encode(fields)


def record_bytes(network: str, record: Any) -> bytes:
    """What is signed: the kind of the record, and the fields that do not change on the way."""
    fields = [getattr(record, name) for name in record.signed]
    return _RECORD + _encode((network, type(record).__name__, fields))


class Signer:
    """Signs the events and records of one node."""

    def __init__(self, network: str, identity: Identity, certificate: Certificate) -> None:
        self._network = network
        self._identity = identity
        self.certificate = certificate

    def published(self, event: Event) -> Event:
        signature = self._identity.key.sign(event_bytes(self._network, event))
        return msgspec.structs.replace(event, signature=signature)

    def outgoing(self, each: Any) -> Any:
        """Signs a record of this node, or an event that it has changed if it may; others are as they were."""
        if type(each) is Event:
            return self._modulated(each)
        if each.signature is not None or getattr(each, each.signed_by) != self.certificate.address:
            return each
        return msgspec.structs.replace(each, signature=self._identity.key.sign(record_bytes(self._network, each)))

    def _modulated(self, event: Event) -> Event:
        if event.signature is not None or not self.certificate.modulates:
            return event
        signature = self._identity.key.sign(event_bytes(self._network, event, is_modulated=True))
        return msgspec.structs.replace(event, signature=self.certificate.address.to_bytes(4, "big") + signature)


class Verifier:
    """Checks the events that others signed, and whether they may publish them."""

    def __init__(self, network: str, language: str, credentials: Credentials) -> None:
        self._network = network
        self._language = language
        self._credentials = credentials
        self._verified: dict[bytes, None] = {}  # digests of what was found right, the oldest first
        self._rules: dict[tuple[str, ...], Interest | None] = {}

    def refused_record(self, record: Any, now_s: float) -> DropReason | None:
        """Why a record is not to be believed; None: the node that it is about has signed it, and may want this."""
        certificate = self._credentials.certificate(getattr(record, record.signed_by), now_s)
        if isinstance(certificate, DropReason):
            return certificate
        if record.signature is None or len(record.signature) != SIGNATURE_BYTES:
            return DropReason.UNSIGNED
        if not self._is_right(certificate, record.signature, record_bytes(self._network, record)):
            return DropReason.FORGED_STATEMENT
        if certificate.subscribes is not None:
            said = getattr(record, "payload", record)
            subscriptions = said.subscriptions() if hasattr(said, "subscriptions") else ()
            if not all(self.covers(certificate.subscribes, interest) for interest in subscriptions):
                return DropReason.FORBIDDEN
        return None

    def refusal(self, event: Event, now_s: float) -> DropReason | None:
        """Why the event is not to be believed; None: it is what its publisher, or a modulator, has signed."""
        signature = event.signature
        if signature is None or len(signature) not in (SIGNATURE_BYTES, MODULATED_BYTES):
            return DropReason.UNSIGNED
        modulator = modulated_by(event)
        certificate = self._credentials.certificate(event.publisher if modulator is None else modulator, now_s)
        if isinstance(certificate, DropReason):
            return certificate
        if modulator is not None and not certificate.modulates:
            return DropReason.FORBIDDEN
        data = event_bytes(self._network, event, is_modulated=modulator is not None)
        if not self._is_right(certificate, signature[-SIGNATURE_BYTES:], data):
            return DropReason.FORGED_STATEMENT
        if modulator is not None or self.allows(certificate.publishes, event):
            return None
        return DropReason.FORBIDDEN

    def allows(self, rules: tuple[str, ...] | None, event: Event) -> bool:
        """Whether an event is within rules; None: everything is."""
        if rules is None:
            return True
        interest = self._interest(rules)
        return interest is not None and interest.matches(event)

    def covers(self, rules: tuple[str, ...] | None, interest: Interest) -> bool:
        """Whether a subscription lies within rules."""
        if rules is None or interest.is_empty:
            return True
        allowed = self._interest(rules)
        return allowed is not None and type(allowed) is type(interest) and allowed.covers(interest)

    def _is_right(self, certificate: Certificate, signature: bytes, data: bytes) -> bool:
        digest = blake2b(certificate.public + signature + data, digest_size=16).digest()
        if digest in self._verified:
            return True
        if not verify(certificate.key, signature, data):
            return False
        if len(self._verified) >= VERIFIED_MAX:
            del self._verified[next(iter(self._verified))]
        self._verified[digest] = None
        return True

    def _interest(self, rules: tuple[str, ...]) -> Interest | None:
        """The union of the rules; None if there are none, or if one is not of the network's language."""
        if rules not in self._rules:
            if len(self._rules) >= RULES_MAX:
                del self._rules[next(iter(self._rules))]
            try:
                self._rules[rules] = union_all([parse_interest(self._language, rule) for rule in rules])
            except (ConfigurationError, PeerError):
                self._rules[rules] = None
        return self._rules[rules]
