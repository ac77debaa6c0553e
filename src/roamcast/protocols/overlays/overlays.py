"""Opportunistic Overlays: a broker network that follows the nodes, and home brokers that follow their clients.

Theory of operation
-------------------
After Chen and Schwan, "Opportunistic Overlays: Efficient Content Delivery in Mobile Ad Hoc Networks". Numbers in
brackets in this package are sections of that paper.

Goal: content-based delivery through brokers, over short paths, although every node moves.

Parts (the paper's names where it has one; one module each):

- `concentrator`: everything that enters or leaves a node: source routes, trees of them, requests that are repeated.
- `search`: expanding ring search for the nearest brokers.
- `member`: the client component of every node. It keeps a home broker; `publications` and `reception` keep what was
  published and what was delivered.
- On brokers: `resources` (the resource monitor), `brokers` (the broker manager with its four tables), `clients` (the
  client manager with its table), `deliveries` (events on their path through a modulator to a client), `receipts`,
  `registry` (what producers' home brokers are told about clients), `sources` (what a broker does for producers),
  `relocation` (moving a modulator to another broker), `channel` (the internal system channel) and `adaptors`.
- `modulators`: the functions that brokers apply to a consumer's events. `modulator_manager` adds, changes and runs
  them; `event_channels` are what they are applied to: each subscription that brings a modulator is a channel.

The path of an event: the producer sends it to its home broker. That broker sends it along the shortest paths of the
overlay to every broker with consumers that want it. There each consumer's modulator is applied, and the result goes to
the consumer.

What is guaranteed to a pair of producer and consumer: events are delivered in the order of publication, each at most
once in the consumer's life (a node that crashes forgets what it got), whatever else crashes. An event that is published
after the subscription has become known is delivered, except in these cases:

- The consumer crashes or leaves. When it returns it subscribes again, and gets what is published from then on.
- The event stays undeliverable beyond the bound or the lifetime of the stores (`store_events`, `store_lifetime_s`).
- The producer crashes or leaves before its home broker has acknowledged the event, or that broker crashes too. An
  acknowledged event is delivered by the home broker, unless the producer returns and a later event overtakes it.

The producer, its home broker and the consumer's site each hold a copy until the consumer has the event. So while the
producer stays, any number of brokers may crash. `intake` explains how order and uniqueness come about, `log` how copies
are kept, `member` how a client that lost its broker goes on, `relocation` how a client moves while events flow.

Where this differs from the paper, and why:
- The paper assumes a reliable network. Here every message that matters is acknowledged and repeated, events form
  chains, and clients number their epochs, because frames get lost and brokers crash.
- The paper does not say how a producer's home broker knows who wants its events. Here a broker that becomes a
  producer's home announces itself to all brokers, and they answer (`sources`).
- Producers relocate with less: a producer has no modulator, keeps what is not settled, and brings it to its new home.
- A cold start converges in seconds (`brokers`). Afterwards changes travel one link per update period, as in the paper.
- What brokers tell each other about events (`messages.Relayed`) travels along the overlay, as events do, because the
  routes of its links are in use. Over AODV, direct routes would have to be discovered each time.
- Where the overlay knows no path, brokers reach each other directly through the unicast service.
- By default, one copy of an event travels on a stretch that several paths share, receipts are merged, clients search no
  farther than their home broker is away, and a home changes only for a gain of more than one hop. `parameters` names
  the setting for each under which the protocol does what the paper says.
- A home broker that does not answer is replaced within seconds (`home_check_s`).
- Nothing that a peer sends can loop, grow without bound, or use up a number (`ranks`, `heard`, and the bounds in
  `parameters`).
"""

from typing import Any, ClassVar

from mypy_extensions import mypyc_attr

from roamcast.events import Event
from roamcast.interests import Interest
from roamcast.protocols import api
from roamcast.protocols.api import PLAIN_CHANNEL, Host
from roamcast.protocols.components import Component, ComposedProtocol, Inputs
from roamcast.protocols.modulation import Modulation
from roamcast.protocols.overlays.adaptors import Services, adaptor_class, install_adaptors
from roamcast.protocols.overlays.brokers import BrokerManager
from roamcast.protocols.overlays.channel import SystemChannel
from roamcast.protocols.overlays.client_row import ClientRow
from roamcast.protocols.overlays.client_updates import ClientUpdates
from roamcast.protocols.overlays.clients import ClientManager
from roamcast.protocols.overlays.concentrator import Concentrator
from roamcast.protocols.overlays.deliveries import Deliveries
from roamcast.protocols.overlays.member import Member
from roamcast.protocols.overlays.messages import Messages, ReportAck
from roamcast.protocols.overlays.modulator_manager import ModulatorManager
from roamcast.protocols.overlays.modulator_sites import ModulatorSites
from roamcast.protocols.overlays.parameters import OverlaysParameters
from roamcast.protocols.overlays.relocation import Relocation
from roamcast.protocols.overlays.resources import ResourceMonitor
from roamcast.protocols.overlays.search import RingSearch
from roamcast.protocols.overlays.sources import SourceManager


class Broker(Component):
    """The parts that only a broker has."""

    def __init__(
        self,
        host: Host,
        concentrator: Concentrator,
        resources: ResourceMonitor,
        search: RingSearch,
        parameters: OverlaysParameters,
    ) -> None:
        super().__init__(host)
        channel = resources.channel
        table: dict[int, ClientRow] = {}
        whereabouts = ModulatorSites(parameters.places_max)
        self.resources = resources
        self.brokers = BrokerManager(
            host,
            concentrator=concentrator,
            channel=channel,
            search=search,
            resources=resources,
            parameters=parameters,
        )
        self.sources = SourceManager(
            host, concentrator=concentrator, channel=channel, brokers=self.brokers, parameters=parameters
        )
        self.registry = ClientUpdates(
            host, concentrator=concentrator, brokers=self.brokers, table=table, parameters=parameters
        )
        self.modulators = ModulatorManager(resources)
        self.deliveries = Deliveries(
            host,
            concentrator=concentrator,
            brokers=self.brokers,
            registry=self.registry,
            modulators=self.modulators,
            table=table,
            whereabouts=whereabouts,
            parameters=parameters,
        )
        self.clients = ClientManager(
            host,
            concentrator=concentrator,
            channel=channel,
            registry=self.registry,
            modulators=self.modulators,
            sources=self.sources,
            table=table,
            whereabouts=whereabouts,
            parameters=parameters,
        )
        self.relocation = Relocation(
            host,
            concentrator=concentrator,
            clients=self.clients,
            deliveries=self.deliveries,
            sources=self.sources,
            parameters=parameters,
        )
        services = Services(
            host,
            parameters=parameters,
            channel=channel,
            resources=resources,
            brokers=self.brokers,
            clients=self.clients,
            relocation=self.relocation,
        )
        self.adaptors = install_adaptors(parameters.adaptors, services)

    def declare(self, inputs: Inputs) -> None:
        self.resources.declare(inputs)
        self.brokers.declare(inputs)
        self.sources.declare(inputs)
        self.registry.declare(inputs)
        self.deliveries.declare(inputs)
        self.clients.declare(inputs)
        self.relocation.declare(inputs)

    def start(self) -> None:
        self.resources.start()
        self.brokers.start()
        self.clients.start()


@mypyc_attr(allow_interpreted_subclasses=True)
class Overlays(ComposedProtocol):
    name: ClassVar[str] = "overlays"
    summary: ClassVar[str] = "Opportunistic Overlays: a broker network and home brokers that follow the nodes"
    modulates: ClassVar[bool] = True
    Parameters: ClassVar[type[api.Parameters]] = OverlaysParameters
    messages: ClassVar[Any] = Messages

    def __init__(self, host: Host, parameters: OverlaysParameters) -> None:
        super().__init__(host)
        for name in filter(None, parameters.adaptors.replace(" ", "").split(",")):
            adaptor_class(name)  # refuses an unknown name on every node, broker or not
        self.parameters = parameters
        is_broker = parameters.is_broker(host.address, host.random.random())
        self.concentrator = Concentrator(host, self.inputs, parameters)
        resources = ResourceMonitor(host, SystemChannel(), parameters)
        load = (lambda: resources.load) if is_broker else None
        self._search = RingSearch(host, parameters, load)
        self.member = Member(host, self.concentrator, self._search, parameters, is_broker)
        self.broker: Broker | None = None
        self.compose(self.concentrator, self._search, self.member)
        if is_broker:
            self.broker = Broker(host, self.concentrator, resources, self._search, parameters)
            self.compose(self.broker)

    def start(self) -> None:
        self.concentrator.unicast.start()
        if self.broker is not None:
            self.host.structure("broker", value=1.0)
            self.broker.start()

    def subscribe(self, interest: Interest) -> None:
        self.member.subscribe(interest)

    def unsubscribe(self, interest: Interest) -> None:
        self.member.unsubscribe(interest)

    def advertise(self, interest: Interest) -> None:
        self.member.advertise(interest)

    def publish(self, event: Event) -> None:
        self.member.publish(event)

    def open_channel(self, channel: int, interest: Interest, modulation: Modulation) -> None:
        self.member.open_channel(channel, interest, modulation)

    def close_channel(self, channel: int) -> None:
        self.member.close_channel(channel)

    def set_modulator(self, source: str) -> None:
        """Subscriptions that brought no modulator of their own are modulated like this from now on."""
        self.member.set_modulator(Modulation(source))

    def refusal(self, channel: int = PLAIN_CHANNEL) -> str:
        """Why the home broker does not run the channel's modulator; empty if it does, or if there is none."""
        return self.member.refusals.get(channel, "")

    def leave(self) -> None:
        self.member.leave()
        if self.broker is not None:
            self._search.retire()
            for client, row in self.broker.clients.table.items():
                self.concentrator.send(client, ReportAck(row.epoch, False))
