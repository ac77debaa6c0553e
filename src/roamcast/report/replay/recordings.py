"""What can be played back in a directory: one trace, the traces of live nodes, or the runs of a campaign.

A trace directory is what `roamcast simulate --trace` or a live node wrote. Traces of several live nodes, each in its
own directory below, are one run if their network is the same. A campaign's directory has its runs side by side. What
was run (protocol, scenario, seed) comes from the trace's `_run.json` or the campaign's plan. Without it a recording
plays all the same, only its title and the radio's range are missing.
"""

from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from roamcast.campaign.commits import trace_files
from roamcast.campaign.store import Store
from roamcast.errors import ConfigurationError
from roamcast.trace.arrow import SCHEMA
from roamcast.trace.files import read_about, read_trace
from roamcast.world.scenario import Run

LISTED_RUNS = 5  # in an error message
_PARTITIONS = pa.schema([pa.field("batch", pa.string()), pa.field("kind", pa.string())])


class RecordedRun(msgspec.Struct, frozen=True):
    """One run of a directory."""

    run_id: str
    protocol: str | None = None
    seed: int | None = None
    settings: dict[str, str] = {}  # where the campaign swept something: setting -> value
    run: Run | None = None  # None: the trace does not say

    @property
    def name(self) -> str:
        words = [self.protocol, None if self.seed is None else f"seed {self.seed}"]
        words += [f"{setting} {value}" for setting, value in self.settings.items()]
        return f"{self.run_id} ({', '.join(filter(None, words))})" if any(words) else self.run_id


class Recording(msgspec.Struct, frozen=True):
    """A run, its trace in the one schema, and all runs of the same directory."""

    known: RecordedRun
    trace: pa.Table
    others: list[RecordedRun]


def open_recording(directory: Path, run_id: str | None = None) -> Recording:
    """The run whose id begins with `run_id`; if none is named, the first one."""
    if (directory / "campaign.json").is_file():
        return _from_campaign(Store(directory), run_id)
    trace = _read(directory)
    about = _decoded(read_about(directory))
    known = [
        RecordedRun(name) if about is None else RecordedRun(name, about.protocol, about.seed, run=about)
        for name in sorted(map(str, pc.unique(trace["run_id"]).to_pylist()))
    ]
    chosen = _choose(str(directory), known, run_id)
    return Recording(chosen, trace.filter(pc.equal(trace["run_id"], pa.scalar(chosen.run_id))), known)


def _read(directory: Path) -> pa.Table:
    below = sorted({kind.parent for kind in directory.glob("*/kind=*")})
    if below and not any(directory.glob("kind=*")):
        return pa.concat_tables([read_trace(each) for each in below])
    return read_trace(directory)


def _from_campaign(store: Store, run_id: str | None) -> Recording:
    outcomes = store.outcomes()
    plan = store.plan().to_pylist()
    known: dict[str, RecordedRun] = {}
    for row in plan:
        name = row["run_id"]
        outcome = outcomes.get(name)
        if name not in known and outcome is not None and not outcome.failed:
            settings = {
                column: value
                for column, value in row.items()
                if value is not None and column not in ("run_id", "place", "point", "protocol", "seed", "run")
            }
            known[name] = RecordedRun(name, row["protocol"], row["seed"], settings, _decoded(row["run"].encode()))
    chosen = _choose(str(store.directory), list(known.values()), run_id)
    return Recording(chosen, _read_committed(store, chosen.run_id), list(known.values()))


def _choose(directory: str, known: list[RecordedRun], run_id: str | None) -> RecordedRun:
    if not known:
        raise ConfigurationError(f"replay: {directory!r} holds no run that is over")
    fitting = [each for each in known if each.run_id.startswith(run_id or "")]
    exact = [each for each in known if each.run_id == run_id]
    if len(fitting) == 1 or exact:
        return (exact or fitting)[0]
    if run_id and not fitting:
        raise ConfigurationError(f"run: {run_id!r} is not in {directory!r}; it holds {_listed(known)}")
    if run_id:
        raise ConfigurationError(f"run: {run_id!r} is the beginning of several ids: {_listed(fitting)}")
    return known[0]


def _listed(known: list[RecordedRun]) -> str:
    more = len(known) - LISTED_RUNS
    return ", ".join(each.name for each in known[:LISTED_RUNS]) + (f" and {more} more" if more > 0 else "")


def _read_committed(store: Store, run_id: str) -> pa.Table:
    found = trace_files(store.directory)
    own = (ds.field("run_id") == run_id) & ~ds.field("kind").isin(["run", "measure"])  # these are no part of the trace
    paths = [found.root.arrow_path(file.path) for file in found.files]
    try:
        dataset = ds.dataset(
            paths,
            schema=SCHEMA,
            format="parquet",
            filesystem=found.root.arrow,
            partitioning=ds.partitioning(_PARTITIONS, flavor="hive"),
            partition_base_dir=found.root.arrow_path(""),
        )
        return dataset.to_table(filter=own).select(SCHEMA.names)
    except (pa.ArrowException, OSError, ValueError) as error:
        reason = str(error).partition("\n")[0]
        raise ConfigurationError(f"replay: {str(store.directory)!r} cannot be read: {reason}") from None


def _decoded(about: bytes) -> Run | None:
    """What was run, if this version understands it."""
    try:
        return msgspec.json.decode(about, type=Run) if about else None
    except msgspec.MsgspecError:
        return None
