"""Links, as measured: which nodes this node hears, how well, and which nodes hear it.

Hellos list the nodes that the sender hears (`heard`) and those with which it has a link in both directions (`mutual`).
Each node thus knows its own links in both directions and those of its neighbours: two hops in all. Hellos are numbered,
so a gap in the numbers reveals how many were lost; the share that arrives is the quality of the link. Any other frame
also shows that its sender is present.

The hello period depends on how fast the node's links change, not counting changes that positions predict. On a slow
radio (`slow_radio_s`) hellos are rare, and nothing else is said about the network: the knowledge would not be worth the
delay of events. A node that meets a new neighbour sends a hello soon, because its list has changed. A link on which an
acknowledged frame has failed is *cut*: it is not used until something is heard over it.
"""

from enum import StrEnum
from typing import Final

from roamcast.protocols.api import Host, Message
from roamcast.protocols.components import Component, Inputs
from roamcast.protocols.waymark.messages import Hello
from roamcast.protocols.waymark.parameters import WaymarkParameters
from roamcast.protocols.waymark.pending import PendingNews
from roamcast.protocols.waymark.places import Places
from roamcast.protocols.waymark.receipts import ReceiptsDue
from roamcast.protocols.waymark.records import Records

NEIGHBOURS_MAX: Final = 256
"""Neighbours whose state is kept; further ones are ignored."""

PERIOD_MAX_S: Final = 3600.0
"""No hello period counts as longer than this."""

_NOBODY: Final[frozenset[int]] = frozenset()


class LinkTimer(StrEnum):
    HELLO = "links.hello"  # the next hello is due
    DRAIN = "links.drain"  # look whether the last hello has left


class Neighbour:
    """What is known of a node that was heard."""

    __slots__ = (
        "heard_s", "hears_me", "is_cut", "is_far", "is_stranger", "mutual", "number", "passes_on", "period_s",
        "quality", "trust", "until_s",
    )  # fmt: skip

    def __init__(self, passes_on: float) -> None:
        self.number = -1  # of the last hello; -1: none so far
        self.quality = 1.0  # share of its hellos that arrive, smoothed
        self.trust = 1.0  # share of events that it confirms at once, smoothed
        self.passes_on = passes_on  # share of events that it is heard passing on, smoothed; any counts
        self.heard_s = 0.0  # when anything was heard last
        self.period_s = 1.0  # of its hellos
        self.until_s = 0.0  # gone if nothing is heard until then
        self.hears_me = False  # by its last hello
        self.is_cut = False  # an acknowledged frame to it has failed since it was heard last
        self.is_stranger = True  # only one of its hellos was heard so far
        self.is_far = False  # it was heard though it is too far away for that by its place
        self.mutual: frozenset[int] = _NOBODY  # its neighbours in both directions, by its last hello


class Links(Component):
    def __init__(
        self,
        host: Host,
        parameters: WaymarkParameters,
        records: Records,
        places: Places,
        news: PendingNews,
        receipts: ReceiptsDue,
    ) -> None:
        super().__init__(host)
        self._parameters = parameters
        self._records = records
        self._places = places
        self._news = news
        self._receipts = receipts
        self.known: dict[int, Neighbour] = {}
        self.changes = 0  # counts changes of links, for caches
        self.period_s = parameters.hello_min_s
        self._number = 0
        self._last_hello_s = -parameters.hello_min_s
        self._slow_share = 0.0  # of hellos that take long to leave, smoothed
        self._due_s = 0.0
        self._settled_s = host.now() + parameters.settle_s
        self._late_periods = parameters.hello_late
        self._churn_per_s = parameters.churn_assumed  # links gained or lost, per link
        self._events_per_s = parameters.events_assumed
        self._events = 0  # since the last hello
        self._mutual_then: frozenset[int] = _NOBODY
        self._cached_s = -1.0
        self._cached: frozenset[int] = _NOBODY

    def declare(self, inputs: Inputs) -> None:
        inputs.on_any_message(self._on_any_message)
        inputs.on_any_failure(self._on_failure)
        inputs.on_timer(LinkTimer.HELLO, self._say_hello)
        inputs.on_timer(LinkTimer.DRAIN, self._look_for_drain)

    def start(self) -> None:
        self._schedule(self.host.random.random() * self._parameters.hello_min_s / 2)

    # -- What siblings ask -----------------------------------------------------------------------------------------

    def neighbours(self) -> frozenset[int]:
        """Those with which frames go both ways at present."""
        now = self.host.now()
        if now != self._cached_s:
            quality_min = self._parameters.quality_min
            self._cached = frozenset(
                address
                for address, neighbour in self.known.items()
                if neighbour.hears_me
                and not neighbour.is_cut
                and neighbour.until_s >= now
                and neighbour.quality >= quality_min
                and (neighbour.is_far or not self._places.is_far(address))
            )
            self._cached_s = now
        return self._cached

    def of(self, address: int) -> frozenset[int]:
        """The neighbours of a neighbour, by its last hello."""
        neighbour = self.known.get(address)
        return _NOBODY if neighbour is None else neighbour.mutual

    def is_doubtful(self, address: int) -> bool:
        """Whether the link may well be gone: nothing has been heard for a while, and places do not vouch for it."""
        neighbour = self.known.get(address)
        if neighbour is None:
            return not self._places.is_near(address)
        return self._change(neighbour) > self._parameters.change_doubtful and not self._places.is_near(address)

    def is_good(self, address: int) -> bool:
        """Whether that neighbour is in reach, as far as one can tell, and few frames to it are lost."""
        neighbour = self.known.get(address)
        if neighbour is None or neighbour.is_cut or self.is_doubtful(address):
            return False
        return min(neighbour.quality, neighbour.trust) >= self._parameters.quality_min

    def _change(self, neighbour: Neighbour) -> float:
        """About how probable it is that the link has changed since it was heard last."""
        return self._churn_per_s * (self.host.now() - neighbour.heard_s)

    def is_stranger(self, address: int) -> bool:
        """Whether only one hello of that neighbour was heard so far."""
        neighbour = self.known.get(address)
        return neighbour is None or neighbour.is_stranger

    def is_cut(self, address: int) -> bool:
        neighbour = self.known.get(address)
        return neighbour is not None and neighbour.is_cut

    def note_loss(self, address: int) -> None:
        """A neighbour has not confirmed an event."""
        neighbour = self.known.get(address)
        if neighbour is not None:
            neighbour.trust *= self._parameters.trust_kept

    def note_arrival(self, address: int) -> None:
        """A neighbour has confirmed an event at once."""
        neighbour = self.known.get(address)
        if neighbour is not None:
            neighbour.trust += self._parameters.trust_gain * (1 - neighbour.trust)

    def is_idle(self, address: int) -> bool:
        """Whether that neighbour, asked to pass events on, is seldom heard doing so."""
        neighbour = self.known.get(address)
        return neighbour is not None and neighbour.passes_on < self._parameters.idle_share

    def idle(self) -> set[int]:
        """All such neighbours."""
        least = self._parameters.idle_share
        return {address for address, neighbour in self.known.items() if neighbour.passes_on < least}

    def note_passed_on(self, address: int) -> None:
        """A neighbour was heard passing an event on."""
        neighbour = self.known.get(address)
        if neighbour is not None:
            neighbour.passes_on += self._parameters.idle_gain * (1 - neighbour.passes_on)

    def note_kept(self, address: int) -> None:
        """A neighbour should have passed an event on, and was not heard doing so."""
        neighbour = self.known.get(address)
        if neighbour is not None:
            neighbour.passes_on *= self._parameters.trust_kept

    def note_event(self) -> None:
        """An event came by: the more there are, the more a wrong link costs."""
        self._events += 1

    def say_soon(self) -> None:
        """Schedules a hello within about a second, but not more often than allowed."""
        spread_s = self._parameters.hello_slow_s if self.is_slow() else self._parameters.hello_min_s
        earliest_s = max(self._last_hello_s + spread_s, self.host.now())
        due_s = earliest_s + self._parameters.hello_soon * spread_s * self.host.random.random()
        if due_s < self._due_s:
            self._schedule(due_s - self.host.now())

    # -- What is heard -----------------------------------------------------------------------------------------------

    def _on_any_message(self, sender: int, message: Message) -> None:
        now = self.host.now()
        neighbour = self.known.get(sender)
        if neighbour is None:
            if len(self.known) >= NEIGHBOURS_MAX:
                return
            neighbour = self.known[sender] = Neighbour(self._parameters.idle_assumed)
            self._changed()
            if self._places.explains(sender):
                neighbour.period_s = self._parameters.hello_placed_s  # until a hello says so
            else:
                neighbour.period_s = self._parameters.hello_min_s
                self.say_soon()
        neighbour.heard_s = now
        self._places.heard(sender)
        neighbour.is_far = self._places.is_far(sender)
        if neighbour.is_cut:
            neighbour.is_cut = False
            self._changed()
        if type(message) is Hello:
            self._take_hello(sender, neighbour, message)
        neighbour.until_s = now + self._late_periods * neighbour.period_s

    def _take_hello(self, sender: int, neighbour: Neighbour, hello: Hello) -> None:
        me = self.host.address
        parameters = self._parameters
        missed = hello.number - neighbour.number - 1
        if neighbour.number < 0 or missed < 0:
            neighbour.quality = max(neighbour.quality, parameters.quality_restart)  # it is new, or started again
            neighbour.is_stranger = True
        else:
            neighbour.is_stranger = False
            for _ in range(min(missed, parameters.missed_max)):
                neighbour.quality *= 1 - parameters.quality_weight
            neighbour.quality += parameters.quality_weight * (1 - neighbour.quality)
        neighbour.number = hello.number
        neighbour.mutual = frozenset(hello.mutual)
        knows_link = me in neighbour.mutual
        neighbour.hears_me = knows_link or me in hello.heard
        neighbour.period_s = min(hello.period_ds / 10, PERIOD_MAX_S)
        known = self._records.known.get(sender)
        if known is not None and not known.has_place:
            self._records.list_links(known, hello.mutual)
        self._changed()
        if not knows_link and not self._places.explains(sender):
            self.say_soon()

    def _on_failure(self, address: int, message: Message) -> None:
        self._places.missed(address)
        self.cut(address)

    def cut(self, address: int) -> None:
        """This link is not to be used until something is heard over it."""
        neighbour = self.known.get(address)
        if neighbour is None:
            neighbour = self.known[address] = Neighbour(self._parameters.idle_assumed)
        if not neighbour.is_cut:
            neighbour.is_cut = True
            neighbour.until_s = self.host.now() + self._parameters.cut_s
            self._changed()

    def _changed(self) -> None:
        self._cached_s = -1.0
        self.changes += 1

    # -- Hellos ------------------------------------------------------------------------------------------------------

    def _schedule(self, delay_s: float) -> None:
        self._due_s = self.host.now() + delay_s
        self.host.set_timer(delay_s, (LinkTimer.HELLO, 0))

    def _say_hello(self, key: int) -> None:
        now = self.host.now()
        self._forget_gone(now)
        mutual = self.neighbours()
        heard = sorted(
            address for address, n in self.known.items() if address not in mutual and n.number >= 0 and not n.is_cut
        )
        self._adapt_period(mutual, now)
        self._number += 1
        if now < self._settled_s or self.is_slow():
            wants, wheres = self._news.take_own(self.host.address)
        else:
            wants, wheres = self._news.take(mutual, self.host.frame_bytes_max - 32 - 3 * len(self.known))
        hello = Hello(
            number=self._number,
            period_ds=round(self.period_s * 10),
            mutual=tuple(sorted(mutual)),
            heard=tuple(heard),
            wants_digest=self._records.wants_digest,
            wheres_digest=self._records.wheres_digest,
            wants=wants,
            wheres=wheres,
            receipts=self._receipts.take_all(),
        )
        self._last_hello_s = now
        self.host.broadcast(hello)
        self.host.set_timer(self._parameters.slow_radio_s, (LinkTimer.DRAIN, 0))
        jitter = self._parameters.hello_jitter
        self._schedule(self.period_s * (1 - jitter + 2 * jitter * self.host.random.random()))

    def is_slow(self) -> bool:
        """Whether the queue is so long that only events should be sent."""
        return self._slow_share > self._parameters.slow_share

    def _look_for_drain(self, key: int) -> None:
        waits = 1.0 if self.host.backlog() else 0.0
        self._slow_share += self._parameters.slow_weight * (waits - self._slow_share)

    def _forget_gone(self, now: float) -> None:
        for address in [a for a, neighbour in self.known.items() if neighbour.until_s < now]:
            neighbour = self.known[address]
            if neighbour.is_cut or not self._places.is_near(address):
                del self.known[address]
                self._changed()
            elif now - neighbour.heard_s > self._parameters.silent_periods * neighbour.period_s:
                self.cut(address)  # it should be heard, and is not: its place may be a lie

    def _adapt_period(self, mutual: frozenset[int], now: float) -> None:
        """A hello costs airtime; an event that meets a broken link costs more. The total is least with a period
        inversely proportional to the square root of link changes times events."""
        parameters = self._parameters
        elapsed_s = max(now - self._last_hello_s, 0.001)
        changed = 0
        for address in mutual ^ self._mutual_then:
            if address in mutual:
                foreseen = self._places.explains(address) and not self.known[address].is_far
            else:
                foreseen = self._places.explains(address) and not self._places.is_near(address)
            if not foreseen and now >= self._settled_s:
                changed += 1
        self._mutual_then = mutual
        weight = min(1.0, elapsed_s / parameters.rates_memory_s)
        self._churn_per_s += weight * (changed / (elapsed_s * max(1, len(mutual))) - self._churn_per_s)
        self._events_per_s += weight * (self._events / elapsed_s - self._events_per_s)
        self._events = 0
        wanted_s = (parameters.hello_price / max(self._churn_per_s * self._events_per_s, 1e-9)) ** 0.5
        longest_s = parameters.hello_placed_s if self._records.own.has_place else parameters.hello_max_s
        self.period_s = min(max(wanted_s, parameters.hello_min_s), longest_s)
        if self.is_slow():
            self.period_s = parameters.hello_slow_s
