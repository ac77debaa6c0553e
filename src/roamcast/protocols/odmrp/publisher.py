"""The publishing side of a broker: questions, members, channels, and events on their way out.

An event goes to the members that are known to want it, and they may not be all. So its digest is *asked* in a Join
Request. A question that stands answers for later events too: a digest for events with the same digest, an advertisement
for all events of its type. An event whose question is new is sent in this order:

1. At once, on the channels of the members that are known from earlier questions and want it. Their routes may be as old
   as the forwarding timeout; where nobody moves they hold.
2. Again, for members that answer the question and do not say that the event has arrived: newcomers, and those whose
   route was broken. It leaves when no such answer came for `answer_pause_s`, and lists whom it is for. Answers from
   farther away may make it leave again, until `route_wait_s` after the question.

So nobody waits for another's route, and whoever answers in time is served, as if the event had waited for all.

A question is asked again every refresh interval, as long as it is in use: a digest if it was used since it was asked,
an advertisement until no event follows for the forwarding timeout. That keeps routes and members fresh. A broker that
stops publishing stops asking, and its structure fades away (3.6). Under mobility prediction the interval is the time
until the first route is expected to break, within bounds.

Answers bring members with their summaries. They are grouped into channels (`grouping.py`) at most once per refresh
interval, when a request goes out that tells the nodes on the way; until then a newcomer is on channel 0. Until that
news has spread, events travel on the old channels of their members too.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf
from typing import Final, NamedTuple

from roamcast.events import Event
from roamcast.protocols.api import Host, Timer
from roamcast.protocols.odmrp.grouping import NEWCOMERS, grouping
from roamcast.protocols.odmrp.messages import Data, JoinRequest, Member
from roamcast.protocols.odmrp.packed import Digest
from roamcast.protocols.odmrp.parameters import OdmrpParameters
from roamcast.protocols.odmrp.prediction import own_motion, shorter
from roamcast.protocols.odmrp.summaries import Entry

ASK: Final = "publisher.ask"  # key 0; send a Join Request
SEND: Final = "publisher.send"  # key 0; the first waiting events have waited long enough
REFRESH: Final = "publisher.refresh"  # key 0; ask again what is still in use

QUESTIONS_PER_REQUEST: Final = 4  # so that a request fits a frame
EVENTS_PER_REQUEST: Final = 4  # for the same reason
LISTED_MAX: Final = 80  # members, for the same reason; all others stay on channel 0
SEQUENCES_PER_S: Final = 1000  # a broker that comes back begins above where it was, as long as it asks no more often
SENDINGS_MAX: Final = 16  # of one event
LATE_MAX: Final = 12  # listed in one sending, so that it fits a frame with any event; more: all of their channels
INSTANT_S: Final = 1e-9  # a timer may fire this much early, by rounding

NO_MEMBER: Final = "no-member"  # an event that nobody wants does not leave


class Question:
    def __init__(self, now_s: float, ready_s: float) -> None:
        self.ready_s = ready_s  # its answers are here
        self.asked_s = now_s
        self.used_s = now_s


class Known(NamedTuple):
    """A member as its last answer told."""

    version: int
    entries: tuple[Entry, ...]
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


class Publisher:
    def __init__(self, host: Host, parameters: OdmrpParameters) -> None:
        self.host = host
        self.parameters = parameters
        self.members: dict[int, Known] = {}
        self.channels: dict[int, list[int]] = {}  # as the last request told
        self._channel_of: dict[int, int] = {}
        self._ungrouped: dict[int, None] = {}  # members whose present summary is in no channel's filter yet
        self._encoder = parameters.encoder()
        self._grouping = grouping(parameters)
        self._questions: dict[Digest, Question] = {}
        self._to_ask: dict[Digest, None] = {}
        self._waiting: list[Waiting] = []
        self._grouped_s = -inf
        self._channel_before: dict[int, int] = {}
        self._settled_s = -inf  # when all nodes know the present channels
        self._sequence = int(host.now() * SEQUENCES_PER_S)
        self._shortest_lifetime_s: float | None = None
        self._refreshes = False

    def on_timer(self, timer: Timer) -> bool:
        """True if the timer was the publisher's."""
        if timer[0] == ASK:
            self._ask()
        elif timer[0] == SEND:
            self._look_again()
        elif timer[0] == REFRESH:
            self._refresh()
        else:
            return False
        return True

    def advertise(self, kinds: Iterable[int]) -> None:
        """Events of these types will follow: asks for their subscribers ahead of them."""
        for kind in kinds:
            self._use(Digest(kind))

    def publish(self, event: Event, digest: Digest, hops: int) -> None:
        """Sends an event into the mesh, to all that are known to want it and to all that turn out to."""
        question = self._use(Digest(digest.type) if self.parameters.advertisement else digest)
        waiting = Waiting(event, digest, hops, question.ready_s)
        channels = self._channels_for(digest)
        if channels:
            self._send(waiting, channels, ())
        self._waiting.append(waiting)
        self._look_again()

    def on_members(self, members: tuple[Member, ...], lifetime_s: float | None) -> None:
        """Answers arrived."""
        self._shortest_lifetime_s = shorter(self._shortest_lifetime_s, lifetime_s)
        expires_s = self.host.now() + self.parameters.forwarding_timeout_s
        for member in members:
            known = self.members.get(member.address)
            if member.entries is not None:
                entries = tuple(self._encoder.family.unpacked(each) for each in member.entries)
            elif known is not None:
                entries = known.entries
            else:
                continue  # forgotten meanwhile; the next request does not list it, so it will tell all again
            self.members[member.address] = Known(member.version, entries, expires_s)
            if known is None or known.entries != entries:
                self._ungrouped[member.address] = None
            for waiting in self._waiting:
                self._serve_again(waiting, member, entries)
        self._look_again()

    def _serve_again(self, waiting: Waiting, member: Member, entries: tuple[Entry, ...]) -> None:
        """An answer came while an event waits for answers."""
        if waiting.event.id in member.arrived:
            waiting.answered.pop(member.address, None)
            waiting.served.add(member.address)
        elif member.address not in waiting.served and self._encoder.family.matches_any(entries, waiting.digest):
            waiting.answered[member.address] = None
            waiting.due_s = waiting.until_s  # the last sending waits for all
            if waiting.sendings < SENDINGS_MAX - 1:
                waiting.due_s = min(self.host.now() + self.parameters.answer_pause_s, waiting.until_s)

    # -- Asking --------------------------------------------------------------------------------------------------

    def _use(self, digest: Digest) -> Question:
        """The standing question of a digest; a new one is asked at once."""
        now_s = self.host.now()
        question = self._questions.get(digest)
        if question is None:
            question = self._questions[digest] = Question(now_s, now_s + self.parameters.route_wait_s)
            self._to_ask[digest] = None
            self.host.set_timer(0.0, (ASK, 0))
        question.used_s = now_s
        return question

    def _ask(self) -> None:
        now_s = self.host.now()
        if now_s - self._grouped_s >= self.parameters.refresh_interval_s - INSTANT_S and self._group():
            self._settled_s = now_s + self.parameters.channel_overlap_s
        channels = tuple(
            (channel, tuple((address, self.members[address].version) for address in members))
            for channel, members in self.channels.items()
        )
        motion = own_motion(self.host) if self.parameters.mobility_prediction else None
        events = tuple(each.event.id for each in self._waiting if each.sendings)[-EVENTS_PER_REQUEST:]
        questions = list(self._to_ask)
        self._to_ask.clear()
        for start in range(0, len(questions), QUESTIONS_PER_REQUEST):
            part = tuple(questions[start : start + QUESTIONS_PER_REQUEST])
            self._sequence += 1
            self.host.broadcast(JoinRequest(self.host.address, self._sequence, 1, part, channels, events, motion))
        for digest in questions:
            self._questions[digest].asked_s = now_s
        self._shortest_lifetime_s = None
        if not self._refreshes:
            self._refreshes = True
            # A route's lifetime is known only once answers are here.
            first_s = self.parameters.refresh_min_s if self.parameters.mobility_prediction else self._refresh_after_s()
            self.host.set_timer(first_s, (REFRESH, 0))

    def _refresh(self) -> None:
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
            self.host.set_timer(self._refresh_after_s(), (REFRESH, 0))
        if self._to_ask:
            self.host.set_timer(0.0, (ASK, 0))

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
        listed = sorted(self.members)[:LISTED_MAX]
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

    def _look_again(self) -> None:
        """Sends what is due, forgets what has waited for all answers, and comes back when the next is due."""
        now_s = self.host.now() + INSTANT_S
        for waiting in self._waiting:
            if waiting.due_s <= now_s:
                self._send_late(waiting)
                waiting.due_s = waiting.until_s
        self._waiting = [each for each in self._waiting if each.until_s > now_s]
        if self._waiting:
            first_s = min(each.due_s for each in self._waiting)
            self.host.set_timer(max(0.0, first_s - self.host.now()), (SEND, 0))

    def _send_late(self, waiting: Waiting) -> None:
        late = tuple(waiting.answered)
        waiting.answered.clear()
        if late:
            waiting.served.update(late)
            channels = sorted({self._channel_of.get(address, NEWCOMERS) for address in late})
            self._send(waiting, channels, late if len(late) <= LATE_MAX else ())
        elif waiting.sendings == 0 and waiting.until_s <= self.host.now() + INSTANT_S:
            self.host.dropped(NO_MEMBER, waiting.event.id)

    def _send(self, waiting: Waiting, channels: list[int], members: tuple[int, ...]) -> None:
        message = Data(
            self.host.address, tuple(channels), waiting.hops + 1, waiting.event, waiting.sendings, members
        )
        waiting.sendings += 1
        self.host.broadcast(message)
