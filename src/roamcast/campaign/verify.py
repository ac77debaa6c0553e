"""Finding trace files that are lost, cut short or altered, and setting their batches aside.

Every file is read and compared with the size and digest that its commit names, and every commit with its own digest.
The batches of a campaign of layout 1 have no digests: there the number of rows in the files must be the one that the
runs reported.

`glance` finds files that are lost or have another size, without reading any. `damages_of_kinds` reads those that a
query needs.

A damaged batch is moved to `quarantine`, with its commit and all files that are left of it. Its runs are then missing
from the campaign like runs that were never simulated, and the next `roamcast campaign run` simulates them.
"""

from collections.abc import Container
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from roamcast.campaign.commits import QUARANTINE, TRACE, Commit, File, all_commits, read_commits
from roamcast.campaign.location import StoreLocation
from roamcast.campaign.sealed import digest_of

_THREADS = 8
_NOT_TRACE = ("run", "measure")  # kinds that a campaign adds to a run's trace


class Damage(NamedTuple):
    """One damaged file."""

    path: str  # relative to the campaign
    what: str
    runs: int  # that its batch holds

    @property
    def is_book(self) -> bool:
        """Whether it lies beside the batches (see `Store.damaged_books`)."""
        return "/" not in self.path


def verify(campaign: StoreLocation) -> list[Damage]:
    """Sets every damaged batch aside and says what was wrong with it."""
    commits = read_commits(campaign)
    sizes = (campaign / TRACE).files()
    with ThreadPoolExecutor(_THREADS) as threads:
        checked = list(threads.map(lambda commit: _damages(campaign, commit, sizes), commits))
    if any(checked):  # a vacuum or a compaction may have taken a batch away while its files were read
        counting = {commit.name for commit in read_commits(campaign)}
        checked = [
            found if commit.name in counting or not commit.name else []
            for commit, found in zip(commits, checked, strict=True)
        ]
    for commit, found in zip(commits, checked, strict=True):
        if found:
            set_aside(campaign, commit, sizes)
    unreadable = [commit for commit in all_commits(campaign) if commit.damage]
    for commit in unreadable:
        campaign.move(commit.name, f"{QUARANTINE}/{commit.name}")
    return [
        *(damage for found in checked for damage in found),
        *(_unreadable(commit) for commit in unreadable),
    ]


def glance(campaign: StoreLocation) -> tuple[list[Commit], list[Damage]]:
    """The batches whose files are all there with their sizes, and what is wrong with the others; reads no file."""
    whole: list[Commit] = []
    damages: list[Damage] = []
    commits = read_commits(campaign)
    sizes = (campaign / TRACE).files()
    for commit in commits:
        found = [
            Damage(f"{TRACE}/{file.path}", what, len(commit.runs))
            for file in commit.files
            if (what := _loss(file, sizes))
        ]
        if commit.damage:
            found = [_unreadable(commit)]
        damages += found
        if not found:
            whole.append(commit)
    return whole, damages


def damages_of_kinds(campaign: StoreLocation, kinds: Container[str] | None) -> list[Damage]:
    """What is wrong with the files of some kinds, or of all, or with any commit; nothing is set aside."""
    whole, found = glance(campaign)
    sizes = (campaign / TRACE).files()
    files = [
        (file, len(commit.runs)) for commit in whole for file in commit.files if kinds is None or file.kind in kinds
    ]
    with ThreadPoolExecutor(_THREADS) as threads:
        what = list(threads.map(lambda each: _damage(campaign, each[0], sizes), files))
    found += [
        Damage(f"{TRACE}/{file.path}", told, runs) for (file, runs), told in zip(files, what, strict=True) if told
    ]
    return found


def _unreadable(commit: Commit) -> Damage:
    return Damage(commit.name, commit.damage, 0)


def set_aside(campaign: StoreLocation, commit: Commit, sizes: dict[str, int]) -> None:
    """The commit goes first: from then on nothing of the batch counts."""
    if commit.name:
        campaign.move(commit.name, f"{QUARANTINE}/{commit.name}")
    for file in commit.files:
        if file.path in sizes:
            campaign.move(f"{TRACE}/{file.path}", f"{QUARANTINE}/{TRACE}/{file.path}")


def _damages(campaign: StoreLocation, commit: Commit, sizes: dict[str, int]) -> list[Damage]:
    found = [(f"{TRACE}/{file.path}", what) for file in commit.files if (what := _damage(campaign, file, sizes))]
    if commit.version == 0 and not found:
        stored = sum(file.rows for file in commit.files if file.kind not in _NOT_TRACE)
        expected = sum(run.rows for run in commit.runs)
        if stored != expected:
            found = [(f"{TRACE}/batch={commit.batch:05d}", f"has {stored:,} trace rows, its runs made {expected:,}")]
    return [Damage(path, what, len(commit.runs)) for path, what in found]


def _loss(file: File, sizes: dict[str, int]) -> str:
    if file.path not in sizes:
        return "is missing"
    if sizes[file.path] != file.bytes:
        return f"has {sizes[file.path]:,} bytes instead of {file.bytes:,}"
    return ""


def _damage(campaign: StoreLocation, file: File, sizes: dict[str, int]) -> str:
    if loss := _loss(file, sizes):
        return loss
    try:
        content = (campaign / TRACE).read(file.path)
        if file.digest:
            return "" if digest_of(content) == file.digest else "was altered"
        pq.read_table(pa.BufferReader(content), page_checksum_verification=True)
    except (OSError, ValueError, pa.ArrowException) as error:
        return f"cannot be read: {str(error).partition(chr(10))[0]}"
    return ""
