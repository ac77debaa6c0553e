"""The broker manager: which brokers there are, how they are linked, and how to reach them [2.3, 3.3].

It keeps the paper's four tables: neighbours (BNT), information (BIT: loads), topology (BTT) and routing (BRT, worked
out of the topology table on demand). It offers the operations that the topology adaptor puts together: discover
neighbours, propagate what changed, forget who fell silent.

A broker that starts discovers its neighbours at once and, for `bootstrap_s`, propagates what it learns every
`bootstrap_period_s`, so that the network knows itself after seconds rather than after as many update periods as the
overlay is wide. What stands then is the overlay that a broker without a topology adaptor keeps for good.

A broker gives its own row a new sequence number when its neighbours or its load have changed, and at the latest every
`refresh_periods` as a sign of life. Brokers that give none for `silent_periods` are forgotten. A row whose propagation
was lost is made up for by its next one.
"""

from enum import StrEnum
from typing import Final

from roamcast.protocols.api import Host
from roamcast.protocols.batches import batches, encoded_bytes
from roamcast.protocols.components import Component, Inputs
from roamcast.protocols.overlays.channel import BrokerPropagation, SystemChannel, UpdateDue
from roamcast.protocols.overlays.concentrator import Concentrator
from roamcast.protocols.overlays.messages import PATH_MAX, LinkState, Probe, TopologyRows
from roamcast.protocols.overlays.parameters import OverlaysParameters
from roamcast.protocols.overlays.resources import ResourceMonitor
from roamcast.protocols.overlays.search import RingSearch, Sighting
from roamcast.protocols.overlays.tables import TopologyTable
from roamcast.protocols.routing.sequence import MODULUS, newer, successor

ENVELOPE_BYTES: Final = 48  # of a routed message with rows, beside the rows


class BrokersTimer(StrEnum):
    """The key is always 0."""

    UPDATE = "brokers.update"  # an update period has passed
    BOOTSTRAP = "brokers.bootstrap"  # this broker has just started: discover neighbours or propagate
    PROBE = "brokers.probe"  # measure the paths to all brokers
    NEWCOMERS = "brokers.newcomers"  # another broker started: tell the neighbours before the next period


class BrokerManager(Component):
    def __init__(
        self,
        host: Host,
        *,
        concentrator: Concentrator,
        channel: SystemChannel,
        search: RingSearch,
        resources: ResourceMonitor,
        parameters: OverlaysParameters,
    ) -> None:
        super().__init__(host)
        self.neighbours: dict[int, int] = {}  # BNT: chosen neighbour -> length of the link in hops
        self.loads: dict[int, float] = {}  # BIT
        self.topology = TopologyTable(host.address)  # BTT
        self._concentrator = concentrator
        self._channel = channel
        self._search = search
        self._resources = resources
        self._parameters = parameters
        self._started_s = host.now()
        self._life = host.life
        self._sequence = int(host.now() * 1000) % MODULUS  # normally ahead of all rows of a former life
        self._periods = 0  # update periods since this broker's row was last renewed
        self._shown: tuple[int, ...] = ()
        self._taught: dict[int, None] = {}  # brokers that were told everything in this update period
        self._told: dict[int, None] = {}  # neighbours at the last propagation
        concentrator.path = self.path

    def declare(self, inputs: Inputs) -> None:
        self._concentrator.on(TopologyRows, self._on_topology)
        self._concentrator.on(Probe, self._on_probe)
        inputs.on_timer(BrokersTimer.UPDATE, self._on_update)
        inputs.on_timer(BrokersTimer.BOOTSTRAP, self._on_bootstrap)
        inputs.on_timer(BrokersTimer.PROBE, self._probe)
        inputs.on_timer(BrokersTimer.NEWCOMERS, lambda _: self.propagate())

    def start(self) -> None:
        self._renew_own_row()
        draw = self.host.random.random
        self.host.set_timer(draw() * self._parameters.bootstrap_period_s / 2, (BrokersTimer.BOOTSTRAP, 0))
        self.host.set_timer(
            draw() * self._parameters.update_period_s + self._parameters.bootstrap_s, (BrokersTimer.UPDATE, 0)
        )
        if self._parameters.probe_period_s:
            first_s = self._parameters.bootstrap_s + draw() * self._parameters.probe_period_s
            self.host.set_timer(first_s, (BrokersTimer.PROBE, 0))

    @property
    def known(self) -> list[int]:
        """All brokers heard of, this one among them, by address."""
        return sorted(self.topology.rows)

    @property
    def is_settled(self) -> bool:
        """The bootstrap is over: brokers within reach have heard of each other."""
        age_s = self.host.now() - self._started_s
        return age_s >= self._parameters.bootstrap_s and (
            len(self.topology.rows) > 1 or age_s >= self._parameters.alone_s
        )

    def path(self, destination: int) -> tuple[int, ...]:
        """The source route from here to a broker; the broker alone if the overlay knows no path."""
        if not self._parameters.source_routing:
            return (destination,)
        suspects = frozenset(node for node in list(self._concentrator.suspects) if self._concentrator.is_suspect(node))
        path = self.topology.path(destination, suspects)
        return path if path is not None and len(path) < PATH_MAX else (destination,)

    def load(self, broker: int) -> float:
        """What is known of a broker's load; nothing counts as idle."""
        return self._resources.load if broker == self.host.address else self.loads.get(broker, 0.0)

    # -- What the topology adaptor puts together -------------------------------------------------------------------

    def discover(self) -> None:
        """Looks for neighbours; when they are found, takes them over and propagates all changes (steps 1 and 2)."""
        self._search.start(self._on_neighbours)

    def propagate(self) -> None:
        """Sends the rows that changed since the last time to the neighbours, and all rows to new ones (step 2)."""
        rows = self.topology.rows
        changed = tuple(rows[broker] for broker in sorted(self.topology.changed))
        self.topology.changed.clear()
        linked = sorted({*self.neighbours, *self.topology.linked(self.host.address)})
        for neighbour in linked:
            updates = changed if neighbour in self._told else tuple(rows[broker] for broker in sorted(rows))
            if updates:
                self._send_rows(neighbour, updates, is_novice=not self.is_settled)
        self._told = dict.fromkeys(linked)

    def forget_silent(self) -> None:
        """Drops brokers that have shown no sign of life for long."""
        patience_s = self._parameters.silent_periods * self._parameters.update_period_s
        for broker in self.topology.expire(self.host.now() - patience_s):
            self.loads.pop(broker, None)

    # -- Inside ----------------------------------------------------------------------------------------------------

    def _on_neighbours(self, sightings: list[Sighting]) -> None:
        for sighting in sightings:
            self.loads[sighting.broker] = sighting.load
        chosen = sorted(sightings, key=self._preference)[: self._parameters.neighbours_max]
        self.neighbours = {sighting.broker: sighting.hops for sighting in chosen}
        self._renew_own_row()
        self.propagate()

    def _preference(self, sighting: Sighting) -> tuple[int, bool, int]:
        """Nearest first, then present neighbours, then in an order that differs from broker to broker, so that low
        addresses do not collect all the links."""
        mixed = (sighting.broker * 2_654_435_761 ^ self.host.address * 2_246_822_519) % 2**32
        return sighting.hops, sighting.broker not in self.neighbours, mixed

    def _renew_own_row(self) -> None:
        """Gives this broker's row a new number if it has changed, or as a sign of life."""
        known = self.topology.rows.get(self.host.address)
        neighbours = tuple(sorted(self.neighbours.items()))
        self._periods += 1
        if (
            known is not None
            and known.neighbours == neighbours
            and abs(known.load - self._resources.load) <= self._parameters.load_step
            and self._periods < self._parameters.refresh_periods
        ):
            return
        self._periods = 0
        self._sequence = successor(self._sequence)
        row = LinkState(self.host.address, self._sequence, neighbours, self._resources.load, self._life)
        self.topology.merge(row, self.host.now())
        self._show_links()

    def _on_topology(self, source: int, message: TopologyRows, hops: int) -> None:
        now_s = self.host.now()
        changed = 0
        has_newcomers = False
        for row in message.rows:
            if row.broker == self.host.address:
                self._outdo(row)
                continue
            known = self.topology.rows.get(row.broker)
            if known is None and len(self.topology.rows) > self._parameters.brokers_max:
                continue
            if self.topology.merge(row, now_s):
                self.loads[row.broker] = row.load
                has_newcomers = has_newcomers or known is None or known.life != row.life
                changed += 1
        if has_newcomers and self.is_settled:
            self.host.set_timer(
                self._parameters.bootstrap_period_s * self.host.random.random(), (BrokersTimer.NEWCOMERS, 0)
            )
        self._concentrator.suspects.pop(source, None)
        if message.is_novice and source not in self._taught:
            self._teach(source)
        if changed:
            self._channel.post(BrokerPropagation(source, changed))

    def _outdo(self, row: LinkState) -> None:
        """A row in this broker's name, of a former life or forged, is newer than its own: it goes beyond that."""
        if newer(row.sequence, self._sequence):
            self._sequence = row.sequence
            self._periods = self._parameters.refresh_periods
            self._renew_own_row()

    def _teach(self, novice: int) -> None:
        """Tells a broker that has just started everything, once per update period."""
        self._taught[novice] = None
        rows = self.topology.rows
        self._send_rows(novice, tuple(rows[broker] for broker in sorted(rows)), is_novice=False)

    def _send_rows(self, broker: int, rows: tuple[LinkState, ...], is_novice: bool) -> None:
        """Each row is an update of its own, so a table travels in messages of one frame each."""
        bytes_max = self.host.frame_bytes_max - ENVELOPE_BYTES
        for some in batches(rows, encoded_bytes, bytes_max) or [[]]:
            self._concentrator.send(broker, TopologyRows(tuple(some), is_novice))

    def _on_bootstrap(self, _: int) -> None:
        if self.neighbours:
            self.propagate()
        else:
            self.discover()
        if not self.is_settled:
            self.host.set_timer(self._parameters.bootstrap_period_s, (BrokersTimer.BOOTSTRAP, 0))

    def _on_update(self, _: int) -> None:
        self.host.set_timer(self._parameters.update_period_s, (BrokersTimer.UPDATE, 0))
        self._taught.clear()
        self._channel.post(UpdateDue())

    def _probe(self, _: int) -> None:
        self.host.set_timer(self._parameters.probe_period_s, (BrokersTimer.PROBE, 0))
        for broker in self.known:
            if broker != self.host.address:
                self._concentrator.carry(self.path(broker), Probe())

    def _on_probe(self, source: int, probe: Probe, hops: int) -> None:
        self.host.structure("path", peer=source, value=float(hops))

    def _show_links(self) -> None:
        links = tuple(sorted(self.neighbours))
        for gone in (broker for broker in self._shown if broker not in self.neighbours):
            self.host.structure("link", peer=gone, value=0.0)
        for new in (broker for broker in links if broker not in self._shown):
            self.host.structure("link", peer=new, value=1.0)
        self._shown = links
