"""Waymark."""

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
        self.records = Records(host)
        places = Places(host, self.records)
        pending = PendingNews(self.records)
        self.links = Links(host, parameters, self.records, places, pending, receipts)
        self.graph = Graph(host, self.records, places, self.links)
        self.custody = Custody(host, parameters, self.records, self.graph, self._resume)
        self.news = Spreading(
            host, parameters, self.records, self.links, self.graph, pending, self.custody.learned_want
        )
        self.whereabouts = Whereabouts(host, parameters, self.records, self.links, places, self.news)
        self.repair = Repair(host, parameters, self.links, receipts, self._resume)
        self.forwarding = Forwarding(
            host, parameters, self.records, self.links, self.graph, receipts, self.repair, self.custody
        )
        self.compose(self.links, self.news, self.whereabouts, self.repair, self.custody, self.forwarding)

    def _resume(self, event: Event, destinations: set[int], hops: int) -> None:
        self.forwarding.resume(event, destinations, hops)

    def start(self) -> None:
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
