"""The trace of a node that lives: rows are collected and written now and then, as complete files.

A trace that can no longer be written (the disk is full) does not stop the node: the rows are counted as lost.

Only a node that keeps a trace imports this module, because Arrow takes five times the memory of all the rest.
"""

from pathlib import Path
from typing import Any

from roamcast.errors import ConfigurationError
from roamcast.events import Event
from roamcast.trace.files import TraceWriter
from roamcast.trace.recorder import Recorder
from roamcast.trace.rows import published_row
from roamcast.trace.schema import Kind, Record


class TraceLog:
    def __init__(self, directory: Path, run_id: str) -> None:
        self.rows_lost = 0
        self._run_id = run_id
        self._writer = TraceWriter(directory)
        self._recorder = Recorder(run_id)
        self._rows = 0

    def add(self, t: float, kind: Kind, **fields: Any) -> None:
        self._recorder.add(Record(t, kind, **fields))
        self._rows += 1

    def published(self, t: float, event: Event, language: str) -> None:
        self._recorder.add(published_row(t, event, language))
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
