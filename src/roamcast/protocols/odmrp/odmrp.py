"""Pub/Sub ODMRP: on-demand multicast whose groups are made of content subscriptions.

Theory of operation
-------------------
After Yoneki and Bacon, "Dynamic Group Communication in Mobile Peer-to-Peer Environments" (2005), on top of ODMRP.

Goal: an event reaches the brokers that have subscribers for it, over a mesh that exists only while it is needed and
that is shaped by what is published and asked for.

Every node is part of the mesh (`mesh.py`): it repeats Join Requests, forwards Join Tables back and forwards events for
the members behind it. What the mesh carries is decided by the middleware through a generic interface
(`middleware.py`). Some nodes, all by default, offer themselves as *brokers* (`broker.py`); the others are *clients*,
each attached to a broker by unicast (`attachment.py`). A broker keeps the subscriptions of its clients (`clients.py`)
and answers Join Requests whose digests match them (`summaries.py`, `encoding.py`, `index.py`). It publishes for its
clients (`publisher.py`): asks who wants an event, makes channels out of the answers (`grouping.py`), and sends the
event on the channels whose filter it matches.

The defaults are not the paper's settings but those that serve best: routes are set up by advertisement, ahead of data;
requests are rarer; the list of members travels when it changes; a new subscription is told at once. The paper's own
behaviour is `parameters.AS_PUBLISHED`.

Where this differs from the paper, or fills in what it leaves open:
- A Join Table is sent on receipt of a Join Request, not on a timer of its own; forwarders step back when Join Tables
  are missing. (The paper once says when Join Requests are; ODMRP's draft has it as here.)
- Tables are confirmed passively and repeated, as the ODMRP draft has it and the paper does not mention.
- Channels are told to the nodes in the next Join Request, as lists of members; the paper does not say how.
- A digest that was asked stands for a refresh interval.
- Data does not wait for routes where there are any: an event leaves at once on the channels of the members that are
  known, and again for those whose answers to its Join Request come later (`publisher.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from mypy_extensions import mypyc_attr

from roamcast.events import Event
from roamcast.interests import Interest, XPaths
from roamcast.protocols import api
from roamcast.protocols.api import Host, Message
from roamcast.protocols.components import ComposedProtocol
from roamcast.protocols.odmrp.attachment import Attachment
from roamcast.protocols.odmrp.broker import Broker
from roamcast.protocols.odmrp.encoding import Wish, term_of_pairs
from roamcast.protocols.odmrp.messages import Attach, Attached, EventNotice, Messages, Offer, Post
from roamcast.protocols.odmrp.parameters import OdmrpParameters
from roamcast.protocols.routing import unicast
from roamcast.protocols.seen import SeenCache
from roamcast.protocols.subscriptions import Subscriptions


@mypyc_attr(allow_interpreted_subclasses=True)
class Odmrp(ComposedProtocol):
    name: ClassVar[str] = "odmrp"
    summary: ClassVar[str] = "on-demand mesh whose channels are made of summarised subscriptions"
    Parameters: ClassVar[type[api.Parameters]] = OdmrpParameters
    messages: ClassVar[Any] = Messages

    def __init__(self, host: Host, parameters: OdmrpParameters) -> None:
        super().__init__(host)
        self._advertises = parameters.advertisement
        self.subscriptions = Subscriptions()
        self._noticed = SeenCache()  # events that the application has got
        encoder = parameters.encoder()
        self._encoder = encoder
        self._unicast = unicast(
            parameters.unicast, host, self.inputs, arrived=self._on_arrival, unreachable=self._on_unreachable
        )
        self.broker = Broker(host, parameters, encoder, self._unicast, self._notice)
        self.is_broker = self.broker.is_broker
        self.attachment = Attachment(host, parameters, encoder, self._unicast, lambda: list(self.subscriptions))
        self.mesh = self.broker.mesh
        self.publisher = self.broker.publisher
        self.clients = self.broker.clients
        self.compose(self._unicast, self.broker, self.mesh, self.publisher, self.attachment)

    def start(self) -> None:
        self._unicast.start()
        if self.is_broker:
            self.host.structure("broker", value=1.0)
        else:
            self.attachment.start()

    # -- The application -----------------------------------------------------------------------------------------

    def subscribe(self, interest: Interest) -> None:
        self.subscriptions.add(interest)
        if self.is_broker:
            self.broker.subscribe(interest)
        else:
            self.attachment.changed()

    def subscribe_values(self, type_name: str, wishes: Mapping[str, Wish]) -> Interest:
        """Subscribes by attributes and what is asked of them, straight from a form that a user has filled in: for
        devices that know neither XML nor XPath (section 3). Returns the interest, for `unsubscribe`."""
        interest = XPaths.of(term_of_pairs(type_name, wishes))
        self.subscribe(interest)
        return interest

    def unsubscribe(self, interest: Interest) -> None:
        self.subscriptions.remove(interest)
        if self.is_broker:
            self.broker.unsubscribe(interest)
        else:
            self.attachment.changed()

    def advertise(self, interest: Interest) -> None:
        if not self._advertises:
            return
        kinds = dict.fromkeys([entry.type for entry in self._encoder.entries(interest)])
        if self.is_broker:
            self.publisher.advertise(kinds)
        else:
            self.attachment.advertise(kinds)

    def publish(self, event: Event) -> None:
        if self.is_broker:
            self.broker.publish(event, 0)
        else:
            self.attachment.post(event)

    def _notice(self, event: Event, hops: int) -> None:
        is_own = event.publisher == self.host.address  # of an earlier life
        if not is_own and self.subscriptions.match(event) and self._noticed.add(event.id):
            self.host.deliver(event, hops)

    # -- Unicast between clients and brokers ---------------------------------------------------------------------

    def _on_arrival(self, source: int, payload: Message, hops: int) -> None:
        if isinstance(payload, EventNotice):
            self._notice(payload.event, payload.hops + hops)
        elif self.is_broker:
            if isinstance(payload, Post):
                self.broker.publish(payload.event, hops)
            elif isinstance(payload, Attach):
                self.broker.on_attach(source, payload)
        elif isinstance(payload, Offer):
            self.attachment.on_offer(source, payload)
        elif isinstance(payload, Attached):
            self.attachment.on_attached(source, payload, hops)

    def _on_unreachable(self, destination: int, payload: Message) -> None:
        if not self.is_broker:
            self.attachment.on_unreachable(destination, payload)
        elif isinstance(payload, EventNotice):
            self.clients.forget(destination)  # it will attach again, here or elsewhere
