"""The trace of an emulation, written while it runs: what the emulator saw, and what the nodes counted.

Publications and deliveries are what the nodes printed at that instant, so a node that is killed takes none with it.
Frames by label, drops and structure come from the nodes' own traces, which grow in a hidden directory beside it. A
killed node may lose the last seconds of them.
"""

import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from roamcast.live.codec import DropReason
from roamcast.trace.arrow import SCHEMA
from roamcast.trace.files import TraceWriter, encoded, write_about
from roamcast.trace.recorder import Recorder
from roamcast.trace.schema import Record
from roamcast.trace.tail import START, Position, files_between, latest

COUNTED = ("frame", "load", "lost", "dropped", "structure")
"""The kinds of rows that are the nodes' own."""

ECHO = DropReason.OWN_ADDRESS.value

_KIND = pa.schema([pa.field("kind", pa.string())])


class EmulationTrace:
    """A trace at `out`, which must be new or empty; `nodes` is where the nodes keep theirs meanwhile."""

    def __init__(self, out: Path, run_id: str, about: bytes) -> None:
        self.out = out
        self.nodes = out / ".nodes"
        self._run_id = run_id
        self._writer = TraceWriter(out)
        self._rows: list[Record] = []
        self._seen: Position = START
        write_about(out, about)
        self.nodes.mkdir()
        encoded(Recorder(run_id).table())  # Arrow loads much when it is first used; frames would wait for that

    def add(self, row: Record) -> None:
        self._rows.append(row)

    def flush(self, began_s: float, duration_s: float) -> None:
        """Writes what came since the last time. The nodes' clock showed `began_s` when the run began."""
        try:
            here = latest([self.nodes])
        except FileNotFoundError:  # a node is just making or removing a folder; its rows come next time
            here = self._seen
        rows, self._rows = self._rows, []  # at once: others may be added meanwhile
        recorder = Recorder(self._run_id)
        for row in sorted(rows, key=lambda each: each.t):
            recorder.add(row)
        found = [self._of_node(kind, path, began_s, duration_s) for kind, path in files_between(self._seen, here)]
        self._seen = here
        table = pa.concat_tables([recorder.table(), *(each for each in found if each is not None)])
        if table.num_rows:
            self._writer.append(table.to_batches())

    def close(self) -> None:
        """Removes what the nodes wrote; with nothing else there, the whole trace."""
        shutil.rmtree(self.nodes, ignore_errors=True)
        if not any(self.out.glob("kind=*")):
            shutil.rmtree(self.out, ignore_errors=True)

    def _of_node(self, kind: str, path: Path, began_s: float, duration_s: float) -> pa.Table | None:
        if kind not in COUNTED:
            return None
        partitioning = ds.partitioning(_KIND, flavor="hive")
        dataset = ds.dataset(str(path), schema=SCHEMA, format="parquet", partitioning=partitioning)
        table = dataset.to_table().select(SCHEMA.names)
        if kind == "lost":  # a machine hears its own broadcasts, which no radio does
            table = table.filter(pc.not_equal(table["detail"], pa.scalar(ECHO)))
        since_s = pc.subtract(table["t"], pa.scalar(began_s))
        inside_s = pc.min_element_wise(pc.max_element_wise(since_s, pa.scalar(0.0)), pa.scalar(duration_s))
        table = table.set_column(SCHEMA.get_field_index("t"), SCHEMA.field("t"), inside_s)
        names = pa.array([self._run_id] * table.num_rows, SCHEMA.field("run_id").type)
        kinds = pa.array([kind] * table.num_rows, SCHEMA.field("kind").type)
        table = table.set_column(SCHEMA.get_field_index("run_id"), SCHEMA.field("run_id"), names)
        return table.set_column(SCHEMA.get_field_index("kind"), SCHEMA.field("kind"), kinds).cast(SCHEMA)
