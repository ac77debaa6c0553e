"""How a broker that is home to producers makes itself known to all brokers, so that they name their consumers.

An announcement is numbered. It is sent to every known broker and repeated until that answers with `Registrations`. It
is sent again when a broker that did not answer gives a sign of life, or has started a new life.
"""

from collections.abc import Callable

from roamcast.interests import Interest
from roamcast.protocols.api import Host
from roamcast.protocols.components import Component, Inputs
from roamcast.protocols.overlays.brokers import BrokerManager
from roamcast.protocols.overlays.channel import BrokerPropagation, SystemChannel
from roamcast.protocols.overlays.concentrator import Concentrator
from roamcast.protocols.overlays.messages import Announce, Registration, Registrations
from roamcast.protocols.overlays.parameters import OverlaysParameters


class SourceAnnouncements(Component):
    def __init__(
        self,
        host: Host,
        *,
        concentrator: Concentrator,
        channel: SystemChannel,
        brokers: BrokerManager,
        enrol: Callable[[Registration], None],
        parameters: OverlaysParameters,
    ) -> None:
        super().__init__(host)
        self.is_source = False  # this broker is home to producers
        self.offered: Interest | None = None  # what was announced; None: anything
        self.is_complete = False  # all known brokers have answered the current announcement
        self._concentrator = concentrator
        self._channel = channel
        self._brokers = brokers
        self._enrol = enrol
        self._parameters = parameters
        self._number = 0  # of the current announcement
        self._informed: dict[int, tuple[int, int]] = {}  # broker -> its life and the announcement that it knows
        self._asked_s: dict[int, float] = {}  # broker -> the sign of life on which it was told

    def declare(self, inputs: Inputs) -> None:
        self._concentrator.on(Registrations, self._on_registrations)
        self._channel.register(BrokerPropagation, lambda _: self._inform())

    def announce(self, offered: Interest | None) -> None:
        """Tells all brokers that this one is home to producers of such events."""
        self._become_source(is_source=True, offered=offered)

    def withdraw(self) -> None:
        """Tells all brokers that this one is home to no producer any more."""
        self._become_source(is_source=False, offered=None)

    def ask_again(self, broker: int) -> None:
        """What this broker said about its consumers is no longer known here."""
        self._informed.pop(broker, None)
        self._asked_s.pop(broker, None)

    def check_complete(self) -> None:
        """Nothing is released before every known broker has said which clients it serves: some may be cut off."""
        rows = self._brokers.topology.rows
        self.is_complete = self._brokers.is_settled and all(
            self._informed.get(broker) == (row.life, self._number) for broker, row in rows.items()
        )

    def _become_source(self, is_source: bool, offered: Interest | None) -> None:
        self._number += 1
        self.is_source = is_source
        self.offered = offered
        self._asked_s.clear()
        self.is_complete = False
        self._inform()

    def _inform(self) -> None:
        """Tells every broker that does not know, and those that did not answer once they give a sign of life."""
        if not self._number:
            return
        table = self._brokers.topology
        for broker in self._brokers.known:
            if self._informed.get(broker) == (table.rows[broker].life, self._number):
                continue
            if self._asked_s.get(broker) == table.heard_s[broker]:
                continue
            self._asked_s[broker] = table.heard_s[broker]
            announcement = Announce(self._number, self.offered, self.is_source)
            self._concentrator.ask(("announce", broker), broker, announcement, self._parameters.announce_tries)
        for gone in [broker for broker in self._informed if broker not in table.rows]:
            del self._informed[gone]

    def _on_registrations(self, source: int, message: Registrations, hops: int) -> None:
        if message.number == self._number:
            self._concentrator.answered(("announce", source))
            broker = self._brokers.topology.rows.get(source)
            if broker is not None:
                self._informed[source] = (broker.life, self._number)
        if self.is_source:
            for row in message.rows:
                self._enrol(row)
