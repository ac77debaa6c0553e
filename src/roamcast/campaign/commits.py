"""What a campaign holds: one commit per batch of runs, and the trace files that the commits name.

    DIR/commits/00003-1f0c9a2e.json                       one batch: its files, its runs, where and from what they came
    DIR/trace/batch=00003/kind=delivered/….parquet        files; those that no commit names do not count

A commit is one object, so a batch is either complete or absent. It names each file with size, rows and digest, so that
`verify` finds lost, truncated or altered files. It carries its own digest (`sealed`). A commit may replace earlier ones
(`compact`), which no longer count.

Should two commits name the same run, the later one does not count, unless the earlier one says that the run failed.

Campaigns of Roamcast 0.1 have no commits: there a batch counts if it is below `trace`. They are read as they are
(`uncommitted_batches`) and get commits when they are continued.
"""

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from roamcast.campaign.location import StoreLocation
from roamcast.campaign.sealed import AlteredError, sealed_json, unsealed_json
from roamcast.errors import ConfigurationError

VERSION = 1  # of commits
LAYOUT = 2  # of campaigns: 1 had no commits
COMMITS, TRACE, QUARANTINE = "commits", "trace", "quarantine"
ABOUT = "campaign.json"
DONE, FAILED = "done", "failed"

_THREADS = 16
_OUTCOME_COLUMNS = ["run_id", "category", "detail", "value", "count"]


class File(msgspec.Struct, frozen=True):
    """One Parquet file below `trace`."""

    path: str  # relative to `trace`
    bytes: int
    rows: int
    digest: str = ""  # empty: the file is older than digests

    @property
    def kind(self) -> str:
        return self.path.rpartition("/")[0].rpartition("kind=")[2]


class RunOutcome(msgspec.Struct, frozen=True):
    """How a run went."""

    run_id: str
    status: str
    detail: str  # the trace's hash, or the error
    wall_s: float
    rows: int

    @property
    def failed(self) -> bool:
        return self.status == FAILED


class Commit(msgspec.Struct, frozen=True, kw_only=True):
    """One batch."""

    version: int = VERSION
    schema_version: int = 1  # of the trace's schema
    batch: int
    files: list[File]
    runs: list[RunOutcome]
    parameters: dict[str, dict[str, int]] = {}  # run as JSON without its seed -> its runs and their seeds
    environments: list[dict[str, str]] = []  # where the runs were simulated; several after compaction
    replaces: list[str] = []  # names of commits whose runs are all in this one, or no longer wanted
    name: str = ""  # of the object; not stored in it
    damage: str = ""  # why the object names nothing; not stored in it


class TraceFiles(NamedTuple):
    """Files that count, and the directory that their paths are relative to."""

    root: StoreLocation
    files: list[File]

    def kinds(self) -> list[str]:
        return sorted({file.kind for file in self.files})


def trace_files(place: str | Path | StoreLocation) -> TraceFiles:
    """The files of a campaign, of a campaign's `trace`, or of a single trace."""
    location = StoreLocation(place)
    campaign = next((each for each in (location, location.parent) if is_campaign(each)), None)
    if campaign is not None and (campaign is location or location.name == TRACE):
        commits = read_commits(campaign)
        for commit in commits:
            if commit.damage:
                raise ConfigurationError(
                    f"{str(campaign)!r}: {commit.name} {commit.damage}; roamcast campaign verify sets it aside"
                )
        return TraceFiles(campaign / TRACE, [file for commit in commits for file in commit.files])
    found = [File(name, size, -1) for name, size in location.files().items() if _is_trace(name)]
    if not found:
        raise ConfigurationError(f"trace: {str(location)!r} holds no trace; expected kind=.../*.parquet in it")
    return TraceFiles(location, found)


def is_campaign(place: StoreLocation) -> bool:
    """Whether a campaign was begun here; its description may be lost."""
    return place.exists(ABOUT) or place.exists(COMMITS)


def read_commits(campaign: StoreLocation) -> list[Commit]:
    """The commits that count, in the order in which they were made. Damaged ones are among them and name nothing."""
    if layout_of(campaign) < LAYOUT:
        return uncommitted_batches(campaign)
    return counting(all_commits(campaign))


def all_commits(campaign: StoreLocation) -> list[Commit]:
    names = [name for name in campaign.files(COMMITS) if name.endswith(".json")]
    with ThreadPoolExecutor(_THREADS) as threads:
        contents = list(threads.map(campaign.read, names))
    return [_decoded(campaign, name, content) for name, content in zip(names, contents, strict=True)]


def counting(commits: Iterable[Commit]) -> list[Commit]:
    """Those that no other replaces, and whose runs no earlier one has."""
    whole = list(commits)
    replaced = {name for commit in whole for name in commit.replaces}
    seen: set[str] = set()
    kept = []
    for commit in whole:
        done = {run.run_id for run in commit.runs if not run.failed}
        if commit.name not in replaced and not seen & done:
            kept.append(commit)
            seen |= done
    return kept


def write_commit(campaign: StoreLocation, commit: Commit, owner: str) -> Commit:
    name = f"{COMMITS}/{commit.batch:05d}-{owner}.json"
    campaign.write(name, sealed_json(msgspec.json.encode(msgspec.structs.replace(commit, name=""))))
    return msgspec.structs.replace(commit, name=name)


def outcomes_of(commits: Iterable[Commit]) -> dict[str, RunOutcome]:
    """By run; a run that failed and was repeated counts as it went the last time.

    A commit that compaction wrote may come after the repetition of a run whose failure it carries along.
    """
    outcomes: dict[str, RunOutcome] = {}
    for run in (run for commit in commits for run in commit.runs):
        if run.run_id not in outcomes or outcomes[run.run_id].failed:
            outcomes[run.run_id] = run
    return outcomes


def layout_of(campaign: StoreLocation) -> int:
    """The layout's version, from the campaign's own note; a newer one than this Roamcast knows is refused."""
    try:
        version = msgspec.json.decode(unsealed_json(campaign.read(ABOUT)), type=_Versioned).version
    except FileNotFoundError:
        return LAYOUT
    except (AlteredError, msgspec.MsgspecError, UnicodeDecodeError):
        return LAYOUT if campaign.exists(COMMITS) else 1
    if version > LAYOUT:
        raise ConfigurationError(f"{str(campaign)!r} was made by a newer Roamcast (layout {version}); update this one")
    return version


class _Versioned(msgspec.Struct):
    version: int = 1


def _decoded(campaign: StoreLocation, name: str, content: bytes) -> Commit:
    try:
        inside = unsealed_json(content)
        if msgspec.json.decode(inside, type=_Versioned).version > VERSION:
            raise ConfigurationError(f"{str(campaign)!r}: {name} was made by a newer Roamcast; update this one")
        return msgspec.structs.replace(msgspec.json.decode(inside, type=Commit), name=name)
    except AlteredError as error:
        damage = str(error)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        damage = "cannot be read"
    return Commit(batch=_number(name), files=[], runs=[], name=name, damage=damage)  # its runs are simulated again


def _number(name: str) -> int:
    digits = name.rpartition("/")[2].partition("-")[0]
    return int(digits) if digits.isdigit() else -1


# -- campaigns without commits -----------------------------------------------------------------------------------


def uncommitted_batches(campaign: StoreLocation) -> list[Commit]:
    """The batches of a campaign of layout 1, as if they had commits; without digests."""
    trace = campaign / TRACE
    batches: dict[int, list[tuple[str, int]]] = {}
    for name, size in trace.files().items():
        if name.startswith("batch=") and _is_trace(name):
            batches.setdefault(int(name.partition("/")[0].partition("=")[2]), []).append((name, size))
    with ThreadPoolExecutor(_THREADS) as threads:
        return [
            Commit(
                version=0,
                batch=number,
                files=list(
                    threads.map(lambda found: File(found[0], found[1], _rows(trace, found[0])), batches[number])
                ),
                runs=[run for name, _ in batches[number] if "/kind=run/" in name for run in _outcomes(trace, name)],
            )
            for number in sorted(batches)
        ]


def _rows(trace: StoreLocation, name: str) -> int:
    """-1 if the file cannot be read, which `verify` will find."""
    try:
        return int(pq.read_metadata(trace.arrow_path(name), filesystem=trace.arrow).num_rows)
    except (OSError, ValueError, pa.ArrowException):
        return -1


def _outcomes(trace: StoreLocation, name: str) -> list[RunOutcome]:
    try:
        with trace.arrow.open_input_file(trace.arrow_path(name)) as file:
            rows = pq.ParquetFile(file).read(columns=_OUTCOME_COLUMNS)
    except (OSError, ValueError, pa.ArrowException):
        return []
    columns = [rows[column].to_pylist() for column in _OUTCOME_COLUMNS]
    return [RunOutcome(*row) for row in zip(*columns, strict=True)]


def _is_trace(name: str) -> bool:
    return name.endswith(".parquet") and "kind=" in name
