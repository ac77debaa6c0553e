"""Waymark: explicit multicast along trees with few senders, which every node plans from what it knows.

Theory of operation
-------------------
Goal: an event reaches everybody who wants it, in as few frames as possible. On the radio every frame is a broadcast:
one sender serves all its neighbours. So what counts is the number of *senders*, not the number of links in a tree. A
node that knows who wants an event and who can hear whom can plan a tree with few senders. Waymark makes every node know
that, at a small price, and makes good what it knows wrongly.

The parts, each a component with a module of its own:

Knowledge
    `links.py` measures: every node says in hellos whom it hears, so links are known in both directions, two hops far.
    `records.py` keeps what every node has said of itself to the whole network: its *want* (what its application asks
    for) and its *where* (its place and its links). `news.py` spreads records when they change, several in a frame.
    `places.py` and `whereabouts.py` make positions useful where there are any. A node that says where it is and how it
    moves need not list its links: they follow from places as long as it keeps its course. It lists only exceptions,
    neighbours too far away to be expected and nodes nearby that it does not hear. A node without a position lists all
    its links. So positions are never needed, and wrong ones are corrected by what is measured.
    Whoever is far away need not know a place well, so turns are told at once nearby and later farther off, on frames
    that are sent anyway. A node that several others nearby do not hear counts as silent until it speaks. Over a radio
    so slow that knowledge costs more than it saves, there is none: events are spread to everybody.
    `graph.py` puts it all together: who can hear whom now.

Plan
    `protocols/sender_tree.py` grows a tree: again and again the nearest destination that nobody reaches yet is
    connected, by a path that reaches the most other destinations on its way.

Forwarding
    `forwarding.py`. The publisher's frame names the first relays and, for each, the destinations behind it. Each relay
    plans anew for its share, because it knows its surroundings better. Relays take turns in the order in which they are
    named, so that they do not collide. A node that has just started and knows nothing spreads its events to everybody:
    each node repeats them once, unless all its neighbours have heard them already.

Repair
    `repair.py`. A relay's own frame is its receipt; leaves confirm several events in one short frame. Whoever is not
    heard gets the event again, acknowledged by the link. If that fails, the link is cut and its destinations are
    planned anew without it.

Custody
    `custody.py`. Destinations without a path are kept, and served when there is one.

An event at a node that was asked to pass it on is a *task*. The node takes each destination on at most `tries_max`
times, and a second time only from another sender: a plan made from wrong knowledge may come back, but not for ever.
That is why there are no loops: a node sends an event at most `tries_max` times per destination.

Nobody speaks for others: a record is issued by its own node, first-hand beats hearsay, numbers of records cannot run
out, and a node tells only its own links. No single node can silence another, and the word of a node that several others
do not hear voids what they say.

What is known and used here: multipoint relays and their kin (RFC 6621, RFC 7181), dead reckoning of positions, explicit
multicast (RFC 5058), receipts by overhearing, and custody of delay-tolerant networks (RFC 4838).
"""

from typing import Any, ClassVar

from mypy_extensions import mypyc_attr

from roamcast.events import Event
from roamcast.interests import Interest
from roamcast.protocols import api
from roamcast.protocols.api import Host
from roamcast.protocols.components import ComposedProtocol
from roamcast.protocols.waymark.custody import Custody
from roamcast.protocols.waymark.forwarding import Forwarding
from roamcast.protocols.waymark.graph import Graph
from roamcast.protocols.waymark.links import Links
from roamcast.protocols.waymark.messages import Carry, Hello, News, Receipt, Spread
from roamcast.protocols.waymark.news import Spreading
from roamcast.protocols.waymark.parameters import WaymarkParameters
from roamcast.protocols.waymark.pending import PendingNews
from roamcast.protocols.waymark.places import Places
from roamcast.protocols.waymark.receipts import ReceiptsDue
from roamcast.protocols.waymark.records import Records
from roamcast.protocols.waymark.repair import Repair
from roamcast.protocols.waymark.whereabouts import Whereabouts


@mypyc_attr(allow_interpreted_subclasses=True)
class Waymark(ComposedProtocol):
    name: ClassVar[str] = "waymark"
    summary: ClassVar[str] = "trees with few senders, from measured links and places; repair and custody"
    Parameters: ClassVar[type[api.Parameters]] = WaymarkParameters
    messages: ClassVar[Any] = Hello | News | Carry | Spread | Receipt

    def __init__(self, host: Host, parameters: WaymarkParameters) -> None:
        super().__init__(host)
        receipts = ReceiptsDue()
        self.records = Records(host, parameters.custody_s if parameters.durable else 0.0)
        places = Places(host, parameters, self.records)
        pending = PendingNews(self.records, parameters.news_bytes_max)
        self.links = Links(
            host=host, parameters=parameters, records=self.records, places=places, news=pending, receipts=receipts
        )
        self.graph = Graph(host, parameters, self.records, places, self.links)
        self.custody = Custody(host, parameters, self.records, self.graph, self._resume)
        self.news = Spreading(
            host=host,
            parameters=parameters,
            records=self.records,
            links=self.links,
            graph=self.graph,
            places=places,
            pending=pending,
            on_want=self.custody.learned_want,
        )
        self.whereabouts = Whereabouts(
            host=host,
            parameters=parameters,
            records=self.records,
            links=self.links,
            places=places,
            graph=self.graph,
            news=self.news,
        )
        self.repair = Repair(host, parameters, self.links, receipts, self._resume)
        self.forwarding = Forwarding(
            host=host,
            parameters=parameters,
            records=self.records,
            links=self.links,
            graph=self.graph,
            news=self.news,
            receipts=receipts,
            repair=self.repair,
            custody=self.custody,
        )
        self.compose(self.links, self.news, self.whereabouts, self.repair, self.custody, self.forwarding)

    def _resume(self, event: Event, destinations: set[int], hops: int, round_: int, born_s: float) -> None:
        self.forwarding.resume(event, destinations, hops, round_, born_s)

    def start(self) -> None:
        self.news.own_want_changed()
        self.links.start()
        self.whereabouts.start()

    def subscribe(self, interest: Interest) -> None:
        self.records.subscriptions.add(interest)
        self._want_changed()

    def unsubscribe(self, interest: Interest) -> None:
        self.records.subscriptions.remove(interest)
        self._want_changed()

    def _want_changed(self) -> None:
        self.records.own_want_changed()
        self.news.own_want_changed()

    def publish(self, event: Event) -> None:
        self.forwarding.publish(event)

    def in_custody(self) -> tuple[int, int]:
        return len(self.custody.kept), self.custody.kept_bytes
