from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from roamcast.errors import ConfigurationError
from roamcast.trace.arrow import SCHEMA
from roamcast.trace.files import TraceWriter, read_about, read_trace, require_writable, write_trace
from roamcast.trace.recorder import Recorder
from roamcast.trace.schema import Record

Write = Callable[[Path], object]


def recorded(*records: Record) -> Recorder:
    recorder = Recorder("run-1")
    for record in records:
        recorder.add(record)
    return recorder


ROWS = (
    Record(0.0, "subscribed", node=2, category="intervals", detail="0..10"),
    Record(1.0, "published", node=1, event_id=1 << 32 | 1, value=3.0, bytes=64, shortest_hops=[0, 1, -1]),
    Record(1.5, "delivered", node=2, peer=1, event_id=1 << 32 | 1, value=0.5, hops=1, bytes=64),
    Record(0.5, "delivered", node=3, peer=1, event_id=1 << 32 | 2, value=0.25, hops=2, bytes=64),
    Record(9.0, "end", count=3),
)


def rows_by_kind(table: pa.Table) -> dict[str, list[dict[str, object]]]:
    found: dict[str, list[dict[str, object]]] = {}
    for row in table.to_pylist():
        found.setdefault(row["kind"], []).append(row)
    return found


def test_a_trace_comes_back_with_every_field_in_the_one_schema(tmp_path: Path) -> None:
    recorder = recorded(*ROWS)
    write_trace(tmp_path / "deep" / "trace", recorder.batches())
    table = read_trace(tmp_path / "deep" / "trace")
    assert table.schema == SCHEMA
    assert rows_by_kind(table) == rows_by_kind(recorder.table())


def test_files_are_partitioned_by_kind_and_nothing_hidden_is_left(tmp_path: Path) -> None:
    write_trace(tmp_path / "trace", recorded(*ROWS).batches())
    files = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file())
    assert files == [
        f"trace/kind={kind}/part-00000.parquet" for kind in ("delivered", "end", "published", "subscribed")
    ]


def test_numbers_that_hardly_repeat_are_stored_without_a_dictionary(tmp_path: Path) -> None:
    write_trace(tmp_path / "trace", recorded(*ROWS).batches())
    for path in tmp_path.rglob("*.parquet"):
        columns = pq.ParquetFile(path).metadata.row_group(0)
        for place in range(columns.num_columns):
            column = columns.column(place)
            assert column.has_dictionary_page == (column.physical_type != "DOUBLE"), column.path_in_schema


def test_what_was_run_stands_beside_the_rows_and_is_not_one_of_them(tmp_path: Path) -> None:
    write_trace(tmp_path / "trace", recorded(*ROWS).batches(), b'{"seed": 1}')
    assert read_about(tmp_path / "trace") == b'{"seed": 1}'
    assert read_trace(tmp_path / "trace").num_rows == len(ROWS)
    write_trace(tmp_path / "silent", recorded(*ROWS).batches())
    assert read_about(tmp_path / "silent") == b""


def test_an_empty_directory_is_taken(tmp_path: Path) -> None:
    (tmp_path / "trace").mkdir()
    require_writable(tmp_path / "trace")
    write_trace(tmp_path / "trace", recorded(*ROWS).batches())
    assert read_trace(tmp_path / "trace").num_rows == len(ROWS)


def test_a_growing_trace_is_readable_between_appends(tmp_path: Path) -> None:
    writer = TraceWriter(tmp_path / "trace")
    writer.append(recorded(*ROWS[:3]).batches())
    assert read_trace(tmp_path / "trace").num_rows == 3
    writer.append(recorded(*ROWS[3:]).batches())
    table = read_trace(tmp_path / "trace")
    assert [row["node"] for row in rows_by_kind(table)["delivered"]] == [2, 3]
    assert table.num_rows == len(ROWS)


def test_a_file_that_is_being_written_is_not_read(tmp_path: Path) -> None:
    TraceWriter(tmp_path / "trace").append(recorded(*ROWS).batches())
    (tmp_path / "trace" / "kind=delivered" / ".part-00001.parquet").write_bytes(b"half a file")
    assert read_trace(tmp_path / "trace").num_rows == len(ROWS)


@pytest.mark.parametrize("write", [require_writable, lambda path: write_trace(path, []), TraceWriter])
def test_a_directory_that_holds_something_is_refused_and_untouched(tmp_path: Path, write: Write) -> None:
    (tmp_path / "keep.txt").write_text("mine")
    with pytest.raises(ConfigurationError, match="is not empty"):
        write(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["keep.txt"]


@pytest.mark.parametrize("write", [require_writable, lambda path: write_trace(path, []), TraceWriter])
def test_a_directory_below_a_file_is_refused(tmp_path: Path, write: Write) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(ConfigurationError, match="cannot write to"):
        write(tmp_path / "file" / "trace")
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize("write", [require_writable, lambda path: write_trace(path, []), TraceWriter])
def test_a_directory_that_the_system_does_not_let_us_make_is_refused(write: Write) -> None:
    with pytest.raises(ConfigurationError, match="cannot write to '/proc/nowhere/trace'"):
        write(Path("/proc/nowhere/trace"))


def test_asking_whether_a_directory_is_writable_leaves_nothing_behind(tmp_path: Path) -> None:
    require_writable(tmp_path / "a" / "b" / "c")
    assert list(tmp_path.iterdir()) == []


def test_a_trace_that_fails_half_way_leaves_nothing(tmp_path: Path) -> None:
    def batches() -> Iterator[pa.RecordBatch]:
        yield from recorded(*ROWS).batches()
        raise RuntimeError("the source of the rows broke")

    with pytest.raises(RuntimeError, match="broke"):
        write_trace(tmp_path / "deep" / "trace", batches())
    assert list(tmp_path.iterdir()) == []


def test_what_is_no_trace_is_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="is not a directory"):
        read_trace(tmp_path / "nowhere")
    with pytest.raises(ConfigurationError, match="holds no trace"):
        read_trace(tmp_path)
    (tmp_path / "kind=delivered").mkdir()
    (tmp_path / "kind=delivered" / "part-00000.parquet").write_bytes(b"not parquet")
    with pytest.raises(ConfigurationError, match="cannot be read") as refused:
        read_trace(tmp_path)
    assert "\n" not in str(refused.value)
