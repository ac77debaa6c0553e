"""A campaign's directory, and why nothing in it is lost or written twice.

    DIR/campaign.toml                        the file as it was given, for people
    DIR/campaign.json                        the same with everything it refers to, and where it ran (`Manifest`)
    DIR/plan.parquet                         one row a run (see `plan`)
    DIR/trace/batch=00000/kind=delivered/    committed traces; kind=run says how each run went
    DIR/staging/<owner>-<n>/<attempt>/       a batch that is being written, each attempt at a task for itself
    DIR/report.html

A batch of runs is written into `staging`; the attempts that count are gathered there, and become part of the campaign
by one rename, which the file system makes whole or not at all. A run is done exactly when its `run` row is in a
committed batch; so after a `kill -9` at any instant, the next start finds every committed run, deletes what stands in
`staging` and simulates the rest. A lock that the operating system drops with its process keeps two drivers apart; a
Java process or a worker that survived its driver for a moment can write only into a staging directory that nobody will
commit.

On a cluster, DIR must be on a file system that driver and executors share.
"""

import fcntl
import shlex
import shutil
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from roamcast.campaign.file import Campaign
from roamcast.campaign.worker import FAILED
from roamcast.errors import ConfigurationError

_OUTCOME_COLUMNS = ["run_id", "category", "detail", "value", "count"]


class Manifest(msgspec.Struct, frozen=True):
    """What a campaign's directory says about itself."""

    campaign: Campaign
    text: str  # of the campaign file
    command: str  # runs the campaign again
    environment: dict[str, str]


class Outcome(msgspec.Struct, frozen=True):
    """How a run went."""

    run_id: str
    status: str
    detail: str  # the trace's hash, or the error
    wall_s: float
    rows: int

    @property
    def failed(self) -> bool:
        return self.status == FAILED


class Store:
    """Reads and writes a campaign's directory. Reading needs no Spark."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.file = directory / "campaign.toml"
        self.trace = directory / "trace"
        self.report = directory / "report.html"
        self._manifest = directory / "campaign.json"
        self._plan = directory / "plan.parquet"
        self._staging = directory / "staging"
        self._owner = uuid.uuid4().hex[:8]

    # -- reading -------------------------------------------------------------------------------------------------

    def manifest(self) -> Manifest:
        self._require()
        return msgspec.json.decode(self._manifest.read_bytes(), type=Manifest)

    def plan(self) -> pa.Table:
        self._require()
        return pq.read_table(self._plan)

    def outcomes(self) -> dict[str, Outcome]:
        """Every run that is over, by its id."""
        return {outcome.run_id: outcome for outcome in _read_outcomes(self.trace.glob("batch=*/kind=run/*.parquet"))}

    def trace_bytes(self) -> int:
        """How much is committed."""
        return sum(path.stat().st_size for path in self.trace.glob("batch=*/kind=*/*.parquet"))

    def replay_command(self, run_id: str) -> str:
        return f"roamcast campaign replay {shlex.quote(str(self.directory))} {run_id}"

    def _require(self) -> None:
        if not (self._manifest.is_file() and self._plan.is_file()):
            raise ConfigurationError(
                f"directory: {str(self.directory)!r} holds no campaign; make one with roamcast campaign run FILE --out"
            )

    # -- writing -------------------------------------------------------------------------------------------------

    @contextmanager
    def opened(self, manifest: Manifest) -> Iterator[None]:
        """Owns the directory while it lasts; what an earlier owner left unfinished is cleared away."""
        self.directory.mkdir(parents=True, exist_ok=True)
        if not self._manifest.exists() and any(entry.name != "lock" for entry in self.directory.iterdir()):
            raise ConfigurationError(f"out: {str(self.directory)!r} is not empty and holds no campaign; name another")
        with (self.directory / "lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                message = f"out: {str(self.directory)!r} is in use by another campaign run; wait for it or stop it"
                raise ConfigurationError(message) from None
            shutil.rmtree(self._staging, ignore_errors=True)
            self._staging.mkdir(exist_ok=True)
            self.trace.mkdir(exist_ok=True)
            self._replace(self._manifest, msgspec.json.encode(manifest))
            self._replace(self.file, manifest.text.encode())
            try:
                yield
            finally:
                shutil.rmtree(self._staging, ignore_errors=True)

    def write_plan(self, plan: pa.Table) -> None:
        """The plan as it is now; a stopping rule makes it longer."""
        sink = pa.BufferOutputStream()
        pq.write_table(plan, sink)
        self._replace(self._plan, sink.getvalue().to_pybytes())

    def stage(self, batch: int) -> Path:
        """Where a batch is written before it counts."""
        return self._staging / f"{self._owner}-{batch:05d}"

    def next_batch(self) -> int:
        """The first number above those of all committed batches."""
        return max((int(path.name.partition("=")[2]) for path in self.trace.glob("batch=*")), default=-1) + 1

    def commit(self, batch: int, attempts: Iterable[str]) -> list[Outcome]:
        """Makes these attempts part of the campaign, whole or not at all, and says how their runs went."""
        stage = self.stage(batch)
        whole = stage / "whole"
        for attempt in attempts:
            for file in (stage / attempt).glob("kind=*/*.parquet"):
                folder = whole / file.parent.name
                folder.mkdir(parents=True, exist_ok=True)
                file.rename(folder / f"{attempt}-{file.name}")
        final = self.trace / f"batch={batch:05d}"
        whole.rename(final)
        shutil.rmtree(stage)
        return _read_outcomes(final.glob("kind=run/*.parquet"))

    def _replace(self, path: Path, content: bytes) -> None:
        fresh = path.with_name(f".{path.name}.{self._owner}")
        fresh.write_bytes(content)
        fresh.replace(path)


def _read_outcomes(files: Iterable[Path]) -> list[Outcome]:
    paths = [str(file) for file in sorted(files)]
    if not paths:
        return []
    rows = ds.dataset(paths, format="parquet").to_table(columns=_OUTCOME_COLUMNS)
    return [Outcome(*row) for row in zip(*(column.to_pylist() for column in rows.columns), strict=True)]
