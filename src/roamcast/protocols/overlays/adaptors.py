"""Adaptors: what a broker does about what it observes [3.5].

An adaptor names the system events that it wants and is handed each of them; it acts through the broker's managers and
the relocation layer. The parameter `adaptors` lists those in force, by name or, for one that is not ours, as
`package.module:Class`. Nothing else has to change to add one.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from importlib import import_module
from typing import Any, ClassVar, Final

from mypy_extensions import mypyc_attr

from roamcast.errors import ConfigurationError
from roamcast.protocols.api import Host
from roamcast.protocols.overlays.brokers import BrokerManager
from roamcast.protocols.overlays.channel import (
    BrokerDiscovery,
    LoadMeasured,
    ModulatorMeasured,
    SystemChannel,
    UpdateDue,
)
from roamcast.protocols.overlays.client_row import ClientRow
from roamcast.protocols.overlays.clients import ClientManager
from roamcast.protocols.overlays.parameters import OverlaysParameters
from roamcast.protocols.overlays.relocation import Relocation
from roamcast.protocols.overlays.resources import ResourceMonitor

MESSAGE_BYTES: Final = 80  # of a message beside its payload, about: headers of all layers


class Services:
    """What an adaptor works with."""

    def __init__(
        self,
        host: Host,
        *,
        parameters: OverlaysParameters,
        channel: SystemChannel,
        resources: ResourceMonitor,
        brokers: BrokerManager,
        clients: ClientManager,
        relocation: Relocation,
    ) -> None:
        self.host = host
        self.parameters = parameters
        self.channel = channel
        self.resources = resources
        self.brokers = brokers
        self.clients = clients
        self.relocation = relocation

    def producers_of(self, row: ClientRow) -> list[int]:
        """The home brokers of the producers that may have something for a client."""
        return [broker for broker, offer in self.clients.registry.sources.items() if row.wants.may_match(offer)]

    def gain_hops(self, producers: Iterable[int], candidate: int, home: int) -> float | None:
        """By how much nearer the candidate is than `home` to the home brokers of producers, on average over those to
        which both have a path. None: the overlay knows no path from the candidate to any of them."""
        distance = self.brokers.topology.distance
        gains: list[int] = []
        for producer in producers:
            here, there = distance(home, producer), distance(candidate, producer)
            if here is not None and there is not None:
                gains.append(here - there)
        return sum(gains) / len(gains) if gains else None


@mypyc_attr(allow_interpreted_subclasses=True)
class Adaptor(ABC):
    events: ClassVar[tuple[type[Any], ...]]  # kinds of system events that it wants

    def __init__(self, services: Services) -> None:
        self.services = services

    @abstractmethod
    def process(self, event: Any) -> None:
        """One of the wanted events happened."""


class TopologyAdaptor(Adaptor):
    """Dynamic construction of the broker network: every period, look around and pass on what changed [2.3]."""

    events = (UpdateDue,)

    def process(self, event: UpdateDue) -> None:
        self.services.brokers.forget_silent()
        self.services.brokers.discover()


class HomeBrokerAdaptor(Adaptor):
    """Dynamic change of the home broker [2.4 step 2, figure 6]."""

    events = (BrokerDiscovery,)

    def process(self, event: BrokerDiscovery) -> None:
        services = self.services
        row = services.clients.table.get(event.client)
        if event.candidate is None or row is None or event.candidate == row.home:
            return
        if self._prefers_candidate(row, event):
            services.relocation.migrate(event.client, event.candidate)

    def _prefers_candidate(self, row: ClientRow, event: BrokerDiscovery) -> bool:
        services = self.services
        assert event.candidate is not None
        threshold = services.parameters.overload_threshold
        own_load = services.resources.load
        if own_load > threshold or event.load > threshold:
            return event.load < own_load  # one is overloaded: the other; both: the lighter
        producers = services.producers_of(row)
        gain_hops = services.gain_hops(producers, event.candidate, row.home) if producers else 0.0
        if gain_hops is None:
            return False  # a broker that this one has not heard of is not a nearer one
        return gain_hops + event.home_hops - event.distance_hops > services.parameters.hysteresis_hops


class LoadBalancingAdaptor(Adaptor):
    """An overloaded broker gives the client that costs most to the least loaded of its neighbours.

    The home-broker adaptor keeps clients away from overloaded brokers, but acts only when a client moves. This one acts
    on the load itself, on one client at a time, and only if the busier of the two brokers will then be less busy than
    this one is now, by the share `balancing_gain`.
    """

    events = (LoadMeasured, ModulatorMeasured)

    def __init__(self, services: Services) -> None:
        super().__init__(services)
        self._shares: dict[int, float] = {}  # client -> CPU time in the last reading of its modulator, s
        self._rests_until_s = 0.0

    def process(self, event: LoadMeasured | ModulatorMeasured) -> None:
        if isinstance(event, ModulatorMeasured):
            self._shares[event.client] = event.cpu_s
            return
        services = self.services
        now_s = services.host.now()
        if event.load <= services.parameters.overload_threshold or now_s < self._rests_until_s:
            return
        clients = services.clients.table
        shares = [(cpu_s, client) for client, cpu_s in self._shares.items() if client in clients]
        linked = services.brokers.topology.linked(services.host.address)
        if not shares or not linked:
            return
        lightest = min(linked, key=lambda broker: (services.brokers.load(broker), broker))
        total_s = sum(cpu_s for cpu_s, _ in shares)
        cpu_s, client = max(shares)
        moved = event.load * cpu_s / total_s if total_s else 0.0
        after = services.brokers.load(lightest) + moved
        busier = max(after, event.load - moved)
        pays = busier < (1 - services.parameters.balancing_gain) * event.load
        if pays and services.relocation.migrate(client, lightest):
            services.brokers.loads[lightest] = after
            self._rests_until_s = now_s + services.parameters.balancing_rest_s


class PlacementAdaptor(Adaptor):
    """Moves a modulator to the broker where the least has to travel: one that shrinks its events goes towards the
    producers, and comes back if it does not shrink them any more. An extra of ours: the paper leaves it to future work
    [6].

    The price of a place is what the modulator takes in times the hops from each producer's home broker, and what it
    puts out times the hops to the client's home broker. `policy` says what is counted: with "bytes", payloads; with
    "energy", the headers of messages too; with "latency", payloads, but only places count that make no path longer. A
    move must leave less than `placement_share` of the price, and be worth its own bytes within `placement_readings`.
    """

    events = (ModulatorMeasured,)

    def process(self, event: ModulatorMeasured) -> None:
        services = self.services
        row = services.clients.table.get(event.client)
        if row is None or row.is_passive or not row.has_modulator:
            return
        now = self._price(event, services.host.address, row.home)
        best = self._best_place(event, row.home)
        if now is None or best is None or best[1] == services.host.address:
            return
        price, place = best
        saved = (now - price) * services.parameters.placement_readings
        if price < services.parameters.placement_share * now and saved > services.relocation.travel_bytes(row):
            services.relocation.migrate(event.client, place, "downstream" if place == row.home else "upstream")

    def _best_place(self, event: ModulatorMeasured, home: int) -> tuple[float, int] | None:
        services = self.services
        threshold = services.parameters.overload_threshold
        prices: list[tuple[float, int]] = []
        for broker in sorted({services.host.address, home, *services.brokers.topology.rows}):
            price = self._price(event, broker, home)
            if price is not None and (broker == services.host.address or services.brokers.load(broker) <= threshold):
                prices.append((price, broker))
        return min(prices, default=None)

    def _price(self, event: ModulatorMeasured, place: int, home: int) -> float | None:
        """None: there is no path, or the policy is against it."""
        services = self.services
        distance = services.brokers.topology.distance
        policy = services.parameters.policy
        header = MESSAGE_BYTES if policy == "energy" else 0
        onward = distance(place, home)
        if onward is None:
            return None
        price = float((event.bytes_out + event.events_out * header) * onward)
        for source, events, size in event.taken:
            hops, direct = distance(source, place), distance(source, home)
            if hops is None or (policy == "latency" and direct is not None and hops + onward > direct):
                return None
            price += (size + events * header) * hops
        return price


ADAPTORS: Final[dict[str, type[Adaptor]]] = {
    "topology": TopologyAdaptor,
    "home-broker": HomeBrokerAdaptor,
    "load-balancing": LoadBalancingAdaptor,
    "placement": PlacementAdaptor,
}


def install_adaptors(names: str, services: Services) -> list[Adaptor]:
    """Builds the adaptors of a comma-separated list and registers them with the system channel."""
    adaptors = [adaptor_class(name)(services) for name in filter(None, names.replace(" ", "").split(","))]
    for adaptor in adaptors:
        for kind in adaptor.events:
            services.channel.register(kind, adaptor.process)
    return adaptors


def adaptor_class(name: str) -> type[Adaptor]:
    if name in ADAPTORS:
        return ADAPTORS[name]
    module, separator, attribute = name.partition(":")
    try:
        found = getattr(import_module(module), attribute) if separator else None
    except (ImportError, AttributeError, ValueError):
        found = None
    if not (isinstance(found, type) and issubclass(found, Adaptor)):
        raise ConfigurationError(f"adaptors: {name!r} is unknown; allowed: {', '.join(ADAPTORS)}, package.module:Class")
    return found
