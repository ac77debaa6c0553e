"""A recorded run: its measures, and its rows as Arrow tables."""

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import msgspec

from roamcast.errors import ConfigurationError
from roamcast.trace.recorder import Recorder
from roamcast.trace.schema import Kind
from roamcast.trace.summary import summarise
from roamcast.world.scenario import Run

if TYPE_CHECKING:
    import pyarrow as pa

KINDS = get_args(Kind)


class Trace:
    """What happened in one run.

    Tables are Arrow's and need `roamcast[trace]`; `.to_pandas()` makes a data frame of one.
    `rows(kind)` has the columns that rows of this kind use, as `roamcast.trace.schema` describes them.
    """

    def __init__(self, recorded: "Recorder | pa.Table", run: Run | None = None) -> None:
        self._recorded = recorded
        self.run = run  # what was simulated; None if it was recorded by live nodes

    def __repr__(self) -> str:
        what = "recorded live" if self.run is None else f"{self.run.protocol}, seed {self.run.seed}"
        return f"<Trace of {len(self._recorded):,} rows: {what}>"

    @cached_property
    def table(self) -> "pa.Table":
        """Every row, in the one schema."""
        return self._recorded.table() if isinstance(self._recorded, Recorder) else self._recorded

    @cached_property
    def summary(self) -> dict[str, Any]:
        """Every measure of the run. A ratio, mean or percentile of nothing is None."""
        return summarise(self._recorded)

    @property
    def events(self) -> "pa.Table":
        """One row per published event."""
        return self.rows("published")

    @property
    def deliveries(self) -> "pa.Table":
        """One row per delivery; `value` is the latency in seconds, `peer` the publisher."""
        return self.rows("delivered")

    def rows(self, kind: str) -> "pa.Table":
        if kind not in KINDS:
            raise ConfigurationError(f"kind: {kind!r} is unknown; allowed: {', '.join(KINDS)}")
        from roamcast.trace.arrow import table_of_kind

        chosen = table_of_kind(self.table, kind)
        used = [name for name in chosen.column_names if chosen[name].null_count < max(1, chosen.num_rows)]
        return chosen.select([name for name in used if name not in ("run_id", "kind")])

    def save(self, directory: str | Path) -> None:
        """Writes Parquet files into a new directory; `read_trace` and `roamcast replay` read them."""
        from roamcast.trace import files

        about = b"" if self.run is None else msgspec.json.encode(self.run, order="deterministic")
        files.write_trace(Path(directory), self.table.to_batches(), about)


def read_trace(directory: str | Path) -> Trace:
    """The trace that `Trace.save`, `roamcast simulate --trace` or `roamcast node --trace` wrote."""
    from roamcast.trace import files

    about = files.read_about(Path(directory))
    table = files.read_trace(Path(directory))
    try:
        run = msgspec.json.decode(about, type=Run) if about else None
    except msgspec.DecodeError as error:
        raise ConfigurationError(f"trace: {str(directory)!r} does not say what was run: {error}") from None
    return Trace(table, run)
