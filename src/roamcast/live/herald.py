"""Spreads certificates and revocations, so that every node can tell who said what.

Neighbours exchange announcements, one datagram each. An announcement carries the sender's own certificate, the digest
of all that it knows, the addresses whose certificates it wants, and as many other statements as fit.

- Every node announces itself when it starts, then every `PERIOD_S`.
- What a node hears for the first time it repeats once, soon.
- A node that wants a certificate asks, at most every `WANTED_AGAIN_S`; neighbours that have it answer soon.
- Neighbours with different digests lack something. They announce every `CATCH_UP_S`, revocations first, then a few
  certificates in turn, until the digests are equal. A node without `--state` learns of all revocations in this way.

What waits for a certificate is held for `HOLD_S`, within `HELD_MAX`, and handed on when the certificate is here.
An announcement is never sent in answer to a datagram whose seal is not the network's, and its size and rate do not
depend on how many arrive.
"""

import asyncio
from collections.abc import Callable
from typing import Annotated

import msgspec
from msgspec import Meta

from roamcast.fields import Address
from roamcast.live.credentials import Credentials
from roamcast.live.identity import Statement
from roamcast.seeds import Random

PERIOD_S = 10.0
CATCH_UP_S = 1.0
SOON_S = 0.05  # at least half of this passes, so that neighbours do not answer at the same instant
WANTED_AGAIN_S = 0.5
WANTED_MAX = 32
HOLD_S = 3.0
HELD_MAX = 128
STATEMENTS_MAX = 8
IN_TURN = 3  # certificates, and revocations, in an announcement to catch up


class CredentialAnnouncement(msgspec.Struct, frozen=True, array_like=True):
    digest: Annotated[bytes, Meta(min_length=8, max_length=8)]  # of all that the sender knows
    wanted: Annotated[tuple[Address, ...], Meta(max_length=WANTED_MAX)]
    certificates: Annotated[tuple[Statement, ...], Meta(max_length=STATEMENTS_MAX)]  # the sender's own first
    revocations: Annotated[tuple[Statement, ...], Meta(max_length=STATEMENTS_MAX)]

    @property
    def statements(self) -> int:
        return len(self.certificates) + len(self.revocations)


def introduction(announcement: CredentialAnnouncement) -> CredentialAnnouncement:
    """What is read of an announcement before it is known who sent it: the sender's own certificate. A node that is no
    member, but has the key, could else have many signatures checked with each datagram."""
    return msgspec.structs.replace(announcement, certificates=announcement.certificates[:1], revocations=())


class _Held:
    def __init__(self, address: int, until_s: float, resume: Callable[[], None], expire: Callable[[], None]) -> None:
        self.address = address
        self.until_s = until_s
        self.resume = resume
        self.expire = expire


class Herald:
    def __init__(
        self,
        own: Statement,
        credentials: Credentials,
        *,
        now: Callable[[], float],  # Unix time
        random: Random,
        bytes_max: int,  # of an encoded announcement
        announce: Callable[[CredentialAnnouncement], None],
        defer: Callable[[float, Callable[[], None]], asyncio.TimerHandle],
    ) -> None:
        self._own = own
        self._credentials = credentials
        self._now = now
        self._random = random
        self._bytes_max = bytes_max
        self._announce = announce
        self._defer = defer
        self._timer: asyncio.TimerHandle | None = None
        self._due_s = 0.0
        self._wanted: dict[int, float] = {}  # by address: when it was last asked for; 0: not yet
        self._asked: dict[int, None] = {}  # addresses that neighbours want
        self._news: list[Statement] = []  # certificates to be repeated
        self._bad_news: list[Statement] = []  # revocations to be repeated
        self._turn = 0  # how far the turn through all that is known has got
        self._differs = False  # a neighbour's digest was another one
        self._held: list[_Held] = []

    def start(self, revoked: tuple[Statement, ...]) -> None:
        """Announces this node, and what is revoked as far as its operator or its former life knew."""
        for statement in revoked:
            self._credentials.add_revocation(statement, self._now())
        self._bad_news = self._credentials.revocations()
        self._send()

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._held.clear()

    def want(self, address: int, resume: Callable[[], None], expire: Callable[[], None]) -> None:
        """Asks for a certificate; `resume` when it is here, `expire` if it does not come in time."""
        now_s = self._now()
        self._expire_held(now_s)
        if len(self._held) >= HELD_MAX:
            expire()
            return
        self._held.append(_Held(address, now_s + HOLD_S, resume, expire))
        if len(self._wanted) < WANTED_MAX and now_s - self._wanted.get(address, 0.0) >= WANTED_AGAIN_S:
            self._wanted[address] = 0.0
            self._soon()

    def renew(self, own: Statement) -> None:
        """This node has a new certificate."""
        if own != self._own:
            self._own = own
            self._soon()

    def spread_revocations(self, statements: tuple[Statement, ...]) -> None:
        """What the operator's key file says."""
        for statement in statements:
            if self._credentials.add_revocation(statement, self._now()):
                self._bad_news.append(statement)
        if self._bad_news:
            self._soon()

    def learn(self, announcement: CredentialAnnouncement) -> None:
        """Takes what the authority has signed. It does not matter who brings it."""
        now_s = self._now()
        for statement in announcement.revocations:
            if self._credentials.add_revocation(statement, now_s):
                self._bad_news.append(statement)
        for statement in announcement.certificates:
            if self._credentials.add_certificate(statement, now_s):
                self._news.append(statement)
        if self._news or self._bad_news:
            self._resume_held()
            self._soon()

    def answer(self, announcement: CredentialAnnouncement) -> None:
        """A member asks, or says how much it knows."""
        for address in announcement.wanted:
            if self._credentials.statement(address) is not None and len(self._asked) < WANTED_MAX:
                self._asked[address] = None
                self._soon()
        if int.from_bytes(announcement.digest, "big") != self._credentials.digest:
            self._differs = True
            self._schedule(CATCH_UP_S)

    def _soon(self) -> None:
        self._schedule(SOON_S)

    def _schedule(self, delay_s: float) -> None:
        """Announces after about this time, or earlier if that was planned."""
        delay_s *= 0.5 + 0.5 * self._random.random()
        due_s = self._now() + delay_s
        if self._timer is not None:
            if self._due_s <= due_s:
                return
            self._timer.cancel()
        self._due_s = due_s
        self._timer = self._defer(delay_s, self._send)

    def _send(self) -> None:
        self._timer = None
        now_s = self._now()
        self._credentials.expire(now_s)
        self._expire_held(now_s)
        asking = [address for address, asked_s in self._wanted.items() if not asked_s][:WANTED_MAX]
        for address in asking:
            self._wanted[address] = now_s
        revocations = self._bad_news[:STATEMENTS_MAX]
        self._bad_news = self._bad_news[STATEMENTS_MAX:]
        certificates = [self._own, *self._others(revocations)]
        digest = self._credentials.digest.to_bytes(8, "big")
        announcement = CredentialAnnouncement(digest, tuple(asking), tuple(certificates), tuple(revocations))
        while len(msgspec.msgpack.encode(announcement)) > self._bytes_max:  # what does not fit comes next time
            if len(certificates) > 1:
                self._news.insert(0, certificates.pop())
            else:
                self._bad_news.insert(0, revocations.pop())
            announcement = CredentialAnnouncement(digest, tuple(asking), tuple(certificates), tuple(revocations))
        self._announce(announcement)
        self._differs = False
        if self._news or self._bad_news or self._asked:
            self._soon()
        else:
            self._schedule(PERIOD_S)

    def _others(self, revocations: list[Statement]) -> list[Statement]:
        """Others' certificates: requested ones, then new ones, then, for a neighbour that lacks something, all."""
        chosen: list[Statement] = []
        while self._asked and len(chosen) < STATEMENTS_MAX - 1:
            address = next(iter(self._asked))
            del self._asked[address]
            statement = self._credentials.statement(address)
            if statement is not None:
                chosen.append(statement)
        while self._news and len(chosen) < STATEMENTS_MAX - 1:
            chosen.append(self._news.pop(0))
        if self._differs and not chosen and not revocations:
            known = [self._credentials.statement(address) for address in self._credentials.addresses()]
            chosen += self._in_turn([statement for statement in known if statement is not None])
            revocations += self._in_turn(self._credentials.revocations())
            self._turn += IN_TURN
        return [statement for statement in chosen if statement != self._own]

    def _in_turn(self, known: list[Statement]) -> list[Statement]:
        return [known[(self._turn + step) % len(known)] for step in range(min(IN_TURN, len(known)))]

    def _resume_held(self) -> None:
        now_s = self._now()
        ready = [held for held in self._held if self._credentials.statement(held.address) is not None]
        self._held = [held for held in self._held if self._credentials.statement(held.address) is None]
        for held in ready:
            self._wanted.pop(held.address, None)
            if now_s < held.until_s:
                self._defer(0.0, held.resume)
            else:
                held.expire()

    def _expire_held(self, now_s: float) -> None:
        late = [held for held in self._held if now_s >= held.until_s]
        self._held = [held for held in self._held if now_s < held.until_s]
        for held in late:
            held.expire()
        waiting = {held.address for held in self._held}
        self._wanted = {address: asked_s for address, asked_s in self._wanted.items() if address in waiting}
