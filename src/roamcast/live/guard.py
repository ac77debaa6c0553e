"""The filter between the socket and the link of a node: with a key, nothing passes that is not proved.

In: the seal proves that a member sent a datagram, the signature in it which member; a quota limits how much each may
send. Then every event in the message must be signed by its publisher, who must be allowed to publish it. Out:
datagrams are sealed and signed. A network without an authority has the seal and the quotas only. Without a key, nothing
is proved; interests in a foreign language are dropped all the same, as no protocol could unite them with others.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec

from roamcast.errors import ConfigurationError
from roamcast.events import Event
from roamcast.interests import Interest
from roamcast.live.codec import FRAME_BYTES_MAX, Codec, Datagram, DatagramKind, DropReason
from roamcast.live.credentials import Credentials
from roamcast.live.herald import CredentialAnnouncement, Herald, introduction
from roamcast.live.identity import SIGNATURE_BYTES, Certificate, Identity, own_certificate
from roamcast.live.keys import KeyRing
from roamcast.live.quotas import Quota, Quotas
from roamcast.live.sealing import SEAL_BYTES, Sealer
from roamcast.live.signing import Signer, Verifier, signer_of
from roamcast.protocols.api import Message
from roamcast.protocols.contents import Contents
from roamcast.seeds import Random

_announcements: msgspec.msgpack.Decoder[CredentialAnnouncement] = msgspec.msgpack.Decoder(CredentialAnnouncement)


class Guard:
    def __init__(
        self,
        ring: KeyRing | None,
        address: int,
        language: str,
        codec: Codec,
        messages: Any,
        *,
        life: int,
        next_life: Callable[[], int],
        now: Callable[[], float],
        lost: Callable[[DropReason], None],
        identity: Identity | None = None,
        quota: Quota | None = None,
    ) -> None:
        self._address = address
        self._codec = codec
        self._now = now
        self._lost = lost
        self._contents = Contents(messages)
        self._language = language
        self._quotas = Quotas(quota or Quota())
        self._credentials: Credentials | None = None
        self._signer: Signer | None = None
        self._verifier: Verifier | None = None
        self._herald: Herald | None = None
        self._identity = identity
        if ring is not None and ring.authority is not None:
            certificate = _require_member(ring, identity, address, now())
            assert identity is not None
            assert identity.certificate is not None
            self._credentials = Credentials(ring.network, ring.authority)
            self._credentials.add_certificate(identity.certificate, now())
            self._signer = Signer(ring.network, identity, certificate)
            self._verifier = Verifier(ring.network, language, self._credentials)
        self._sealer: Sealer | None = None
        if ring is not None:
            self._sealer = Sealer(
                ring=ring,
                address=address,
                life=life,
                next_life=next_life,
                now=now,
                identity=identity,
                credentials=self._credentials,
            )
        self._revoked = () if ring is None else ring.revoked

    # -- The node's own life -------------------------------------------------------------------------------------

    def start(self, broadcast: Callable[[bytes], None], random: Random) -> None:
        """From now on the node announces itself; `broadcast` sends a plain datagram to all neighbours."""
        if self._credentials is None or self._identity is None or self._identity.certificate is None:
            return
        loop = asyncio.get_running_loop()

        def announce(announcement: CredentialAnnouncement) -> None:
            body = msgspec.msgpack.encode(announcement)
            broadcast(self._codec.encode(Datagram(DatagramKind.ANNOUNCEMENT, self._address), body))

        self._herald = Herald(
            self._identity.certificate,
            self._credentials,
            now=self._now,
            random=random,
            bytes_max=FRAME_BYTES_MAX,
            announce=announce,
            defer=lambda delay_s, call: loop.call_later(delay_s, call),
        )
        self._herald.start(self._revoked)

    def close(self) -> None:
        if self._herald is not None:
            self._herald.close()

    def load(self, ring: KeyRing, identity: Identity | None) -> None:
        """The files have changed: other keys, more revocations, a new certificate."""
        if self._sealer is not None:
            self._sealer.load(ring)
        if self._herald is None or self._credentials is None:
            return
        certificate = _require_member(ring, identity, self._address, self._now())
        assert identity is not None
        assert identity.certificate is not None
        self._signer = Signer(ring.network, identity, certificate)
        self._credentials.add_certificate(identity.certificate, self._now())
        self._herald.renew(identity.certificate)
        self._herald.spread_revocations(ring.revoked)

    def remembered(self) -> bytes:
        """What must survive a restart."""
        known = b"" if self._credentials is None else self._credentials.remembered()
        return msgspec.msgpack.encode((b"" if self._sealer is None else self._sealer.remembered(), known))

    def recall(self, remembered: bytes) -> None:
        try:
            heard, known = msgspec.msgpack.decode(remembered, type=tuple[bytes, bytes])
        except msgspec.MsgspecError:
            return
        if self._sealer is not None:
            self._sealer.recall(heard)
        if self._credentials is not None:
            self._credentials.recall(known, self._now())

    # -- Out -----------------------------------------------------------------------------------------------------

    @property
    def seal(self) -> Callable[[bytes], bytes] | None:
        """What makes a sealed datagram of a plain one; None: they leave plain."""
        return None if self._sealer is None else self._sealer.seal

    @property
    def bytes_added(self) -> int:
        """What seal and signature add to a datagram."""
        return 0 if self._sealer is None else SEAL_BYTES + (0 if self._credentials is None else SIGNATURE_BYTES)

    def sign(self, event: Event) -> Event:
        """Signs an event that the application publishes."""
        if self._signer is None or self._credentials is None or self._verifier is None:
            return event
        certificate = self._credentials.certificate(self._address, self._now())
        if isinstance(certificate, DropReason):
            raise ConfigurationError(f"identity: the certificate of node {self._address} is {certificate.value}")
        if not self._verifier.allows(certificate.publishes, event):
            raise ConfigurationError(f"publish: {event.content!r} is not what this node's certificate allows")
        return self._signer.published(event)

    def require_subscribable(self, interest: Interest) -> None:
        """Refuses a subscription that the node's certificate does not allow."""
        if self._signer is None or self._verifier is None:
            return
        if not self._verifier.covers(self._signer.certificate.subscribes, interest):
            raise ConfigurationError(f"subscribe: {str(interest)!r} is not what this node's certificate allows")

    def outgoing(self, message: Message) -> Message:
        """The message as it leaves: this node's own records, and events that it has changed, are signed by it."""
        if self._signer is None or not (self._contents.records(message) or self._contents.events(message)):
            return message
        # As its receivers see it: a whole number in a field for real ones, for instance, is a real one there.
        arrives = self._codec.decode_message(self._codec.encode_message(message))
        signed: Message = self._contents.changed(message if arrives is None else arrives, self._signer.outgoing)
        return signed

    # -- In ------------------------------------------------------------------------------------------------------

    def open(self, data: bytes, again: Callable[..., None], *origin: Any) -> tuple[int | None, bytes] | None:
        """The authenticated sender of a datagram, if there is a key, and the plain datagram; None: it was dropped,
        or waits for a certificate and then comes `again`, with its `origin`."""
        if self._sealer is None:
            return None, data
        if self._credentials is None:
            unsigned = self._sealer.open_unsigned(data)
            if not isinstance(unsigned, tuple):
                self._lost(unsigned)
                return None
            if not self._quotas.allows(unsigned[0], len(data), self._now()):
                self._lost(DropReason.QUOTA)
                return None
            return unsigned
        opened = self._sealer.decrypt(data)
        if isinstance(opened, DropReason):
            self._lost(opened)
            return None
        reason = self._sealer.accept(opened)
        announcement = None
        if reason in (None, DropReason.UNKNOWN_SENDER, DropReason.EXPIRED):
            announcement = self._announcement(opened.datagram)
        if announcement is not None and reason is not None and self._herald is not None:
            self._herald.learn(introduction(announcement))  # it may bring the certificate of who sent it
            reason = self._sealer.accept(opened)
        if reason is DropReason.UNKNOWN_SENDER and self._herald is not None:
            resume = partial(again, data, *origin)
            self._herald.want(opened.sender, resume, lambda: self._lost(DropReason.UNKNOWN_SENDER))
            return None
        costs = 1 if announcement is None else 1 + announcement.statements  # signatures to check
        if reason is None and not self._quotas.allows(opened.sender, len(data), self._now(), costs):
            reason = DropReason.QUOTA
        if reason is not None:
            self._lost(reason)
            return None
        if announcement is not None and self._herald is not None:
            self._herald.learn(announcement)
            if opened.sender != self._address:
                self._herald.answer(announcement)
        return opened.sender, opened.datagram

    @property
    def checks_events(self) -> bool:
        """Whether events and records are signed here."""
        return self._verifier is not None

    def understands(self, message: Message) -> bool:
        """Whether the interests in a message are in the network's language; it is dropped if not."""
        if self._contents.speaks(message, self._language):
            return True
        self._lost(DropReason.FOREIGN_LANGUAGE)
        return False

    def admitted(self, message: Message, again: Callable[[], None]) -> Message | None:
        """The message, if everything in it is proved and allowed, without records that are not. None: it was dropped,
        or waits for a certificate and comes `again`."""
        if not self.understands(message):
            return None
        if self._verifier is None or self._herald is None:
            return message
        events = self._contents.events(message)
        signers = list(map(signer_of, events))
        if hasattr(message, "signed_by"):
            signers.append(getattr(message, message.signed_by))
        for signer in signers:
            if self._is_missing(signer):
                self._herald.want(signer, again, lambda: self._lost(DropReason.UNKNOWN_SENDER))
                return None
        now_s = self._now()
        for reason in filter(None, [self._verifier.refusal(event, now_s) for event in events]):
            self._lost(reason)
            return None
        kept: Message | None = self._contents.without(message, self._is_bad)
        return kept

    def _is_bad(self, record: Any) -> bool:
        assert self._verifier is not None
        assert self._herald is not None
        signer = getattr(record, record.signed_by)
        if self._is_missing(signer):  # the record will be told again
            self._herald.want(signer, lambda: None, lambda: None)
        reason = self._verifier.refused_record(record, self._now())
        if reason is not None:
            self._lost(reason)
        return reason is not None

    def _is_missing(self, signer: int) -> bool:
        """Whether a certificate is needed that is not here."""
        if self._credentials is None or self._credentials.statement(signer) is not None:
            return False
        return self._credentials.certificate(signer, self._now()) is DropReason.UNKNOWN_SENDER

    def delivered(self, event: Event) -> Event | None:
        """The same once more where it counts, and whether this node may have the event; None: it is dropped."""
        if self._verifier is None or self._signer is None:
            return event
        event = self._signer.outgoing(event)  # if this node has changed it itself
        reason = self._verifier.refusal(event, self._now())
        if reason is None and not self._verifier.allows(self._signer.certificate.subscribes, event):
            reason = DropReason.FORBIDDEN
        if reason is not None:
            self._lost(reason)
        return event if reason is None else None

    def _announcement(self, datagram: bytes) -> CredentialAnnouncement | None:
        body = None if self._credentials is None else self._codec.announcement(datagram)
        if body is None:
            return None
        try:
            return _announcements.decode(body)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return None


def _require_member(ring: KeyRing, identity: Identity | None, address: int, now_s: float) -> Certificate:
    assert ring.authority is not None
    if identity is None:
        raise ConfigurationError(
            f"identity: network {ring.network!r} tells its members apart; make one with `roamcast key certify`"
        )
    certificate = own_certificate(identity, ring.authority, ring.network, now_s)
    if certificate.address != address:
        raise ConfigurationError(f"address = {address}: the identity's is {certificate.address}; leave it out")
    return certificate
