"""Following traces that grow: which files have come since the last look.

A place is the trace directory of one node, or a directory with such directories somewhere below it. More nodes may come
while it is followed. Within a trace, files of one kind are numbered in the order in which they appear, and a file never
changes (`roamcast.trace.files`). So a position in all traces is one number per trace and kind: the first part that was
not seen yet. Positions are plain JSON. Between two positions there are always the same files, whenever one looks, so a
stream can be read again.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

from roamcast.errors import ConfigurationError

Position = dict[str, dict[str, int]]
"""Trace directory -> kind -> number of the first part that is not included."""

START: Position = {}


def require_places(places: Iterable[str | Path]) -> list[Path]:
    """The places, if all of them are directories. They may be empty: a node may not have written yet."""
    found = [Path(place) for place in places]
    for place in found:
        if not place.is_dir():
            raise ConfigurationError(f"trace: {str(place)!r} is not a directory")
    return found


def latest(places: Iterable[Path]) -> Position:
    """The position after everything that is there now."""
    position: Position = {}
    for place in places:
        for folder in sorted(place.rglob("kind=*")):
            if any(part.startswith(".") for part in folder.relative_to(place).parts):
                continue  # not finished, or part of another trace
            parts = [part for file in folder.iterdir() if (part := _part(file)) is not None]
            if parts:
                kinds = position.setdefault(str(folder.parent), {})
                kinds[folder.name.partition("=")[2]] = max(parts) + 1
    return position


def files_between(start: Position, end: Position) -> Iterator[tuple[str, Path]]:
    """Kind and path of every file that `end` includes and `start` does not."""
    for trace in sorted(end):
        for kind, after in sorted(end[trace].items()):
            first = start.get(trace, {}).get(kind, 0)
            folder = Path(trace) / f"kind={kind}"
            for number, file in sorted((_part(file), file) for file in folder.iterdir() if _part(file) is not None):
                if number is not None and first <= number < after:
                    yield kind, file


def _part(file: Path) -> int | None:
    """The number of a trace file; none for what is hidden or something else."""
    name, _, number = file.stem.rpartition("-")
    return int(number) if file.suffix == ".parquet" and name == "part" and number.isdigit() else None
