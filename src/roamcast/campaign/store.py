"""A campaign at its place: a directory or a URI.

    DIR/campaign.toml       the file as it was given, for people
    DIR/campaign.json       the same with everything it refers to, and where it ran last (`Manifest`)
    DIR/plan.parquet        one row a run (see `plan`)
    DIR/commits/            what counts, one object per batch (see `commits`)
    DIR/trace/              the trace files that the commits name
    DIR/quarantine/         batches with damaged files (see `verify`)
    DIR/places.parquet      measures that compare runs, kept by reports
    DIR/report.html

Executors write trace files under names that are used once, and tell the driver their sizes and digests. The driver
then commits the batch by writing one object. A run is done exactly when a commit names it. So after a `kill -9` at any
instant, the next start finds every committed run, removes files that no commit names, and simulates the rest. A Java
process or a worker that outlives its driver can only write files that are never committed.

Executors must reach the place under the same name: a shared file system, or a URI such as `s3://bucket/path`.
"""

import shlex
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pyarrow as pa

from roamcast.campaign.commits import (
    ABOUT,
    COMMITS,
    LAYOUT,
    TRACE,
    Commit,
    File,
    RunOutcome,
    all_commits,
    is_campaign,
    layout_of,
    outcomes_of,
    read_commits,
    uncommitted_batches,
    write_commit,
)
from roamcast.campaign.file import Campaign
from roamcast.campaign.location import StoreLocation
from roamcast.campaign.lock import LOCK, locked, require_free
from roamcast.campaign.sealed import AlteredError, digest_of, sealed_json, sealed_table, unsealed_json, unsealed_table
from roamcast.campaign.verify import Damage, verify
from roamcast.errors import ConfigurationError, RoamcastError
from roamcast.trace.files import SCHEMA_VERSION

__all__ = ["LostFilesError", "Manifest", "RunOutcome", "Store", "Written"]


PLAN = "plan.parquet"
PLACES = "places.parquet"
TEXT = "campaign.toml"


class LostFilesError(RoamcastError):
    """Files that executors say they wrote are not at the campaign's place."""


class DamagedError(ConfigurationError):
    """An object that says what the campaign is cannot be used."""

    def __init__(self, message: str, what: str) -> None:
        super().__init__(message)
        self.what = what


class Manifest(msgspec.Struct, frozen=True):
    """What a campaign says about itself."""

    campaign: Campaign
    text: str  # of the campaign file
    command: str  # runs the campaign again
    environment: dict[str, str]
    version: int = LAYOUT


class Written(msgspec.Struct, frozen=True):
    """What a task wrote."""

    files: list[File]
    runs: list[RunOutcome]


class Store:
    """Reads and writes a campaign. Reading needs no Spark."""

    def __init__(self, directory: str | Path | StoreLocation) -> None:
        self.directory = StoreLocation(directory)
        self.trace = self.directory / TRACE
        self.report = str(self.directory / "report.html")
        self.owner = uuid.uuid4().hex[:8]
        self._next = 0

    # -- reading -------------------------------------------------------------------------------------------------

    def manifest(self) -> Manifest:
        content = self._required(ABOUT)
        try:
            return msgspec.json.decode(unsealed_json(content), type=Manifest)
        except AlteredError as error:
            raise self._damaged(ABOUT, str(error)) from None
        except (msgspec.MsgspecError, UnicodeDecodeError):
            raise self._damaged(ABOUT, "cannot be read") from None

    def plan(self) -> pa.Table:
        content = self._required(PLAN)
        try:
            return unsealed_table(content)
        except AlteredError as error:
            raise self._damaged(PLAN, str(error)) from None

    def commits(self) -> list[Commit]:
        return read_commits(self.directory)

    def outcomes(self) -> dict[str, RunOutcome]:
        """Every run that is over, also those that the present plan does not have."""
        return outcomes_of(self.commits())

    def trace_bytes(self) -> int:
        """How much is committed."""
        return sum(file.bytes for commit in self.commits() for file in commit.files)

    def has_report(self) -> bool:
        return self.directory.exists("report.html")

    def replay_command(self, run_id: str) -> str:
        return f"roamcast campaign replay {shlex.quote(str(self.directory))} {run_id}"

    def watch_command(self, run_id: str) -> str:
        return f"roamcast replay {shlex.quote(str(self.directory))} --run {run_id}"

    def damaged_books(self) -> list[Damage]:
        """What is wrong with the objects beside the batches; `run` writes them again, and reports those of reports."""
        if not self.directory.exists(COMMITS):
            return []  # it has only begun, or is older than books that notice
        found: dict[str, str] = {}
        text = None
        try:
            text = self.manifest().text
        except DamagedError as error:
            found[ABOUT] = error.what
        if text is not None and self._content(TEXT) != text.encode():
            found[TEXT] = "is missing" if self._content(TEXT) is None else "was altered"
        for name in (PLAN, PLACES):
            content = self._content(name)
            try:
                if content is not None:
                    unsealed_table(content)
                elif name == PLAN:
                    found[name] = "is missing"
            except AlteredError as error:
                found[name] = str(error)
        return [Damage(name, what, 0) for name, what in found.items()]

    def unnamed_files(self, commits: Iterable[Commit]) -> list[str]:
        """Trace files that no commit names: of a run that was killed or is under way, or of a commit that is lost."""
        named = {file.path for commit in commits for file in commit.files}
        return [name for name in self.trace.files() if name not in named]

    def require_campaign(self) -> None:
        if not is_campaign(self.directory):
            raise ConfigurationError(
                f"directory: {str(self.directory)!r} holds no campaign; make one with roamcast campaign run FILE --out"
            )

    def _content(self, name: str) -> bytes | None:
        try:
            return self.directory.read(name)
        except FileNotFoundError:
            return None

    def _required(self, name: str) -> bytes:
        content = self._content(name)
        if content is None:
            self.require_campaign()
            raise self._damaged(name, "is missing")
        return content

    def _damaged(self, name: str, what: str) -> "DamagedError":
        return DamagedError(
            f"directory: {name} in {str(self.directory)!r} {what}; roamcast campaign run FILE --out "
            f"{shlex.quote(str(self.directory))} writes it again and keeps the runs that are there",
            what,
        )

    # -- writing -------------------------------------------------------------------------------------------------

    def require_writable(self) -> None:
        """Refuses a place that holds something else, is in use or cannot be written, before anything is simulated."""
        try:
            if not is_campaign(self.directory) and any(name != LOCK for name in self._entries()):
                message = f"out: {str(self.directory)!r} is not empty and holds no campaign; name another"
                raise ConfigurationError(message)
            require_free(self.directory, self.owner)
            probe = f"probe-{self.owner}"
            self.directory.write(probe, b"probe")
            self.directory.read(probe)
            self.directory.remove([probe])
        except OSError as error:
            reason = error.strerror or str(error).partition("\n")[0]
            raise ConfigurationError(f"out: {str(self.directory)!r} cannot be written: {reason}") from None

    def _entries(self) -> Iterable[str]:
        if self.directory.is_local:
            return [entry.name for entry in self.directory.path.iterdir()] if self.directory.exists() else []
        return self.directory.files()

    @contextmanager
    def opened(self, manifest: Manifest) -> Iterator[list[Damage]]:
        """Owns the place while it lasts. Damaged batches are set aside and told; uncommitted files are removed."""
        self.require_writable()
        with locked(self.directory, self.owner):
            damages = [*verify(self.directory), *self.damaged_books()]
            self._continue(manifest)
            self.remove_unnamed(all_commits(self.directory))
            yield damages

    @contextmanager
    def held(self) -> Iterator[None]:
        """Owns the place while it lasts, to rearrange what is there."""
        manifest = self.manifest()
        with locked(self.directory, self.owner):
            self._continue(msgspec.structs.replace(manifest, version=LAYOUT))
            yield

    def _continue(self, manifest: Manifest) -> None:
        """Makes the campaign one of the present layout, with new batches to come."""
        if layout_of(self.directory) < LAYOUT:
            self._adopt()
        self.directory.write(ABOUT, sealed_json(msgspec.json.encode(manifest)))
        self.directory.write(TEXT, manifest.text.encode())
        self._next = max((commit.batch for commit in all_commits(self.directory)), default=-1) + 1

    def _adopt(self) -> None:
        """Gives the batches of a campaign of layout 1 their commits."""
        for commit in uncommitted_batches(self.directory):
            files = [
                msgspec.structs.replace(file, digest=digest_of(self.trace.read(file.path))) for file in commit.files
            ]
            write_commit(self.directory, msgspec.structs.replace(commit, version=1, files=files), self.owner)

    def remove_unnamed(self, commits: Iterable[Commit]) -> list[str]:
        """Removes trace files that none of these commits names."""
        unnamed = self.unnamed_files(commits)
        self.trace.remove(unnamed)
        if unnamed:
            self.directory.remove_empty_folders(TRACE)
        return unnamed

    def write_plan(self, plan: pa.Table) -> None:
        """The plan as it is now; a stopping rule makes it longer."""
        self.directory.write(PLAN, sealed_table(plan))

    def next_batch(self) -> int:
        """A number that no batch has had."""
        self._next += 1
        return self._next - 1

    def commit(
        self,
        batch: int,
        written: Iterable[Written],
        *,
        parameters: dict[str, dict[str, int]] | None = None,
        environment: dict[str, str] | None = None,
        last: bool = True,
    ) -> list[RunOutcome]:
        """Makes what these tasks wrote part of the campaign, whole or not at all, and says how their runs went.

        `last`: nothing more will be committed of this batch, so files of attempts that do not count can go.
        """
        parts = list(written)
        files = [file for part in parts for file in part.files]
        there = self.trace.files(f"batch={batch:05d}")
        lost = [file.path for file in files if there.get(f"{file.path}") != file.bytes]
        if lost:
            raise LostFilesError(
                f"{len(lost)} of {len(files)} trace files that executors wrote are not in {str(self.trace)!r} "
                f"(the first: {lost[0]}); do driver and executors share it?"
            )
        runs = [run for part in parts for run in part.runs]
        commit = Commit(
            schema_version=SCHEMA_VERSION,
            batch=batch,
            files=files,
            runs=runs,
            parameters=parameters or {},
            environments=[environment or {}],
        )
        write_commit(self.directory, commit, self.owner)
        if last:
            self.trace.remove(set(there) - {file.path for file in files})
        return runs

    def write_report(self, page: str) -> str:
        """Writes `report.html`, whole or not at all, and says where it is."""
        self.directory.write("report.html", page.encode())
        return self.report
