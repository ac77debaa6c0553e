"""Pub/Sub ODMRP: on-demand multicast whose groups are made of content subscriptions.

Theory of operation
-------------------
After Yoneki and Bacon, "Dynamic Group Communication in Mobile Peer-to-Peer Environments" (2005), on top of ODMRP.

Goal: an event reaches the brokers that have subscribers for it, over a mesh that exists only while it is needed and
that is shaped by what is published and asked for.

Every node is part of the mesh (`mesh.py`): it repeats Join Requests, passes Join Tables back and forwards events for
the members behind it. Some nodes, all by default, offer themselves as *brokers*; the others are *clients*, each
attached to a broker by unicast (`attachment.py`). A broker keeps the subscriptions of its clients (`clients.py`) and
answers Join Requests whose digests match their summary (`summaries.py`, `encoding.py`, `index.py`). It publishes for
its clients (`publisher.py`): asks who wants an event, makes channels out of the answers (`grouping.py`), and sends the
event on the channels whose filter it matches.

Filters may let through what nobody wants, never the reverse; so a broker hands an event to a client only after the
client's own subscription has matched it exactly. What reached a broker in vain is counted, as `false-positive` if its
summary matched and as `unwanted` if only the channel's did.

Where this differs from the paper, or fills in what it leaves open:
- A Join Table goes back on receipt of a Join Request, not on a timer of its own; forwarders step back when Join Tables
  are missing (the paper once says Join Requests; decision 15 of the project).
- Tables are confirmed passively and repeated, as the ODMRP draft has it and the paper does not mention.
- Channels are told to the nodes in the next Join Request, as lists of members; the paper does not say how.
- Every event is asked for by its own digest, unless `advertisement` is set; a digest that was asked stands for a
  refresh interval.
- Data does not wait for routes where there are any: an event leaves at once on the channels of the members that are
  known, and again for those whose answers to its Join Request come later (`publisher.py`).
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

from mypy_extensions import mypyc_attr

from roamcast.events import Event
from roamcast.interests import Interest
from roamcast.protocols import api
from roamcast.protocols.api import Host, Message, Timer
from roamcast.protocols.components import ComposedProtocol
from roamcast.protocols.odmrp.attachment import Attachment
from roamcast.protocols.odmrp.clients import CLIENT_REFRESHES, VERSIONS, Clients
from roamcast.protocols.odmrp.encoding import cached_digest
from roamcast.protocols.odmrp.mesh import Mesh
from roamcast.protocols.odmrp.messages import (
    Attach,
    Attached,
    Data,
    JoinAck,
    JoinRequest,
    JoinTable,
    Member,
    Messages,
    Notice,
    Offer,
    Post,
    Seek,
)
from roamcast.protocols.odmrp.packed import Digest
from roamcast.protocols.odmrp.parameters import OdmrpParameters
from roamcast.protocols.odmrp.publisher import Publisher
from roamcast.protocols.routing import unicast
from roamcast.protocols.seen import SeenCache
from roamcast.protocols.subscriptions import Subscriptions

SOUGHT: Final = "broker.sought"  # key: client; pass its search on
EXPIRE: Final = "broker.expire"  # key 0; forget silent clients

UNWANTED: Final = "unwanted"  # an event came on a channel of ours though no summary of ours matches it
FALSE_POSITIVE: Final = "false-positive"  # a summary of ours matched, but no subscription does
UNREADABLE: Final = "unreadable"  # an event that is in none of the languages

UNFINISHED_MAX: Final = 64  # clients whose subscriptions have come in part


@mypyc_attr(allow_interpreted_subclasses=True)
class Odmrp(ComposedProtocol):
    name: ClassVar[str] = "odmrp"
    summary: ClassVar[str] = "on-demand mesh whose channels are made of summarised subscriptions"
    Parameters: ClassVar[type[api.Parameters]] = OdmrpParameters
    messages: ClassVar[Any] = Messages

    def __init__(self, host: Host, parameters: OdmrpParameters) -> None:
        super().__init__(host)
        self.parameters = parameters
        self.subscriptions = Subscriptions()
        self._encoder = parameters.encoder()
        self._unicast = unicast(
            parameters.unicast, host, self.inputs, arrived=self._on_arrival, unreachable=self._on_unreachable
        )
        self.is_broker = host.random.random() < parameters.broker_share
        self.clients = Clients(self._encoder, parameters.entries_max, host.random.randrange(VERSIONS))
        self.publisher = Publisher(host, parameters)
        self.mesh = Mesh(host, parameters, self.publisher.on_members)
        self.attachment = Attachment(host, parameters, self._unicast, lambda: list(self.subscriptions))
        self._noticed = SeenCache()  # events that the application has got
        self._searches = SeenCache()  # of clients
        self._sought: dict[int, Seek] = {}
        self._parts: dict[int, dict[int, Attach]] = {}  # client -> parts of subscriptions that are not complete
        self._expires = False
        self.inputs.on(Data, self._on_data)
        self.inputs.on(JoinRequest, self._on_request)
        self.inputs.on(JoinTable, self.mesh.on_table)
        self.inputs.on(JoinAck, self.mesh.on_ack)
        self.inputs.on(Seek, self._on_seek)
        self.compose(self._unicast)

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
            self.clients.add(self.host.address, interest)
        else:
            self.attachment.changed()

    def unsubscribe(self, interest: Interest) -> None:
        self.subscriptions.remove(interest)
        if self.is_broker:
            self.clients.remove(self.host.address, interest)
        else:
            self.attachment.changed()

    def advertise(self, interest: Interest) -> None:
        if not self.parameters.advertisement:
            return
        kinds = dict.fromkeys(entry.type for entry in self._encoder.entries(interest))
        if self.is_broker:
            self.publisher.advertise(kinds)
        else:
            self.attachment.advertise(kinds)

    def publish(self, event: Event) -> None:
        if self.is_broker:
            self._publish_for(event, 0)
        else:
            self.attachment.post(event)

    # -- What arrives --------------------------------------------------------------------------------------------

    def on_timer(self, timer: Timer) -> None:
        if self.mesh.on_timer(timer) or self.publisher.on_timer(timer) or self.attachment.on_timer(timer):
            return
        if timer[0] == SOUGHT:
            self.host.broadcast(self._sought.pop(timer[1]))
        elif timer[0] == EXPIRE:
            self._expire_clients()
        else:
            super().on_timer(timer)

    def _on_request(self, sender: int, request: JoinRequest) -> None:
        if self.mesh.on_request(sender, request) and self.is_broker:
            self._answer(request)

    def _on_arrival(self, source: int, payload: Message, hops: int) -> None:
        match payload:
            case Notice(hops=before, event=event):
                self._notice(event, before + hops)
            case Post(event=event) if self.is_broker:
                self._publish_for(event, hops)
            case Attach() if self.is_broker:
                self._on_attach(source, payload)
            case Offer() if not self.is_broker:
                self.attachment.on_offer(source, payload)
            case Attached() if not self.is_broker:
                self.attachment.on_attached(source, payload, hops)

    def _on_unreachable(self, destination: int, payload: Message) -> None:
        if self.is_broker:
            if isinstance(payload, Notice):
                self.clients.forget(destination)  # it will attach again, here or elsewhere
        else:
            self.attachment.on_unreachable(destination, payload)

    # -- Events --------------------------------------------------------------------------------------------------

    def _publish_for(self, event: Event, hops: int) -> None:
        """A client of this broker published; `hops` brought the event here."""
        if not self.mesh.see(event.id):
            return  # a client that is not sure whether its first attempt arrived
        digest = cached_digest(self._encoder, event.content)
        if digest is None:
            self.host.dropped(UNREADABLE, event.id)
            return
        self._serve(event, digest, hops)
        self.publisher.publish(event, digest, hops)

    def _on_data(self, sender: int, data: Data) -> None:
        if not self.mesh.see_sending(data):
            return
        digest = cached_digest(self._encoder, data.event.content)
        self.mesh.relay(data, digest)
        if not self.mesh.see(data.event.id):
            return  # it was here before, in another sending
        if self.is_broker and not self._serve(data.event, digest, data.hops):
            self._count_waste(data, digest)

    def _serve(self, event: Event, digest: Digest | None, hops: int) -> bool:
        """Hands an event to the clients that want it; true if there is one."""
        receivers = self.clients.receivers(event, digest)
        for client in receivers:
            if client == self.host.address:
                self._notice(event, hops)
            else:
                self._unicast.send(client, Notice(hops, event))
        return bool(receivers)

    def _notice(self, event: Event, hops: int) -> None:
        if self.subscriptions.match(event) and self._noticed.add(event.id):
            self.host.deliver(event, hops)

    def _count_waste(self, data: Data, digest: Digest | None) -> None:
        if len(self.clients) == 0 or digest is None:
            return
        if self.clients.want(digest):
            self.host.dropped(FALSE_POSITIVE, data.event.id)
        else:
            route = self.mesh.routes.get(data.publisher)
            if route is not None and route.channels.get(self.host.address) in data.channels:
                self.host.dropped(UNWANTED, data.event.id)

    # -- Membership ----------------------------------------------------------------------------------------------

    def _answer(self, request: JoinRequest) -> None:
        wanted = next((question for question in request.questions if self.clients.want(question)), None)
        if wanted is None:
            return
        member = self.clients.member(self.host.address, wanted)
        known = {address: version for _, members in request.channels for address, version in members}
        if known.get(member.address) == member.version:
            member = Member(member.address, member.version, None)
        self.mesh.answer(request.publisher, member)

    # -- Clients -------------------------------------------------------------------------------------------------

    def _on_seek(self, sender: int, seek: Seek) -> None:
        if seek.client == self.host.address or not self._searches.add(seek.number << 32 | seek.client):
            return
        if self.is_broker:
            self._unicast.send(seek.client, Offer(seek.number, seek.hops))
        elif seek.ttl > 1:
            self._sought[seek.client] = Seek(seek.client, seek.number, seek.ttl - 1, seek.hops + 1)
            self.host.set_timer(self.host.random.random() * self.parameters.jitter_s, (SOUGHT, seek.client))

    def _on_attach(self, client: int, attach: Attach) -> None:
        parts = self._parts.setdefault(client, {})
        if len(self._parts) > UNFINISHED_MAX:
            del self._parts[next(iter(self._parts))]
        if any(each.version != attach.version or each.parts != attach.parts for each in parts.values()):
            parts.clear()
        parts[attach.part] = attach
        if len(parts) < attach.parts:
            return
        self._parts.pop(client, None)
        interests = tuple(interest for number in sorted(parts) for interest in parts[number].interests)
        expires_s = self.host.now() + CLIENT_REFRESHES * self.parameters.client_refresh_s
        self.clients.replace(client, interests, expires_s)
        announced = self.clients.announce(client, parts[0].kinds)
        if self.parameters.advertisement:
            self.publisher.advertise(announced)
        self._unicast.send(client, Attached(attach.version))
        if not self._expires:
            self._expires = True
            self.host.set_timer(self.parameters.client_refresh_s, (EXPIRE, 0))

    def _expire_clients(self) -> None:
        self.clients.expire(self.host.now())
        self._expires = self.clients.addresses not in ([], [self.host.address])
        if self._expires:
            self.host.set_timer(self.parameters.client_refresh_s, (EXPIRE, 0))
