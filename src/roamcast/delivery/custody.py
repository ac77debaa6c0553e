"""What a node offers its neighbours, and what it fetches from them.

The log. Every wanted event that a node holds is an entry in its log, in the order in which it became one.
A beat lists the newest entries. A neighbour that has read the log up to there knows all of it; others ask for the rest
(`Ask`, `Offer`). So an event costs a few bytes per node to be known to all neighbours, once, and a node that was away
reads on where it stopped. The log starts over, with another epoch, when a node starts, and when most of it is gone.

Fetching. An id in a neighbour's log that this node does not know is missing here. If it has not come by itself after
`patience_s`, it is fetched from a neighbour that has it, by unicast: the events worth most first, at most `IDS_MAX` at
a time per neighbour. If no answer comes, another neighbour is asked, with doubling pauses, as long as one has it.

A neighbour that lists an event of ours has taken custody of it: that is all an acknowledgement takes.

A neighbour that makes things up costs a bounded share: `ANSWERS_MAX` of its messages are answered in a beat period,
none while many frames wait at the link, and it gets half the room for what is missing.
"""

from collections.abc import Callable
from enum import StrEnum
from typing import Final

from roamcast.delivery.holdings import Holdings
from roamcast.delivery.messages import IDS_MAX, Ask, Beat, Carried, Carry, Fetch, Offer
from roamcast.delivery.settings import DeliverySettings
from roamcast.events import NO_EVENT, NUMBER_BITS
from roamcast.fields import HOPS_MAX
from roamcast.protocols.api import Host
from roamcast.protocols.batches import batches, encoded_bytes, room_bytes
from roamcast.protocols.components import Component, Inputs

NEIGHBOURS_MAX: Final = 256
MISSING_MAX: Final = 8192
LISTED_MAX: Final = MISSING_MAX // 2  # of these, that one neighbour listed first
ANSWERS_MAX: Final = 64  # messages of one neighbour that are answered in a beat period
HOLDERS_MAX: Final = 8  # neighbours remembered per missing event
CUSTODIANS_MAX: Final = 64  # neighbours remembered per own event
EPOCHS_PER_LIFE: Final = 1 << 20


class CustodyTimer(StrEnum):
    BEAT = "delivery.beat"  # a period has passed, or the log has grown
    FETCH = "delivery.fetch"  # something is missing and may be asked for now


class _Neighbour:
    def __init__(self) -> None:
        self.epoch = -1
        self.cursor = 0  # up to here its log is known
        self.under_way = 0  # ids that it has been asked for and has not sent
        self.listed = 0  # ids that are missing here, and that it listed first
        self.answers = 0  # to it, since the time below
        self.answers_since_s = 0.0


class _Missing:
    def __init__(self, due_s: float, listed_by: _Neighbour) -> None:
        self.listed_by = listed_by
        self.holders: list[int] = []
        self.due_s = due_s  # when it may be asked for
        self.asked = -1  # the neighbour that was asked last
        self.tries = 0


class Custody(Component):
    def __init__(
        self,
        host: Host,
        settings: DeliverySettings,
        holdings: Holdings,
        *,
        digest: Callable[[], int],
        on_digest: Callable[[int], None],
        on_tick: Callable[[], None],
        on_carried: Callable[[Carried], bool],
        on_custody: Callable[[int, int], None],
    ) -> None:
        super().__init__(host)
        self._settings = settings
        self._holdings = holdings
        self._digest = digest  # of the records this node knows
        self._on_digest = on_digest
        self._on_tick = on_tick  # before every beat
        self._on_carried = on_carried  # takes an event; false if it cannot be stored now
        self._on_custody = on_custody  # (event, neighbour): it holds an event of ours
        self._epoch = host.life * EPOCHS_PER_LIFE % (1 << 62)
        self._log: list[int] = []
        self._logged: set[int] = set()
        self._fresh: list[int] = []  # lengths of the log at the last beats
        self._neighbours: dict[int, _Neighbour] = {}  # heard least recently first
        self._missing: dict[int, _Missing] = {}
        self._beat_s = float("inf")  # when the next beat is due
        self._fetch_s = float("inf")
        self._resent: dict[int, int] = {}  # by neighbour: since the last beat
        self.fetched = 0
        self.carried = 0

    def declare(self, inputs: Inputs) -> None:
        inputs.on(Beat, self._on_beat)
        inputs.on(Ask, self._on_ask)
        inputs.on(Offer, self._on_offer)
        inputs.on(Fetch, self._on_fetch)
        inputs.on(Carry, self._on_carry)
        inputs.on_failure(Fetch, self._on_fetch_failed)
        inputs.on_failure(Carry, self._on_carry_failed)
        inputs.on_timer(CustodyTimer.BEAT, self._beat)
        inputs.on_timer(CustodyTimer.FETCH, self._fetch)

    def start(self) -> None:
        self._beat_in(self._settings.beat_delay_s)

    @property
    def missing(self) -> int:
        """Events that neighbours hold and this node does not."""
        return len(self._missing)

    def offer(self, event_id: int) -> None:
        """This node holds an event that some node wants."""
        if event_id not in self._logged:
            self._logged.add(event_id)
            self._log.append(event_id)
            self._beat_in(self._settings.beat_delay_s)

    def is_offered(self, event_id: int) -> bool:
        return event_id in self._logged

    def arrived(self, event_id: int) -> None:
        """The event came by another way, or is not wanted here."""
        missing = self._missing.pop(event_id, None)
        if missing is None:
            return
        missing.listed_by.listed -= 1
        if missing.asked in self._neighbours:
            neighbour = self._neighbours[missing.asked]
            neighbour.under_way = max(0, neighbour.under_way - 1)

    def gone(self, ids: list[int]) -> None:
        """These events are no longer held."""
        for event_id in ids:
            self._logged.discard(event_id)
        if len(self._log) > 2 * len(self._logged) + 1024:
            self._log = [event_id for event_id in self._log if event_id in self._logged]
            self._epoch += 1
            self._fresh.clear()

    def read_again(self) -> None:
        """More is wanted than before: neighbours may have had it all along."""
        for neighbour in self._neighbours.values():
            neighbour.cursor = 0

    # -- The log -------------------------------------------------------------------------------------------------

    def _beat_in(self, delay_s: float) -> None:
        delay_s *= 0.5 + 0.5 * self.host.random.random()
        due_s = self.host.now() + delay_s
        if due_s < self._beat_s:
            self._beat_s = due_s
            self.host.set_timer(delay_s, (CustodyTimer.BEAT, 0))

    def _beat(self, key: int) -> None:
        self._beat_s = float("inf")
        self._on_tick()
        self._resent.clear()
        head = len(self._log)
        first = max(self._fresh[0] if self._fresh else 0, head - IDS_MAX)
        self._fresh = [*self._fresh[-(self._settings.fresh_beats - 1) :], head]
        self.host.broadcast(Beat(self._epoch, first, self._entries(first, head), self._digest()))
        self._beat_in(self._settings.beat_period_s)

    def _entries(self, first: int, end: int) -> tuple[int, ...]:
        return tuple([each if each in self._logged else NO_EVENT for each in self._log[first:end]])

    def _on_beat(self, sender: int, message: Beat) -> None:
        self._on_digest(message.records)
        self._read(sender, message.epoch, message.first, message.ids, message.first + len(message.ids))

    def _on_ask(self, sender: int, message: Ask) -> None:
        first = message.cursor if message.epoch == self._epoch else 0
        end = min(len(self._log), first + IDS_MAX)
        if first <= len(self._log) and self._may_answer(self._neighbour(sender)):
            self.host.send(sender, Offer(self._epoch, first, self._entries(first, end), len(self._log)))

    def _on_offer(self, sender: int, message: Offer) -> None:
        self._read(sender, message.epoch, message.first, message.ids, message.head)

    def _read(self, sender: int, epoch: int, first: int, ids: tuple[int, ...], head: int) -> None:
        neighbour = self._neighbour(sender)
        if neighbour.epoch != epoch:
            neighbour.epoch, neighbour.cursor = epoch, 0
        for at, event_id in enumerate(ids, first):
            if event_id and not self._listed(sender, event_id):
                head = at  # there is no room to remember it: read on from here later
                break
            if neighbour.cursor == at:
                neighbour.cursor = at + 1
        if neighbour.cursor < first or (ids and neighbour.cursor < head):
            if self._may_answer(neighbour):
                self.host.send(sender, Ask(epoch, neighbour.cursor))
        elif neighbour.cursor < head:
            neighbour.cursor = head  # an offer without entries: nothing lies between

    def _neighbour(self, sender: int) -> _Neighbour:
        neighbour = self._neighbours.pop(sender, None)
        if neighbour is None:
            neighbour = _Neighbour()
            if len(self._neighbours) >= NEIGHBOURS_MAX:
                del self._neighbours[next(iter(self._neighbours))]
        self._neighbours[sender] = neighbour
        return neighbour

    def _may_answer(self, neighbour: _Neighbour) -> bool:
        """Whether a message of this neighbour is answered now; counts it if so."""
        now_s = self.host.now()
        if now_s - neighbour.answers_since_s >= self._settings.beat_period_s:
            neighbour.answers_since_s, neighbour.answers = now_s, 0
        if neighbour.answers >= ANSWERS_MAX or self.host.backlog() >= self._settings.backlog_max:
            return False
        neighbour.answers += 1
        return True

    def _listed(self, sender: int, event_id: int) -> bool:
        """A neighbour holds this event. False: it is missing here, and there is no room to remember that."""
        if event_id >> NUMBER_BITS == self.host.address:
            self._on_custody(event_id, sender)
            return True
        if event_id in self._holdings:
            return True
        missing = self._missing.get(event_id)
        if missing is None:
            neighbour = self._neighbours[sender]
            if len(self._missing) >= MISSING_MAX or neighbour.listed >= LISTED_MAX:
                return False
            neighbour.listed += 1
            missing = self._missing[event_id] = _Missing(self.host.now() + self._settings.patience_s, neighbour)
            self._fetch_in(self._settings.patience_s)
        if sender not in missing.holders and len(missing.holders) < HOLDERS_MAX:
            missing.holders.append(sender)
        return True

    # -- Fetching ------------------------------------------------------------------------------------------------

    def _fetch_in(self, delay_s: float) -> None:
        due_s = self.host.now() + delay_s
        if due_s < self._fetch_s:
            self._fetch_s = due_s
            self.host.set_timer(delay_s, (CustodyTimer.FETCH, 0))

    def _fetch(self, key: int) -> None:
        """Asks for what is due."""
        self._fetch_s = float("inf")
        now_s = self.host.now()
        wanted: dict[int, list[int]] = {}
        next_s = float("inf")
        for event_id, missing in list(self._missing.items()):
            if missing.due_s > now_s + 1e-9:
                next_s = min(next_s, missing.due_s)
                continue
            holder = self._choose(event_id, missing)
            if holder is None:
                continue
            asked = wanted.setdefault(holder, [])
            neighbour = self._neighbours[holder]
            if len(asked) + neighbour.under_way >= IDS_MAX:
                continue  # it is asked for when what is under way has come
            asked.append(event_id)
            missing.asked = holder
            missing.tries += 1
            missing.due_s = now_s + self._pause_s(missing.tries)
            next_s = min(next_s, missing.due_s)
        for holder, ids in wanted.items():
            if ids:
                self._neighbours[holder].under_way += len(ids)
                self.host.send(holder, Fetch(tuple(ids)))
        if next_s < float("inf"):
            self._fetch_in(next_s - now_s)
        elif self._missing:
            self._fetch_in(self._settings.fetch_timeout_s)

    def _pause_s(self, tries: int) -> float:
        """How long an answer may take. After a few tries the neighbour is probably out of reach."""
        settings = self._settings
        pause_s = settings.fetch_timeout_s * 2.0 ** max(0, tries - settings.fetch_tries_patient)
        return min(pause_s, settings.fetch_pause_max_s)

    def _choose(self, event_id: int, missing: _Missing) -> int | None:
        """The neighbour to ask next; None: there is none left, and the event is given up until one lists it again."""
        if missing.asked in self._neighbours:  # it was asked and did not answer
            neighbour = self._neighbours[missing.asked]
            neighbour.under_way = max(0, neighbour.under_way - 1)
            if missing.asked in missing.holders:
                missing.holders.remove(missing.asked)
                missing.holders.append(missing.asked)
        missing.asked = -1
        missing.holders = [each for each in missing.holders if each in self._neighbours]
        if missing.holders and missing.tries < self._settings.fetch_tries_max:
            return missing.holders[0]
        del self._missing[event_id]
        missing.listed_by.listed -= 1
        for holder in missing.holders:
            self._neighbours[holder].cursor = 0  # it is found again when the log is read again
        return None

    def _on_fetch(self, sender: int, message: Fetch) -> None:
        if not self._may_answer(self._neighbour(sender)):
            return  # it asks again
        gone = [each for each in message.ids if self._holdings.held(each) is None]
        there = [held for held in map(self._holdings.held, message.ids) if held is not None]
        there.sort(key=lambda held: -held.worth)
        carried: list[Carried] = []
        for held in there:
            event = self._holdings.body(held.id)
            if event is not None:
                carried.append(Carried(event, self._holdings.age_s(held), held.hops))
        room = room_bytes(self.host, Carry((), tuple(gone)))
        for batch in batches(carried, encoded_bytes, max(room, 64), IDS_MAX):
            if self.host.backlog() >= self._settings.backlog_max:
                break  # the rest is asked for again
            self.carried += len(batch)
            self.host.send(sender, Carry(tuple(batch), tuple(gone)))
            gone = []
        if gone:
            self.host.send(sender, Carry((), tuple(gone)))

    def _on_carry(self, sender: int, message: Carry) -> None:
        for each in message.carried:
            is_missing = each.event.id in self._missing
            hops = min(each.hops + 1, HOPS_MAX)
            if self._on_carried(Carried(each.event, each.age_s, hops)):
                self.fetched += is_missing
                self.arrived(each.event.id)
        for event_id in message.gone:
            missing = self._missing.get(event_id)
            if missing is not None and sender in missing.holders:
                missing.holders.remove(sender)
                if not missing.holders:
                    self.arrived(event_id)
        if self._missing:
            self._fetch_in(0.0)

    def _on_fetch_failed(self, neighbour: int, message: Fetch) -> None:
        """The neighbour is out of reach, or the channel is busy: another one is asked at once."""
        for event_id in message.ids:
            missing = self._missing.get(event_id)
            if missing is not None and missing.asked == neighbour:
                missing.due_s = self.host.now()
                self._fetch_in(self._settings.beat_delay_s)

    def _on_carry_failed(self, neighbour: int, message: Carry) -> None:
        """Retransmits at once, a few times. After that, the neighbour asks again if it is still there."""
        resent = self._resent.get(neighbour, 0)
        if resent < self._settings.resends_max:
            self._resent[neighbour] = resent + 1
            self.host.send(neighbour, message)
