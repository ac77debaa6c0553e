"""Waymark: explicit multicast along trees with few senders, which every node plans from what it knows.

Theory of operation
-------------------
Goal: an event reaches all nodes that want it, in as few frames as possible. On the radio every frame is a broadcast:
one sender serves all its neighbours. What counts is therefore the number of *senders*, not the number of links in a
tree. A node that knows which nodes want an event and which links exist can plan a tree with few senders. Waymark
distributes this knowledge cheaply, and recovers where it is wrong.

The parts, each a component in its own module:

Knowledge
    `links.py` measures links: hellos list the neighbours that a node hears, so links are known in both directions, up
    to two hops away. `records.py` stores what every node has announced about itself to the whole network: its *want*
    (its interests) and its *where* (its position and links). `news.py` spreads records when they change, several in a
    frame.
    `places.py` and `whereabouts.py` use positions if there are any. A node that announces its position and velocity
    need not list its links: they follow from positions as long as it keeps its course. It lists only exceptions:
    neighbours farther away than expected, and nearby nodes that it does not hear. A node without a position lists all
    its links. Positions are therefore optional, and measurements correct wrong ones.
    Distant nodes need less precise positions, so a change of course is announced at once nearby and later farther
    away, in frames that are sent anyway. A node that several nearby nodes do not hear counts as silent until it sends
    again. On a radio so slow that knowledge costs more than it saves, none is kept and events are flooded.
    `graph.py` combines all this into the current links.

Plan
    `protocols/sender_tree.py` grows a tree: it repeatedly connects the nearest destination that is not reached yet,
    by the path that reaches the most other destinations on its way.

Forwarding
    `forwarding.py`. The publisher's frame names the first relays and, for each, the destinations behind it. Each relay
    plans again for its share, because it knows its surroundings better. Relays send in the order in which they are
    named, to avoid collisions. A node that has just started and knows nothing floods its events: each node repeats
    them once, unless all its neighbours have already heard them.

Repair
    `repair.py`. A relay's own frame is its receipt; leaves confirm several events in one short frame, soon where the
    link is in doubt. Without a receipt, a doubtful link is removed at once; over others the node gets the event again
    first. What was behind a removed link is planned again without it. A neighbour that has been asked to pass events on
    and is seldom heard doing so is *idle*, whatever it says: it still gets events, but nothing is planned through it as
    long as there is another path. Being heard passing on any event soon clears it.

Custody
    `custody.py`. An event is kept for destinations without a path, and sent when there is one.

An event that a node has been asked to forward is a *task*. The node accepts each destination at most `tries_max` times,
and a second time only from another sender: an event may return because of a plan made from outdated knowledge, but not
indefinitely. There are no loops, because a node sends an event at most `tries_max` times per destination.

Nodes do not speak for others: a record is issued by its own node, first-hand knowledge overrides hearsay, record
numbers cannot be exhausted, and a node reports only its own links. No single node can silence another: when a node that
others report as unheard sends again, their reports are void.

Known techniques used here: multipoint relays and related methods (RFC 6621, RFC 7181), dead reckoning of positions,
explicit multicast (RFC 5058), acknowledgement by overhearing, and custody in delay-tolerant networks (RFC 4838).
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
