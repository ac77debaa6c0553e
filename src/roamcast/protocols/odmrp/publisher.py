"""The publishing side of a broker: questions, members, channels, and events on their way out.

An event goes to the members that are known to want it, and they may not be all. So its digest is *asked* in a Join
Request. A question that stands answers for later events too: a digest for events with the same digest, an advertisement
for all events of its type. An event whose question is new is sent in this order:

1. At once, on the channels of the members that are known from earlier questions and want it. Their routes may be as old
   as the forwarding timeout; where no node moves they hold.
2. Again, for members that answer the question and do not say that the event has arrived: newcomers, and those whose
   route was broken. It leaves when no such answer came for `answer_pause_s`, and lists whom it is for. Answers from
   farther away may make it leave again, until `route_wait_s` after the question.

So no member waits for another's route, and a member that answers in time is served as if the event had waited for all.

A question is asked again every refresh interval, as long as it is in use: a digest if it was used since it was asked,
an advertisement until no event follows for the forwarding timeout. That keeps routes and members fresh. A broker that
stops publishing stops asking, and its structure fades away (3.6). Under mobility prediction the interval is the time
until the first route is expected to break, within bounds.

Answers bring members with their summaries. They are grouped into channels (`grouping.py`) at most once per refresh
interval, when a request goes out that carries the new list; until then a newcomer is on channel 0. Until the list has
spread, events travel on the old channels of their members too. The list goes into a request if it has changed since the
last one, and into every `member_list_every`th.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from math import inf
from typing import Final, NamedTuple

from roamcast.errors import PeerError
from roamcast.events import Event
from roamcast.fields import HOPS_MAX
from roamcast.protocols.api import INSTANT_S, Host
from roamcast.protocols.batches import batches_of
from roamcast.protocols.components import Component, Inputs
from roamcast.protocols.odmrp.context import entries_in, questions_as_context
from roamcast.protocols.odmrp.encoding import Encoder
from roamcast.protocols.odmrp.grouping import NEWCOMERS, grouping
from roamcast.protocols.odmrp.messages import Data, JoinRequest, MemberEntry
from roamcast.protocols.odmrp.packed import Digest
from roamcast.protocols.odmrp.parameters import OdmrpParameters
from roamcast.protocols.odmrp.prediction import own_motion, shorter
from roamcast.protocols.odmrp.summaries import SummaryEntry


class PublisherTimer(StrEnum):
    ASK = "odmrp.ask"  # key 0; send a Join Request
    SEND = "odmrp.send"  # key 0; the first waiting events have waited long enough
    REFRESH = "odmrp.refresh"  # key 0; ask again what is still in use


LISTINGS: Final = 1 << 16
SEQUENCES: Final = 1 << 31

NO_MEMBER: Final = "no-member"  # an event that no member wants does not leave

Listed = tuple[tuple[int, tuple[tuple[int, int], ...]], ...]


class OpenQuestion:
    def __init__(self, now_s: float, ready_s: float) -> None:
        self.ready_s = ready_s  # its answers are here
        self.asked_s = now_s
        self.used_s = now_s


class KnownMember(NamedTuple):
    """A member as its last answer told."""

    version: int
    entries: tuple[SummaryEntry, ...]
    expires_s: float


class Waiting:
    """An event whose question may still be answered."""

    def __init__(self, event: Event, digest: Digest, hops: int, until_s: float) -> None:
        self.event = event
        self.digest = digest
        self.hops = hops  # frames that the event has behind it
        self.until_s = until_s
        self.due_s = until_s  # when to look at it next
        self.sendings = 0
        self.answered: dict[int, None] = {}  # members that need the event sent again
        self.served: set[int] = set()  # members for which it was, or which said that they have it


class Publisher(Component):
    def __init__(self, host: Host, parameters: OdmrpParameters, encoder: Encoder) -> None:
        super().__init__(host)
        self.parameters = parameters
        self.members: dict[int, KnownMember] = {}
        self.channels: dict[int, list[int]] = {}  # as the last request told
        self._channel_of: dict[int, int] = {}
        self._ungrouped: dict[int, None] = {}  # members whose present summary is in no channel's filter yet
        self._encoder = encoder
        self._grouping = grouping(parameters)
        self._questions: dict[Digest, OpenQuestion] = {}
        self._to_ask: dict[Digest, None] = {}
        self._waiting: list[Waiting] = []
        self._grouped_s = -inf
        self._channel_before: dict[int, int] = {}
        self._settled_s = -inf  # when all nodes know the present channels
        self._sequence = 0
        self._listed: Listed = ()  # as the last list had it
        self._listing = 0
        self._since_listed = 0  # requests since the last list
        self._shortest_lifetime_s: float | None = None
        self._refreshes = False

    def declare(self, inputs: Inputs) -> None:
        inputs.on_timer(PublisherTimer.ASK, self._ask)
        inputs.on_timer(PublisherTimer.SEND, self._look_again)
        inputs.on_timer(PublisherTimer.REFRESH, self._refresh)

    def _set(self, delay_s: float, timer: PublisherTimer) -> None:
        self.host.set_timer(delay_s, (timer.value, 0))

    def advertise(self, kinds: Iterable[int]) -> None:
        """Events of these types will follow: asks for their subscribers ahead of them."""
        for kind in kinds:
            self._use(Digest(kind))

    def publish(self, event: Event, digest: Digest, hops: int) -> None:
        """Sends an event into the mesh, to all that are known to want it and to all that turn out to."""
        question = self._use(Digest(digest.type) if self.parameters.advertisement else digest)
        ready_s = self.host.now() if question is None else question.ready_s
        waiting = Waiting(event, digest, hops, ready_s)
        channels = self._channels_for(digest)
        if channels:
            self._send(waiting, channels, ())
        self._waiting.append(waiting)
        self._look_again(0)

    def on_members(self, members: tuple[MemberEntry, ...], lifetime_s: float | None) -> None:
        """Answers arrived."""
        self._shortest_lifetime_s = shorter(self._shortest_lifetime_s, lifetime_s)
        expires_s = self.host.now() + self.parameters.forwarding_timeout_s
        for member in members:
            known = self.members.get(member.address)
            if member.context is not None:
                try:
                    entries = entries_in(self._encoder.family, member.context)
                except PeerError:
                    continue
            elif known is not None:
                entries = known.entries
            else:
                continue  # forgotten meanwhile; the next request does not list it, so it will tell all again
            if known is None and len(self.members) >= self.parameters.members_max:
                continue
            self.members[member.address] = KnownMember(member.version, entries, expires_s)
            if known is None or known.entries != entries:
                self._ungrouped[member.address] = None
            for waiting in self._waiting:
                self._serve_again(waiting, member, entries)
        self._look_again(0)

    def _serve_again(self, waiting: Waiting, member: MemberEntry, entries: tuple[SummaryEntry, ...]) -> None:
        """An answer came while an event waits for answers."""
        if waiting.event.id in member.arrived:
            waiting.answered.pop(member.address, None)
            waiting.served.add(member.address)
        elif member.address not in waiting.served and self._encoder.family.matches_any(entries, waiting.digest):
            waiting.answered[member.address] = None
            waiting.due_s = waiting.until_s  # the last sending waits for all
            if waiting.sendings < self.parameters.sendings_max - 1:
                waiting.due_s = min(self.host.now() + self.parameters.answer_pause_s, waiting.until_s)

    # -- Asking --------------------------------------------------------------------------------------------------

    def _use(self, digest: Digest) -> OpenQuestion | None:
        """The standing question of a digest; a new one is asked at once. None if there are too many."""
        now_s = self.host.now()
        question = self._questions.get(digest)
        if question is None:
            if len(self._questions) >= self.parameters.open_questions_max:
                return None
            question = self._questions[digest] = OpenQuestion(now_s, now_s + self.parameters.route_wait_s)
            self._to_ask[digest] = None
            self._set(0.0, PublisherTimer.ASK)
        question.used_s = now_s
        return question

    def _ask(self, key: int) -> None:
        now_s = self.host.now()
        if now_s - self._grouped_s >= self.parameters.refresh_interval_s - INSTANT_S and self._group():
            self._settled_s = now_s + self.parameters.channel_overlap_s
        questions = list(self._to_ask)
        self._to_ask.clear()
        for batch in batches_of(questions, self.parameters.questions_max):
            self._request(batch)
        for digest in questions:
            self._questions[digest].asked_s = now_s
        self._shortest_lifetime_s = None
        if not self._refreshes:
            self._refreshes = True
            # A route's lifetime is known only once answers are here.
            first_s = self.parameters.refresh_min_s if self.parameters.mobility_prediction else self._refresh_after_s()
            self._set(first_s, PublisherTimer.REFRESH)

    def _request(self, questions: tuple[Digest, ...]) -> None:
        family, bits = self._encoder.family, self.parameters.digest_bits_per_token
        sent = [each.event.id for each in self._waiting if each.sendings]
        most = self.parameters.named_events_max
        channels = self._list_to_send()
        self._sequence = (self._sequence + 1) % SEQUENCES
        self.host.broadcast(
            JoinRequest(
                publisher=self.host.address,
                life=self.host.life,
                sequence=self._sequence,
                hops=1,
                context=questions_as_context([family.question(each, bits) for each in questions]),
                listing=self._listing,
                channels=channels,
                events=tuple(sent[-most:] if most else []),
                motion=own_motion(self.host) if self.parameters.mobility_prediction else None,
            )
        )

    def _list_to_send(self) -> Listed | None:
        """The list of members, or None if the nodes have it already."""
        listed: Listed = tuple(
            [
                (channel, tuple([(address, self.members[address].version) for address in members]))
                for channel, members in self.channels.items()
            ]
        )
        if listed == self._listed and self._since_listed + 1 < self.parameters.member_list_every:
            self._since_listed += 1
            return None
        if listed != self._listed:
            self._listed = listed
            self._listing = (self._listing + 1) % LISTINGS
        self._since_listed = 0
        return listed

    def _refresh(self, key: int) -> None:
        """Asks again what is in use, forgets what is not, and goes on while anything is left."""
        now_s = self.host.now()
        for digest, question in list(self._questions.items()):
            is_advertisement = digest == Digest(digest.type)
            idle_s = now_s - question.used_s
            if question.used_s > question.asked_s or (
                is_advertisement and idle_s < self.parameters.forwarding_timeout_s
            ):
                self._to_ask[digest] = None
            elif now_s - question.asked_s >= self.parameters.refresh_interval_s - INSTANT_S:
                del self._questions[digest]
        self._refreshes = bool(self._questions)
        if self._refreshes:
            self._set(self._refresh_after_s(), PublisherTimer.REFRESH)
        if self._to_ask:
            self._set(0.0, PublisherTimer.ASK)

    def _refresh_after_s(self) -> float:
        if not self.parameters.mobility_prediction:
            return self.parameters.refresh_interval_s
        lifetime_s = inf if self._shortest_lifetime_s is None else self._shortest_lifetime_s
        return min(max(lifetime_s, self.parameters.refresh_min_s), self.parameters.refresh_max_s)

    # -- Channels ------------------------------------------------------------------------------------------------

    def _group(self) -> bool:
        """Puts all members into channels; true if one is not where it was."""
        now_s = self._grouped_s = self.host.now()
        for address, known in list(self.members.items()):
            if known.expires_s <= now_s:
                del self.members[address]
                self._grouping.remove(address)
            else:
                self._grouping.put(address, known.entries)
        listed = set(sorted(self.members)[: self.parameters.listed_max])
        self._ungrouped = dict.fromkeys(address for address in self.members if address not in listed)
        channels = {
            channel: [address for address in members if address in listed]
            for channel, members in self._grouping.channels().items()
        }
        channel_of = {address: channel for channel, members in channels.items() for address in members}
        moved = channel_of != self._channel_of
        if moved:
            sizes = " ".join(f"{channel}:{len(members)}" for channel, members in channels.items())
            self.host.structure("channels", value=float(len(channels)), detail=sizes)
            self._channel_before = self._channel_of
        self.channels, self._channel_of = channels, channel_of
        return moved

    def _channels_for(self, digest: Digest) -> list[int]:
        wanted = set(self._grouping.matching(digest))
        for address in self._ungrouped:
            if self._encoder.family.matches_any(self.members[address].entries, digest):
                wanted.add(self._channel_of.get(address, NEWCOMERS))
        if self.host.now() < self._settled_s:
            members = [address for channel in sorted(wanted) for address in self.channels.get(channel, ())]
            wanted.update(self._channel_before.get(address, NEWCOMERS) for address in members)
        return sorted(wanted)

    # -- Events --------------------------------------------------------------------------------------------------

    def _look_again(self, key: int) -> None:
        """Sends what is due, forgets what has waited for all answers, and comes back when the next is due."""
        now_s = self.host.now() + INSTANT_S
        for waiting in self._waiting:
            if waiting.due_s <= now_s:
                self._send_late(waiting)
                waiting.due_s = waiting.until_s
        self._waiting = [each for each in self._waiting if each.until_s > now_s]
        if self._waiting:
            first_s = min(each.due_s for each in self._waiting)
            self._set(max(0.0, first_s - self.host.now()), PublisherTimer.SEND)

    def _send_late(self, waiting: Waiting) -> None:
        late = tuple(waiting.answered)
        waiting.answered.clear()
        if late:
            waiting.served.update(late)
            channels = sorted({self._channel_of.get(address, NEWCOMERS) for address in late})
            self._send(waiting, channels, late if len(late) <= self.parameters.late_max else ())
        elif waiting.sendings == 0 and waiting.until_s <= self.host.now() + INSTANT_S:
            self.host.dropped(NO_MEMBER, waiting.event.id)

    def _send(self, waiting: Waiting, channels: list[int], members: tuple[int, ...]) -> None:
        message = Data(
            publisher=self.host.address,
            channels=tuple(channels),
            hops=min(waiting.hops + 1, HOPS_MAX),
            event=waiting.event,
            sending=waiting.sendings,
            members=members,
        )
        waiting.sendings += 1
        self.host.broadcast(message)
