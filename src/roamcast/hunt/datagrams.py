"""A storm of datagrams that a member of a signed network must not accept.

A receiver has heard some datagrams of honest members. Then it gets datagrams of every kind that an attacker can make:
noise, datagrams that were cut or changed, replays, those of a former life, sealed with another key, without a
signature, signed by a node that the authority never certified, by one whose certificate has expired, by one that was
revoked, and by a member in the name of another. None may be accepted, and none may raise.
"""

from collections import Counter
from collections.abc import Callable

import msgspec

from roamcast.live.authority import new_authority
from roamcast.live.codec import DropReason
from roamcast.live.credentials import Credentials
from roamcast.live.identity import Certificate, Identity, new_identity
from roamcast.live.keys import KeyRing, new_ring
from roamcast.live.sealing import Sealer
from roamcast.seeds import derive

NOW_S = 1_800_000_000
POOL = 256  # datagrams of each kind that are made beforehand; a storm sends them again and again, changed or not


class Storm:
    """The receiver, and what is thrown at it."""

    def __init__(self, seed: int) -> None:
        self._random = derive(seed, "storm")
        self.authority = new_authority("storm")
        ring = new_ring("storm", 0.0, self.authority.public)
        receiver, honest, mallory, expired, revoked = [self._member(days) for days in (9, 9, 9, 1, 9)]
        self.credentials = Credentials("storm", self.authority.public)
        for identity in (receiver, honest, mallory, expired, revoked):
            assert identity.certificate is not None
            self.credentials.add_certificate(identity.certificate, NOW_S - 2 * 86_400)
        self.authority, told = self.authority.revoked(str(revoked.address), NOW_S)
        for statement in told:
            self.credentials.add_revocation(statement, NOW_S)
        self.receiver = self._sealer(ring, receiver)
        before, now = self._sealer(ring, honest, life=1), self._sealer(ring, honest, life=2)
        former = [before.seal(self._noise()) for _ in range(POOL)]
        self._heard = [now.seal(self._noise()) for _ in range(POOL)]
        opened = [self.receiver.open(data) for data in self._heard]
        assert all(isinstance(each, tuple) for each in opened), "honest members are heard"
        forger = self._sealer(ring, mallory, life=3)
        forger._address = honest.address
        forger.load(ring)
        mute = Sealer(ring, honest.address, 3, lambda: 4, lambda: NOW_S)
        mute._version = 2
        mute.load(ring)
        wrong_key = msgspec.structs.replace(new_ring("storm", 0.0), authority=self.authority.public)
        senders = {
            "wrong key": self._sealer(wrong_key, honest, life=3),
            "unsigned": mute,
            "uncertified": self._sealer(ring, new_identity()),
            "expired": self._sealer(ring, expired),
            "revoked": self._sealer(ring, revoked),
            "another's name": forger,
        }
        pools = {kind: [sealer.seal(self._noise()) for _ in range(POOL)] for kind, sealer in senders.items()}
        pools |= {"replayed": self._heard, "former life": former}
        self._kinds: dict[str, Callable[[], bytes]] = {
            kind: (lambda pool=pool: self._random.choice(pool))  # type: ignore[misc]
            for kind, pool in pools.items()
        }
        self._kinds |= {"noise": self._noise, "truncated": self._truncated, "changed": self._changed}

    def blow(self, datagrams: int) -> Counter[tuple[str, DropReason]]:
        """Sends that many datagrams; counts them by kind and by why they were dropped."""
        reasons: Counter[tuple[str, DropReason]] = Counter()
        names = list(self._kinds)
        for number in range(datagrams):
            kind = names[number % len(names)]
            data = self._kinds[kind]()
            opened = self.receiver.open(data)
            if not isinstance(opened, DropReason):
                raise AssertionError(f"{kind}: accepted {data.hex()}")
            reasons[kind, opened] += 1
        return reasons

    def _member(self, days: int) -> Identity:
        identity = new_identity()
        issued_s = NOW_S - 2 * 86_400
        certificate = Certificate("storm", identity.public, "", issued_s, issued_s + days * 86_400)
        self.authority, statement = self.authority.certified(certificate)
        return msgspec.structs.replace(identity, certificate=statement)

    def _sealer(self, ring: KeyRing, identity: Identity, life: int = 1) -> Sealer:
        return Sealer(
            ring,
            identity.address,
            life,
            next_life=lambda: life + 1,
            now=lambda: NOW_S,
            identity=identity,
            credentials=self.credentials,
        )

    def _noise(self) -> bytes:
        return self._random.randbytes(self._random.choice([0, 1, 8, 64, 200]))

    def _truncated(self) -> bytes:
        whole = self._random.choice(self._heard)
        return whole[: self._random.randrange(len(whole))]

    def _changed(self) -> bytes:
        data = bytearray(self._random.choice(self._heard))
        data[self._random.randrange(len(data))] ^= self._random.randrange(1, 256)
        return bytes(data)


