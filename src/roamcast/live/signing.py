"""Signatures of events, end to end: relays carry them and check them, but cannot make them.

The publisher signs all fields of its event. `Event.signature` is 64 bytes then. A node that changed an event, as a
modulator of the overlays does, signs what it made of it: then `signature` is the address of that node in 4 bytes, and
its signature in 64. That is accepted only from a node whose certificate says that it may modulate, and the application
is told which node it was. The publisher of a modulated event is the word of the modulating node.

Signatures that were checked are remembered by a digest, so an event costs one check however many copies arrive.
"""

from hashlib import blake2b
from typing import Final

import msgspec

from roamcast.errors import ConfigurationError, PeerError
from roamcast.events import Event
from roamcast.interests import Interest, parse_interest, union_all
from roamcast.live.codec import Drop
from roamcast.live.credentials import Credentials
from roamcast.live.identity import SIGNATURE_BYTES, Certificate, Identity, verify

VERIFIED_MAX: Final = 8192
RULES_MAX: Final = 1024
MODULATED_BYTES: Final = 4 + SIGNATURE_BYTES

_EVENT: Final = b"roamcast event 1\0"
_MODULATED: Final = b"roamcast modulated 1\0"
_encode = msgspec.msgpack.Encoder().encode


def modulated_by(event: Event) -> int | None:
    """The node that made this event out of its publisher's; None: it is as it was published."""
    signature = event.signature
    return None if signature is None or len(signature) != MODULATED_BYTES else int.from_bytes(signature[:4], "big")


def event_bytes(network: str, event: Event, *, is_modulated: bool = False) -> bytes:
    """What is signed."""
    fields = (network, event.id, float(event.time_s), event.content, event.payload, event.cause, event.utility)
    return (_MODULATED if is_modulated else _EVENT) + _encode(fields)


class Signer:
    """Signs the events of one node."""

    def __init__(self, network: str, identity: Identity, certificate: Certificate) -> None:
        self._network = network
        self._identity = identity
        self.certificate = certificate

    def published(self, event: Event) -> Event:
        signature = self._identity.key.sign(event_bytes(self._network, event))
        return msgspec.structs.replace(event, signature=signature)

    def modulated(self, event: Event) -> Event:
        """Signs an event that this node has changed, if it may; others are as they were."""
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

    def unknown_signer(self, event: Event) -> int | None:
        """A node whose certificate is needed and not here."""
        signer = modulated_by(event)
        signer = event.publisher if signer is None else signer
        return signer if self._credentials.statement(signer) is None else None

    def refusal(self, event: Event, now_s: float) -> Drop | None:
        """Why the event is not to be believed; None: it is what its publisher, or a modulator, has signed."""
        signature = event.signature
        if signature is None or len(signature) not in (SIGNATURE_BYTES, MODULATED_BYTES):
            return Drop.UNSIGNED
        modulator = modulated_by(event)
        certificate = self._credentials.certificate(event.publisher if modulator is None else modulator, now_s)
        if isinstance(certificate, Drop):
            return certificate
        if modulator is not None and not certificate.modulates:
            return Drop.FORBIDDEN
        data = event_bytes(self._network, event, is_modulated=modulator is not None)
        digest = blake2b(signature + data, digest_size=16).digest()
        if digest not in self._verified:
            if not verify(certificate.key, signature[-SIGNATURE_BYTES:], data):
                return Drop.FORGED_STATEMENT
            if len(self._verified) >= VERIFIED_MAX:
                del self._verified[next(iter(self._verified))]
            self._verified[digest] = None
        if modulator is not None or self.allows(certificate.publishes, event):
            return None
        return Drop.FORBIDDEN

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
