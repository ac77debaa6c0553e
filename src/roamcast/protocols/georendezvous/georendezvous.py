"""GeoRendezvous: publish/subscribe through several rendezvous points of a position-based hash table.

After N. Carvalho, F. Araujo and L. Rodrigues, "Reducing Latency in Rendezvous-Based Publish-Subscribe Systems for
Wireless Ad Hoc Networks".

Theory of operation
-------------------
Goal: decouple publishers from subscribers by letting them meet at places that both can compute, and still deliver
events on paths that are hardly longer than the direct one.

- Each topic has n rendezvous points, the hashes of (topic, 0) ... (topic, n - 1). The cell that is at home there keeps
  advertisements and subscriptions (`hashtable.py`, `rendezvous.py`).
- A publisher advertises at all n points and sends its events to those with subscribers (`publisher.py`).
- A subscriber subscribes at the m nearest points, compares the paths by the first event of each publisher, keeps the
  shortest and prunes the others (`subscriber.py`).
- Languages other than plain topics are mapped onto topics (`buckets.py`).
- Everything is soft state: repeated each `refresh_period_s` or `advertisement_period_s`, forgotten when it is not.

The layers: `cells.py`, `steering.py` and `branching.py` are pure geometry; `routing.py` moves packets; `hashtable.py`
keeps keys while nodes come, go and die; the three roles above it never see a cell.

Two hash tables, one protocol. `graph = "cells"` is the paper's *Cell Hash Routing* (CHR): packets travel between
populated cells, which needs a dense network (`cells.py`). The default, `graph = "nodes"`, is *not* CHR but what the
paper allows in section 2.2: a *Geographic Hash Table* (GHT), in which packets travel between nodes and the home of a
point is the node nearest to it. In both, what the home keeps is kept by its cell. The figures use CHR.

Where this goes beyond the paper, which stops at static networks without collisions. Each is a parameter:
- The state of a point is handed over as nodes move and die (`hashtable.py`), and subscribers choose again.
- A prune is per publisher: each pair of publisher and subscriber has its own best point.
- Subscriptions carry interests, so a rendezvous point forwards only what matches (`filter_at_rendezvous`). The number
  of points follows from the size of the area (`rendezvous_points = 0`), and few buckets are used. The three belong
  together: interests make subscriptions larger, so there must be fewer of them.
- An event travels to several destinations as one tree (`notification_tree`).
- A failed frame does not remove a neighbour at once (`link_failures_max`).
- Keys keep a margin from the border of the area: a tour around an empty cell there is one around the whole network.

Where the paper is silent:
- "Reaching the same node twice" ends a tour when the same edge is taken twice in the same direction, since the member
  of a cell that carries a packet is a random one (`steering.py`); one face is toured, none is changed.
- A cell that keeps a key already knows that it is the home and does not tour again (the paper's footnote 1 allows early
  detection without saying how).
"""

from typing import Any, ClassVar

from mypy_extensions import mypyc_attr

from roamcast.events import Event
from roamcast.interests import Interest
from roamcast.protocols import api
from roamcast.protocols.api import Host, Site
from roamcast.protocols.components import ComposedProtocol
from roamcast.protocols.georendezvous.buckets import Buckets
from roamcast.protocols.georendezvous.hashtable import CellHashTable
from roamcast.protocols.georendezvous.messages import POINTS_MAX, Messages
from roamcast.protocols.georendezvous.parameters import GeoRendezvousParameters
from roamcast.protocols.georendezvous.publisher import Publisher
from roamcast.protocols.georendezvous.rendezvous import Rendezvous
from roamcast.protocols.georendezvous.subscriber import Subscriber


@mypyc_attr(allow_interpreted_subclasses=True)
class GeoRendezvous(ComposedProtocol):
    name: ClassVar[str] = "georendezvous"
    summary: ClassVar[str] = "events meet interests at hashed places, kept by the cells there (GeoRendezvous)"
    Parameters: ClassVar[type[api.Parameters]] = GeoRendezvousParameters
    messages: ClassVar[Any] = Messages

    def __init__(self, host: Host, parameters: GeoRendezvousParameters) -> None:
        super().__init__(host)
        self.table = CellHashTable(host, parameters)
        if parameters.notification_tree:
            self.table.router.share_links(parameters.tree_progress_share)
        buckets = Buckets(parameters)
        points = points_for(self.table.router.grid.site, parameters)
        self.publisher = Publisher(host, parameters, self.table, buckets, points)
        self.subscriber = Subscriber(host, parameters, self.table, buckets, points)
        self.rendezvous = Rendezvous(host, parameters, self.table)
        self.compose(self.table.router, self.table, self.publisher, self.subscriber, self.rendezvous)

    def start(self) -> None:
        self.table.start()
        self.subscriber.start()

    def subscribe(self, interest: Interest) -> None:
        self.subscriber.subscribe(interest)

    def unsubscribe(self, interest: Interest) -> None:
        self.subscriber.unsubscribe(interest)

    def advertise(self, interest: Interest) -> None:
        self.publisher.advertise(interest)

    def publish(self, event: Event) -> None:
        self.publisher.publish(event)

    def leave(self) -> None:
        self.table.leave()


def points_for(site: Site, parameters: GeoRendezvousParameters) -> int:
    """How many rendezvous points a topic has (n)."""
    if parameters.rendezvous_points:
        return parameters.rendezvous_points
    ranges = site.width_m * site.height_m / (site.range_m * site.range_m)
    return min(POINTS_MAX, max(1, round(ranges / parameters.ranges_per_point)))
