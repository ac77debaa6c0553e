"""The broker: the middleware of Pub/Sub ODMRP on a node, for its own application and for its clients.

It answers Join Requests whose digests match its clients' subscriptions (`clients.py`), serves events to them, and
publishes for them (`publisher.py`). Every node has one, because relays must be able to read summaries; a node that is
no broker has no clients and joins no group.

Filters may let through what no client wants, never the reverse; so a broker hands an event to a client only after the
client's own subscription has matched it. Events that reach a broker without a subscriber are counted, as
`false-positive` if its summary matched and as `unwanted` if only the channel's did.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Any, Final

from roamcast.errors import PeerError
from roamcast.events import Event
from roamcast.fields import HOPS_MAX
from roamcast.interests import Interest
from roamcast.protocols.api import Host
from roamcast.protocols.components import Inputs
from roamcast.protocols.odmrp.clients import VERSIONS, Clients, Wanted
from roamcast.protocols.odmrp.context import entries_in, questions_in
from roamcast.protocols.odmrp.encoding import Encoder, cached_digest
from roamcast.protocols.odmrp.mesh import Mesh
from roamcast.protocols.odmrp.messages import Attach, Attached, Data, EventNotice, MemberEntry, Offer, Seek
from roamcast.protocols.odmrp.middleware import Middleware
from roamcast.protocols.odmrp.packed import Digest
from roamcast.protocols.odmrp.parameters import OdmrpParameters
from roamcast.protocols.odmrp.publisher import Publisher
from roamcast.protocols.routing import Unicast
from roamcast.protocols.seen import SeenCache


class BrokerTimer(StrEnum):
    SOUGHT = "odmrp.sought"  # key: client; repeat its search
    EXPIRE = "odmrp.expire"  # key 0; forget silent clients


UNWANTED: Final = "unwanted"  # an event came on a channel of this broker though no summary of its clients matches it
FALSE_POSITIVE: Final = "false-positive"  # a summary matched, but no subscription does
UNREADABLE: Final = "unreadable"  # an event that is in none of the languages

ANSWER_BYTES: Final = 64
"""What a Join Table with one member adds to the member's context."""



class Broker(Middleware):
    _inputs: Inputs

    def __init__(
        self,
        host: Host,
        parameters: OdmrpParameters,
        encoder: Encoder,
        unicast: Unicast,
        notice: Callable[[Event, int], None],
    ) -> None:
        """`notice(event, hops)` hands an event to this node's own application."""
        super().__init__(host)
        self._parameters = parameters
        self._encoder = encoder
        self._unicast = unicast
        self._notice = notice
        self.is_broker = host.random.random() < parameters.broker_share
        context_bytes_max = host.frame_bytes_max - ANSWER_BYTES
        version = host.random.randrange(VERSIONS)
        self.clients = Clients(encoder, parameters.entries_max, context_bytes_max, version)
        self.publisher = Publisher(host, parameters, encoder)
        self.mesh = Mesh(host, parameters, self)
        self._searches = SeenCache()  # of clients
        self._sought: dict[int, Seek] = {}
        self._parts: dict[int, dict[int, Attach]] = {}  # client -> parts of subscriptions that are not complete
        self._expires = False
        self._joins = False

    def declare(self, inputs: Inputs) -> None:
        self._inputs = inputs
        inputs.on(Seek, self._on_seek)
        inputs.on_timer(BrokerTimer.SOUGHT, self._repeat_search)
        inputs.on_timer(BrokerTimer.EXPIRE, self._expire_clients)

    def subscribe(self, interest: Interest) -> None:
        """This node's own application is a client."""
        self.clients.add(self.host.address, interest)
        self._join_later()

    def unsubscribe(self, interest: Interest) -> None:
        self.clients.remove(self.host.address, interest)

    def _join_later(self) -> None:
        """Subscriptions have changed: publishers that have asked are told, all changes of an instant together."""
        if self._parameters.join_at_once and not self._joins:
            self._joins = True
            self._inputs.later(self._join)

    def _join(self) -> None:
        self._joins = False
        self.mesh.join_again()

    def publish(self, event: Event, hops: int) -> None:
        """A client of this broker published; `hops` brought the event here."""
        if not self.mesh.see(event.id):
            return  # a client that is not sure whether its first attempt arrived
        digest = cached_digest(self._encoder, event.content)
        if digest is None:
            self.host.dropped(UNREADABLE, event.id)
            return
        self._serve(event, digest, hops)
        self.publisher.publish(event, digest, hops)

    # -- The mesh ------------------------------------------------------------------------------------------------

    def answer(self, context: bytes, known_version: int | None) -> MemberEntry | None:
        if not self.is_broker:
            return None
        for question in questions_in(context):
            if self.clients.would_want(question):
                told = self.clients.told()
                is_known = known_version == told.version
                return MemberEntry(self.host.address, told.version, None if is_known else told.context)
        return None

    def read(self, context: bytes) -> Any:
        return entries_in(self._encoder.family, context)

    def admits(self, kept: Any, data: Data) -> bool:
        digest = cached_digest(self._encoder, data.event.content)
        return digest is None or self._encoder.family.matches_any(kept, digest)

    def on_members(self, members: tuple[MemberEntry, ...], lifetime_s: float | None) -> None:
        self.publisher.on_members(members, lifetime_s)

    def on_data(self, data: Data) -> None:
        if self.is_broker:
            digest = cached_digest(self._encoder, data.event.content)
            if not self._serve(data.event, digest, data.hops):
                self._count_waste(data, digest)

    def _serve(self, event: Event, digest: Digest | None, hops: int) -> bool:
        """Hands an event to the clients that want it; true if there is one."""
        receivers = self.clients.receivers(event, digest)
        for client in receivers:
            if client == self.host.address:
                self._notice(event, hops)
            else:
                self._unicast.send(client, EventNotice(hops, event))
        return bool(receivers)

    def _count_waste(self, data: Data, digest: Digest | None) -> None:
        if len(self.clients) == 0 or digest is None:
            return
        if self.clients.want(digest):
            self.host.dropped(FALSE_POSITIVE, data.event.id)
        else:
            route = self.mesh.routes.get(data.publisher)
            if route is not None and route.channels.get(self.host.address) in data.channels:
                self.host.dropped(UNWANTED, data.event.id)

    # -- Clients -------------------------------------------------------------------------------------------------

    def _on_seek(self, sender: int, seek: Seek) -> None:
        if seek.client == self.host.address or not self._searches.add((seek.client, seek.number)):
            return
        if self.is_broker:
            self._unicast.send(seek.client, Offer(seek.number, seek.hops))
        elif seek.ttl > 1 and seek.hops < HOPS_MAX:
            self._sought[seek.client] = Seek(seek.client, seek.number, seek.ttl - 1, seek.hops + 1)
            delay_s = self.host.random.random() * self._parameters.jitter_s
            self.host.set_timer(delay_s, (BrokerTimer.SOUGHT.value, seek.client))

    def _repeat_search(self, client: int) -> None:
        self.host.broadcast(self._sought.pop(client))

    def on_attach(self, client: int, attach: Attach) -> None:
        """A client's subscriptions, or a part of them."""
        if client not in self.clients and len(self.clients) >= self._parameters.clients_max:
            return
        parts = self._parts.setdefault(client, {})
        if len(self._parts) > self._parameters.unfinished_max:
            del self._parts[next(iter(self._parts))]
        if any(each.version != attach.version or each.parts != attach.parts for each in parts.values()):
            parts.clear()
        parts[attach.part] = attach
        if len(parts) < attach.parts:
            return
        self._parts.pop(client, None)
        self._keep_client(client, [parts[number] for number in sorted(parts)])
        self._unicast.send(client, Attached(attach.version))
        if not self._expires:
            self._expires = True
            self.host.set_timer(self._parameters.client_refresh_s, (BrokerTimer.EXPIRE.value, 0))

    def _keep_client(self, client: int, parts: list[Attach]) -> None:
        wanted: list[Wanted] = [each for part in parts for each in part.interests]
        wanted += [each for part in parts for each in part.filters if self._is_of_family(each)]
        parameters = self._parameters
        expires_s = self.host.now() + parameters.client_refreshes_max * parameters.client_refresh_s
        if self.clients.replace(client, tuple(wanted[: parameters.client_interests_max]), expires_s):
            self._join_later()
        announced = self.clients.announce(client, parts[0].kinds)
        if parameters.advertisement:
            self.publisher.advertise(announced)

    def _is_of_family(self, packed: Any) -> bool:
        try:
            self._encoder.family.unpacked(packed)
        except PeerError:
            return False
        return True

    def _expire_clients(self, key: int) -> None:
        self.clients.expire(self.host.now())
        self._expires = self.clients.addresses not in ([], [self.host.address])
        if self._expires:
            self.host.set_timer(self._parameters.client_refresh_s, (BrokerTimer.EXPIRE.value, 0))
