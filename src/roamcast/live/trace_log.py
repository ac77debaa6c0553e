"""The trace of a node that lives: rows are collected and written now and then, as complete files.

A trace that can no longer be written (the disk is full) does not stop the node: the rows are counted as lost.

Only a node that keeps a trace imports this module, because Arrow takes five times the memory of all the rest.
"""

from pathlib import Path
from typing import Literal

from roamcast.errors import ConfigurationError
from roamcast.events import Event
from roamcast.trace import rows
from roamcast.trace.files import TraceWriter, encoded
from roamcast.trace.recorder import Recorder
from roamcast.trace.schema import Record


class TraceLog:
    def __init__(self, directory: Path, run_id: str) -> None:
        self.rows_lost = 0
        self._run_id = run_id
        self._writer = TraceWriter(directory)
        self._recorder = Recorder(run_id)
        self._rows = 0
        # Arrow loads pandas and more when it is first used, for up to a second. Better now than while the node runs.
        encoded(Recorder(run_id).table())

    def interest(self, t: float, kind: rows.InterestKind, node: int, language: str, interest: str) -> None:
        self._add(rows.interest_row(t, kind, node, language, interest))

    def position(self, t: float, node: int, x_m: float, y_m: float) -> None:
        self._add(rows.position_row(t, node, x_m, y_m))

    def published(self, t: float, event: Event, language: str) -> None:
        self._add(rows.published_row(t, event, language))

    def delivered(self, t: float, node: int, event: Event, hops: int) -> None:
        self._add(rows.delivered_row(t, node, event, hops))

    def dropped(self, t: float, node: int, reason: str, event: int) -> None:
        self._add(rows.dropped_row(t, node, reason, event))

    def structure(self, t: float, node: int, aspect: str, *, peer: int, value: float, detail: str) -> None:
        self._add(rows.structure_row(t, node, aspect, peer=peer, value=value, detail=detail))

    def traffic(self, t: float, node: int | None, *, frames: int, size_bytes: int, category: str, label: str) -> None:
        """Frames of one second, or with a node, of its whole run. Their airtime is not known."""
        kind: Literal["frame", "load"] = "frame" if node is None else "load"
        self._add(
            rows.traffic_row(
                t, kind, node, frames=frames, size_bytes=size_bytes, airtime_s=0.0, category=category, label=label
            )
        )

    def lost(self, t: float, reason: str, count: int) -> None:
        self._add(rows.lost_row(t, reason, count))

    def end(self, t: float) -> None:
        self._add(rows.end_row(t, 1))

    def _add(self, row: Record) -> None:
        self._recorder.add(row)
        self._rows += 1

    def flush(self) -> None:
        """Writes what came since the last time."""
        if not self._rows:
            return
        try:
            self._writer.append(self._recorder.batches())
        except ConfigurationError:
            self.rows_lost += self._rows
        self._recorder = Recorder(self._run_id)
        self._rows = 0
