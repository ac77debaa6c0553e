"""The trace of an emulation, in the one schema: what the emulator saw, and what the nodes counted.

Publications and deliveries are what the nodes printed at that instant, so a node that is killed takes none with it.
Frames by label, drops and structure come from the nodes' own traces, of which a killed node may lose the last seconds.
"""

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from roamcast.errors import ConfigurationError
from roamcast.trace import files
from roamcast.trace.arrow import SCHEMA
from roamcast.trace.recorder import Recorder
from roamcast.trace.schema import Record

COUNTED = ("frame", "load", "lost", "dropped", "structure")
"""The kinds of rows that are the nodes' own."""




def merged(run_id: str, rows: list[Record], node_traces: list[Path], began_s: float, duration_s: float) -> pa.Table:
    """One table: `rows` by time, then those of the nodes' traces, whose clock showed `began_s` when the run began."""
    recorder = Recorder(run_id)
    for row in sorted(rows, key=lambda each: each.t):
        recorder.add(row)
    tables = [recorder.table()]
    for directory in node_traces:
        try:
            table = files.read_trace(directory)
        except ConfigurationError:  # it was killed before it wrote anything
            continue
        table = table.filter(pc.is_in(table["kind"], pa.array(COUNTED)))
        since_s = pc.subtract(table["t"], pa.scalar(began_s))
        inside_s = pc.min_element_wise(pc.max_element_wise(since_s, pa.scalar(0.0)), pa.scalar(duration_s))
        table = table.set_column(SCHEMA.get_field_index("t"), SCHEMA.field("t"), inside_s)
        names = pa.array([run_id] * table.num_rows, SCHEMA.field("run_id").type)
        tables.append(table.set_column(SCHEMA.get_field_index("run_id"), SCHEMA.field("run_id"), names).cast(SCHEMA))
    return pa.concat_tables(tables)
