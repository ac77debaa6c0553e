"""Traces as Parquet files, one directory per kind (`kind=delivered/part-00000.parquet`), as Spark lays out tables.

The `kind` column is part of the path, so a reader that wants one kind opens only its files. Pages carry checksums. The
files have no statistics of columns: these lie outside the pages, and one wrong bit there would make a reader skip rows.

- A file is complete when it appears: it is written under a hidden name, which readers skip, and then renamed.
- A trace that is written at once (`write_trace`) appears as a whole or not at all. One that grows while its node
  lives (`TraceWriter`) consists of whole files at every instant.

`_run.json` beside the kinds says what was run. Readers of Parquet skip names that start with an underscore.

Rows are read back kind by kind. Within a kind they keep the order in which they were recorded.
"""

import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from roamcast.errors import ConfigurationError
from roamcast.trace.arrow import SCHEMA, table_of_kind

_KIND_COLUMN = SCHEMA.get_field_index("kind")
_ABOUT = "_run.json"
_REPEATING = [
    f"{field.name}.list.element" if pa.types.is_list(field.type) else field.name
    for field in SCHEMA
    if not pa.types.is_floating(field.type)
]
"""Columns worth a dictionary, by their names in Parquet. Times and latencies hardly repeat: with one, files are larger
and take longer to write."""

SCHEMA_VERSION = 1
"""Of `roamcast.trace.schema`. A new column that may be null does not change it: older files have nulls there."""


class TraceWriter:
    """Adds files to a trace that grows. Its directory must be new or empty, and is made at once."""

    def __init__(self, directory: Path) -> None:
        require_writable(directory)
        with _refusals(directory):
            directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        self._parts = 0

    def append(self, batches: Iterable[pa.RecordBatch]) -> None:
        """One more file for each kind that occurs in `batches`."""
        with _refusals(self._directory):
            for kind, content, _ in encoded_by_kind(batches):
                self._write(kind, content)
        self._parts += 1

    def _write(self, kind: str, content: pa.Buffer) -> None:
        folder = self._directory / f"kind={kind}"
        folder.mkdir(exist_ok=True)
        name = f"part-{self._parts:05}.parquet"
        hidden = folder / f".{name}"
        try:
            hidden.write_bytes(content)
            hidden.replace(folder / name)
        except BaseException:
            hidden.unlink(missing_ok=True)
            raise


def encoded_by_kind(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[str, pa.Buffer, int]]:
    """For each kind that occurs in `batches`: its name, a Parquet file of its rows, and how many there are."""
    found: dict[str, list[pa.Table]] = {}
    for batch in batches:
        rows = pa.Table.from_batches([batch], schema=SCHEMA)
        kinds = list(map(str, rows["kind"].unique().to_pylist()))
        for kind in kinds:
            found.setdefault(kind, []).append(rows if len(kinds) == 1 else table_of_kind(rows, kind))
    for kind in sorted(found):
        rows = pa.concat_tables(found[kind]).remove_column(_KIND_COLUMN)
        yield kind, encoded(rows), rows.num_rows


def encoded(rows: pa.Table) -> pa.Buffer:
    """A Parquet file."""
    sink = pa.BufferOutputStream()
    noted = rows.replace_schema_metadata({"roamcast_schema_version": str(SCHEMA_VERSION)})
    write: Any = pq.write_table  # its types know no list of columns
    write(noted, sink, compression="zstd", write_page_checksum=True, write_statistics=False, use_dictionary=_REPEATING)
    return sink.getvalue()


def write_trace(directory: Path, batches: Iterable[pa.RecordBatch], about: bytes = b"") -> None:
    """Writes a whole trace, and what was run as JSON; if that fails, nothing of it is left."""
    with _made(directory):
        staging = directory / ".partial"  # inside, because `directory` may be a mount point that nothing can replace
        try:
            TraceWriter(staging).append(batches)
            if about:
                (staging / _ABOUT).write_bytes(about)
            for entry in sorted(staging.iterdir()):
                entry.replace(directory / entry.name)
            staging.rmdir()
        except BaseException:
            (directory / _ABOUT).unlink(missing_ok=True)
            for folder in (staging, *directory.glob("kind=*")):
                shutil.rmtree(folder, ignore_errors=True)
            raise


def write_about(directory: Path, about: bytes) -> None:
    """Says, beside the kinds, what is run."""
    with _refusals(directory):
        (directory / _ABOUT).write_bytes(about)


def require_writable(directory: Path) -> None:
    """Refuses a directory into which a trace could not be written, before the trace exists; leaves nothing behind."""
    made = _missing(directory)
    with _made(directory):
        (directory / ".probe").mkdir()
        (directory / ".probe").rmdir()
    _remove_empty(made)


def read_about(directory: Path) -> bytes:
    """What was run, as JSON; nothing if the trace does not say."""
    try:
        return (directory / _ABOUT).read_bytes()
    except OSError:
        return b""


def read_trace(directory: Path) -> pa.Table:
    """The whole trace in the one schema."""
    if not directory.is_dir():
        raise ConfigurationError(f"trace: {str(directory)!r} is not a directory")
    if not any(directory.glob("kind=*/*.parquet")):
        raise ConfigurationError(f"trace: {str(directory)!r} holds no trace; expected kind=.../*.parquet")
    import pyarrow.dataset as ds  # only now: it brings pandas, where that is installed, and that takes long

    partitioning = ds.partitioning(pa.schema([pa.field("kind", pa.string())]), flavor="hive")
    try:
        dataset = ds.dataset(directory, schema=SCHEMA, format="parquet", partitioning=partitioning)
        return dataset.to_table().select(SCHEMA.names).cast(SCHEMA)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise ConfigurationError(f"trace: {str(directory)!r} cannot be read: {_first_line(error)}") from None


@contextmanager
def _made(directory: Path) -> Iterator[None]:
    """Makes `directory` unless it is there and empty; if there is an error, what was made is removed again."""
    with _refusals(directory):
        _refuse_occupied(directory)
        made = _missing(directory)
        try:
            directory.mkdir(parents=True, exist_ok=True)
            yield
        except BaseException:
            _remove_empty(made)
            raise


@contextmanager
def _refusals(directory: Path) -> Iterator[None]:
    """Turns what the file system refuses into the user's one line."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or _first_line(error)
        raise ConfigurationError(f"trace: cannot write to {str(directory)!r}: {reason}") from None


def _refuse_occupied(directory: Path) -> None:
    if directory.exists() and not directory.is_dir():
        raise ConfigurationError(f"trace: {str(directory)!r} is a file; name a new or empty directory")
    if directory.is_dir() and any(directory.iterdir()):
        raise ConfigurationError(f"trace: {str(directory)!r} is not empty; name a new or empty directory")


def _missing(directory: Path) -> list[Path]:
    """The directories that must be made so that `directory` exists, deepest first."""
    missing = []
    for candidate in (directory, *directory.parents):
        if candidate.exists():
            break
        missing.append(candidate)
    return missing


def _remove_empty(directories: Iterable[Path]) -> None:
    for directory in directories:
        if directory.is_dir() and not any(directory.iterdir()):
            directory.rmdir()


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0]
