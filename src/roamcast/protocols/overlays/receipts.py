"""Receipts: what the producers' home brokers are told about how far clients have got.

*Processed* means that the event need not be sent again. *Settled* means that the client has it, or that its modulator
discarded it. Receipts for one home broker are collected for `acknowledgement_delay_s` and travel in one message. A
receipt for an event that is only processed waits longer (`receipt_patience`): usually the client acknowledges the event
meanwhile, and one receipt tells both.
"""

from enum import StrEnum

from roamcast.protocols.api import Host
from roamcast.protocols.components import Component, Inputs
from roamcast.protocols.overlays.client_row import ClientRow
from roamcast.protocols.overlays.concentrator import Concentrator
from roamcast.protocols.overlays.messages import Receipt
from roamcast.protocols.overlays.parameters import OverlaysParameters


class ReceiptsTimer(StrEnum):
    """The key is always 0."""

    SEND = "receipts.send"  # receipts have been collected long enough
    PROCESSED = "receipts.processed"  # events that were processed have waited long enough for their acknowledgement


class Receipts(Component):
    def __init__(
        self, host: Host, concentrator: Concentrator, table: dict[int, ClientRow], parameters: OverlaysParameters
    ) -> None:
        super().__init__(host)
        self._concentrator = concentrator
        self._table = table
        self._parameters = parameters
        self._processed: dict[tuple[int, int], None] = {}  # (client, publisher): processed, and not yet settled
        self._due: dict[int, dict[tuple[int, int], None]] = {}  # source -> (client, publisher)
        self._noted = 0  # receipts that are due, as if each were sent

    def declare(self, inputs: Inputs) -> None:
        inputs.on_timer(ReceiptsTimer.SEND, self._send)
        inputs.on_timer(ReceiptsTimer.PROCESSED, self._note_processed)

    def note_processed(self, row: ClientRow, publisher: int) -> None:
        """The client's site has processed an event; the client may not have its outcome yet."""
        patience_s = self._parameters.receipt_patience * self._parameters.retry_s
        if not patience_s or row.settled.get(publisher, 0) >= row.processed[publisher]:
            self.note(row, publisher)
            return
        if not self._processed:
            self.host.set_timer(patience_s, (ReceiptsTimer.PROCESSED, 0))
        self._processed[row.client, publisher] = None

    def note(self, row: ClientRow, publisher: int) -> None:
        """The client has got further with a publisher's events; its home broker is to know."""
        source = row.origins.get(publisher)
        if source is None:
            return
        if not self._due:
            self.host.set_timer(self._parameters.acknowledgement_delay_s, (ReceiptsTimer.SEND, 0))
        self._due.setdefault(source, {})[row.client, publisher] = None
        self._noted += 1
        if self._noted >= self._parameters.acknowledgements_max:
            self.host.cancel_timer((ReceiptsTimer.SEND, 0))
            self._send(0)

    def _note_processed(self, _: int) -> None:
        processed, self._processed = self._processed, {}
        for client, publisher in processed:
            row = self._table.get(client)
            if row is not None and row.settled.get(publisher, 0) < row.processed.get(publisher, 0):
                self.note(row, publisher)

    def _send(self, _: int) -> None:
        due, self._due = self._due, {}
        self._noted = 0
        for source, pairs in due.items():
            rows = []
            for client, publisher in pairs:
                row = self._table.get(client)
                if row is not None and not row.is_passive:
                    processed, settled = row.processed.get(publisher, 0), row.settled.get(publisher, 0)
                    rows.append((client, row.epoch, publisher, processed, settled))
            if rows:
                self._concentrator.send(source, Receipt(tuple(rows)))
