"""Compaction: many small trace files become few large ones; vacuum: what no longer counts is removed.

Spark opens every file, so thousands of small ones cost more than their rows. `compact` copies the files of several
commits into files of about `TARGET_BYTES` and commits them as one batch that replaces the old ones. That is again one
object, so a reader sees the old files or the new ones, never both. The rows stay in their order, and all rows of a run
and kind stay in one file. The lineage of the old commits goes into the new one.

`vacuum` removes runs that the present plan does not have (of earlier parameters or sources), then commits that were
replaced and all files that no commit names. A reader that still has the old files open will fail, so it is a separate
step.
"""

from collections.abc import Iterable
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from roamcast.campaign.commits import (
    QUARANTINE,
    Commit,
    File,
    all_commits,
    counting,
    outcomes_of,
    write_commit,
)
from roamcast.campaign.delta import refresh
from roamcast.campaign.location import StoreLocation
from roamcast.campaign.sealed import digest_of
from roamcast.campaign.store import Store
from roamcast.trace.files import SCHEMA_VERSION, encoded

TARGET_BYTES = 128 * 2**20


class Change(NamedTuple):
    """What a compaction or a vacuum did to the files that count."""

    files_before: int
    files_after: int
    runs_removed: int = 0
    objects_removed: int = 0


def compact(store: Store, target_bytes: int = TARGET_BYTES) -> Change:
    """Puts batches of small files together. Batches that are large already stay as they are."""
    with store.held():
        commits = store.commits()
        small = [commit for commit in commits if _is_small(commit, target_bytes)]
        if len(small) > 1:
            _rewrite(store, small, None, target_bytes)
        refresh(store)
        return Change(_count(commits), _count(store.commits()))


def vacuum(store: Store, target_bytes: int = TARGET_BYTES) -> Change:
    """Removes runs that the plan does not have, and every object that does not count."""
    planned = set(map(str, store.plan()["run_id"].to_pylist()))
    with store.held():
        commits = store.commits()
        unplanned = [commit for commit in commits if any(run.run_id not in planned for run in commit.runs)]
        if unplanned:
            _rewrite(store, unplanned, planned, target_bytes)
        refresh(store)
        everything = all_commits(store.directory)
        counted = counting(everything)
        kept = {commit.name for commit in counted}
        gone = [commit.name for commit in everything if commit.name not in kept]
        gone += list(store.directory.files(QUARANTINE))
        store.directory.remove(gone)
        unnamed = store.remove_unnamed(counted)
        store.directory.remove_empty_folders(QUARANTINE)
        removed = len(outcomes_of(commits).keys() - planned)
        return Change(_count(commits), _count(counted), removed, len(gone) + len(unnamed))


def _rewrite(store: Store, commits: list[Commit], planned: set[str] | None, target_bytes: int) -> None:
    """Commits the runs of these commits again, as one batch; with `planned`, only those."""
    batch = store.next_batch()
    outcomes = outcomes_of(commits)
    kept = {name for name in outcomes if planned is None or name in planned}
    files = []
    for part, group in enumerate(_parts(commits, target_bytes)):
        for kind in sorted({file.kind for file in group}):
            rows = _rows(store.trace, [file for file in group if file.kind == kind], None if planned is None else kept)
            if rows.num_rows:
                files.append(_write(store, f"batch={batch:05d}/kind={kind}/{store.owner}-{part:05d}-0-0.parquet", rows))
    parameters: dict[str, dict[str, int]] = {}
    for commit in commits:
        for run, seeds in commit.parameters.items():
            mine = {name: seed for name, seed in seeds.items() if name in kept}
            if mine:
                parameters.setdefault(run, {}).update(mine)
    environments = [environment for commit in commits for environment in commit.environments]
    commit = Commit(
        schema_version=SCHEMA_VERSION,
        batch=batch,
        files=files,
        runs=[outcome for name, outcome in outcomes.items() if name in kept],
        parameters=parameters,
        environments=[each for number, each in enumerate(environments) if each not in environments[:number]],
        replaces=[commit.name for commit in commits],
    )
    write_commit(store.directory, commit, store.owner)


def _parts(commits: Iterable[Commit], target_bytes: int) -> list[list[File]]:
    """The files in groups whose largest kind makes one file of about the target. What a task wrote stays together."""
    groups: list[list[File]] = [[]]
    sizes: dict[str, int] = {}
    for commit in commits:
        attempts: dict[str, list[File]] = {}
        for file in commit.files:
            attempts.setdefault(file.path.rpartition("/")[2], []).append(file)
        for files in attempts.values():
            if groups[-1] and max(sizes.get(file.kind, 0) + file.bytes for file in files) > target_bytes:
                groups.append([])
                sizes = {}
            groups[-1] += files
            for file in files:
                sizes[file.kind] = sizes.get(file.kind, 0) + file.bytes
    return groups


def _rows(trace: StoreLocation, files: list[File], kept: set[str] | None) -> pa.Table:
    tables = []
    for file in files:
        with (trace / file.path).opened() as opened:
            tables.append(pq.ParquetFile(opened, page_checksum_verification=True).read())
    rows = pa.concat_tables(tables, promote_options="default")
    return (
        rows if kept is None else rows.filter(pc.is_in(rows["run_id"], value_set=pa.array(sorted(kept), pa.string())))
    )


def _write(store: Store, path: str, rows: pa.Table) -> File:
    content = encoded(rows)
    store.trace.write(path, content)
    return File(path, content.size, rows.num_rows, digest_of(memoryview(content)))


def _is_small(commit: Commit, target_bytes: int) -> bool:
    """Whether its largest kind fills less than half a file."""
    sizes: dict[str, int] = {}
    for file in commit.files:
        sizes[file.kind] = sizes.get(file.kind, 0) + file.bytes
    return max(sizes.values(), default=0) < target_bytes / 2


def _count(commits: Iterable[Commit]) -> int:
    return sum(len(commit.files) for commit in commits)
