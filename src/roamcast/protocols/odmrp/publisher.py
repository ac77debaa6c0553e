"""The publishing side of a broker: questions, members, channels, and events on their way out.

An event may only leave when its publisher knows who wants it. So its digest is *asked* in a Join Request first, and the
event waits for the answers: `route_wait_s`, or longer if answers took longer before. A question that stands answers for
later events too: a digest for events with the same digest, an advertisement for all events of its type.

A question is asked again every refresh interval, as long as it is in use: a digest if it was used since it was asked,
an advertisement until no event follows for the forwarding timeout. That keeps routes and members fresh. A broker that
stops publishing stops asking, and its structure fades away (3.6). Under mobility prediction the interval is the time
until the first route is expected to break, within bounds.

Answers bring members with their summaries. They are grouped into channels (`grouping.py`) at most once per refresh
interval, when a request goes out that tells the nodes on the way; until then a newcomer is on channel 0. Events wait
until that news has spread, as they wait for answers.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf
from typing import NamedTuple

from roamcast.events import Event
from roamcast.protocols.api import Host, Timer
from roamcast.protocols.odmrp.grouping import NEWCOMERS, grouping
from roamcast.protocols.odmrp.messages import Data, JoinRequest, Member
from roamcast.protocols.odmrp.parameters import OdmrpParameters
from roamcast.protocols.odmrp.prediction import own_motion, shorter
from roamcast.protocols.odmrp.summaries import Digest, Entry

ASK = "publisher.ask"  # key 0; send a Join Request
SEND = "publisher.send"  # key 0; the first waiting events have waited long enough
REFRESH = "publisher.refresh"  # key 0; ask again what is still in use

QUESTIONS_PER_REQUEST = 4  # so that a request fits a frame
LISTED_MAX = 80  # members, for the same reason; all others stay on channel 0
SEQUENCES_PER_S = 1000  # a broker that comes back begins above where it was, as long as it asks no more often
WAIT_MARGIN = 1.25  # of the slowest answer so far
WAITS_MAX = 4  # but never more than so many times the usual wait
INSTANT_S = 1e-9  # a timer may fire this much early, by rounding

NO_MEMBER = "no-member"  # an event that nobody wants does not leave


class Question:
    def __init__(self, now_s: float, ready_s: float) -> None:
        self.ready_s = ready_s  # its first answers are here
        self.asked_s = now_s
        self.used_s = now_s


class Known(NamedTuple):
    """A member as its last answer told."""

    version: int
    entries: tuple[Entry, ...]
    expires_s: float


class Waiting(NamedTuple):
    ready_s: float
    event: Event
    digest: Digest
    hops: int  # frames that the event has behind it


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
        self._settled_s = -inf  # when all nodes know the present channels
        self._sequence = int(host.now() * SEQUENCES_PER_S)
        self._shortest_lifetime_s: float | None = None
        self._refreshes = False
        self._requested_s = -inf
        self._slowest_answer_s = 0.0

    def on_timer(self, timer: Timer) -> bool:
        """True if the timer was the publisher's."""
        if timer[0] == ASK:
            self._ask()
        elif timer[0] == SEND:
            self._send_ready()
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
        """Sends an event into the mesh, once it is known who wants it."""
        question = self._use(Digest(digest.type) if self.parameters.advertisement else digest)
        self._waiting.append(Waiting(question.ready_s, event, digest, hops))
        self._send_ready()

    def on_members(self, members: tuple[Member, ...], lifetime_s: float | None) -> None:
        """Answers arrived."""
        self._shortest_lifetime_s = shorter(self._shortest_lifetime_s, lifetime_s)
        self._slowest_answer_s = max(self._slowest_answer_s, self.host.now() - self._requested_s)
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

    @property
    def _wait_s(self) -> float:
        """How long answers may take."""
        usual_s = self.parameters.route_wait_s
        return min(max(usual_s, WAIT_MARGIN * self._slowest_answer_s), WAITS_MAX * usual_s)

    # -- Asking --------------------------------------------------------------------------------------------------

    def _use(self, digest: Digest) -> Question:
        """The standing question of a digest; a new one is asked at once."""
        now_s = self.host.now()
        question = self._questions.get(digest)
        if question is None:
            question = self._questions[digest] = Question(now_s, now_s + self._wait_s)
            self._to_ask[digest] = None
            self.host.set_timer(0.0, (ASK, 0))
        question.used_s = now_s
        return question

    def _ask(self) -> None:
        now_s = self.host.now()
        if now_s - self._grouped_s >= self.parameters.refresh_interval_s - INSTANT_S and self._group():
            self._settled_s = now_s + self._wait_s
        channels = tuple(
            (channel, tuple((address, self.members[address].version) for address in members))
            for channel, members in self.channels.items()
        )
        motion = own_motion(self.host) if self.parameters.mobility_prediction else None
        questions = list(self._to_ask)
        self._to_ask.clear()
        for start in range(0, len(questions), QUESTIONS_PER_REQUEST):
            part = tuple(questions[start : start + QUESTIONS_PER_REQUEST])
            self._sequence += 1
            self.host.broadcast(JoinRequest(self.host.address, self._sequence, 1, part, channels, motion))
        for digest in questions:
            self._questions[digest].asked_s = now_s
        self._requested_s = now_s
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
        self.channels, self._channel_of = channels, channel_of
        return moved

    def _channels_for(self, digest: Digest) -> list[int]:
        wanted = set(self._grouping.matching(digest))
        for address in self._ungrouped:
            if self._encoder.family.matches_any(self.members[address].entries, digest):
                wanted.add(self._channel_of.get(address, NEWCOMERS))
        return sorted(wanted)

    # -- Events --------------------------------------------------------------------------------------------------

    def _send_ready(self) -> None:
        now_s = self.host.now() + INSTANT_S
        ready = [each for each in self._waiting if max(each.ready_s, self._settled_s) <= now_s]
        self._waiting = [each for each in self._waiting if max(each.ready_s, self._settled_s) > now_s]
        for each in ready:
            self._send(each)
        if self._waiting:
            first_s = min(max(each.ready_s, self._settled_s) for each in self._waiting)
            self.host.set_timer(max(0.0, first_s - self.host.now()), (SEND, 0))

    def _send(self, waiting: Waiting) -> None:
        channels = self._channels_for(waiting.digest)
        if channels:
            self.host.broadcast(Data(self.host.address, tuple(channels), waiting.hops + 1, waiting.event))
        else:
            self.host.dropped(NO_MEMBER, waiting.event.id)
