"""The recorder keeps rows in binary; these tests hold it against the rows themselves."""

from typing import Any, get_args

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from roamcast.events import NO_EVENT, Event, event_id
from roamcast.protocols.api import NOBODY
from roamcast.trace.arrow import SCHEMA, batches_by_kind
from roamcast.trace.recorder import BATCH_ROWS, Recorder
from roamcast.trace.rows import delivered_row, dropped_row, published_row, structure_row
from roamcast.trace.schema import Kind, Record
from roamcast.utility import canonical

INTEGERS = st.none() | st.integers(-(2**63), 2**63 - 1)
FLOATS = st.none() | st.floats(allow_nan=False)
TEXTS = st.none() | st.text(max_size=5)
RECORDS = st.builds(
    Record,
    t=st.floats(allow_nan=False),
    kind=st.sampled_from(get_args(Kind)),
    node=INTEGERS,
    peer=INTEGERS,
    event_id=INTEGERS,
    cause_id=INTEGERS,
    value=FLOATS,
    hops=st.none() | st.integers(-(2**31), 2**31 - 1),
    bytes=INTEGERS,
    count=INTEGERS,
    category=TEXTS,
    detail=TEXTS,
    shortest_hops=st.none() | st.lists(st.integers(-(2**15), 2**15 - 1), max_size=4),
    x_m=FLOATS,
    y_m=FLOATS,
)


def recorded(records: list[Record]) -> Recorder:
    recorder = Recorder("run")
    for record in records:
        recorder.add(record)
    return recorder


def straight(records: list[Record]) -> pa.Table:
    """The slow twin: the table that Arrow makes of the rows as they are."""
    rows: list[dict[str, Any]] = [{"run_id": "run", **record._asdict()} for record in records]
    return pa.Table.from_pylist(rows, schema=SCHEMA)


@settings(deadline=None, derandomize=True, max_examples=40)
@given(st.lists(RECORDS, max_size=8))
def test_the_table_has_the_rows_as_they_were_given(records: list[Record]) -> None:
    assert recorded(records).table().to_pylist() == straight(records).to_pylist()


@settings(deadline=None, derandomize=True, max_examples=40)
@given(st.lists(RECORDS, min_size=1, max_size=4), RECORDS, st.data())
def test_the_hash_tells_rows_apart_in_every_field_and_in_their_order(
    records: list[Record], other: Record, data: st.DataObject
) -> None:
    place = data.draw(st.integers(0, len(records) - 1))
    field = data.draw(st.sampled_from(Record._fields))
    changed = records.copy()
    changed[place] = records[place]._replace(**{field: getattr(other, field)})
    same = recorded(records).trace_hash() == recorded(changed).trace_hash()
    assert same == (repr(records) == repr(changed))  # as written: 0.0 and -0.0 are two
    swapped = [other, *records]
    assert (recorded([*records, other]).trace_hash() == recorded(swapped).trace_hash()) == (
        repr([*records, other]) == repr(swapped)
    )


def test_many_rows_come_in_several_batches_and_reading_them_changes_nothing() -> None:
    records = [
        Record(number / 8, "published", number % 7, shortest_hops=[number % 5] * (number % 3), detail=str(number % 11))
        if number % 2
        else Record(number / 8, "end", count=number)
        for number in range(2 * BATCH_ROWS + 100)
    ]
    read_often, read_once = Recorder("run"), recorded(records)
    for number, record in enumerate(records):
        read_often.add(record)
        if number % 20_000 == 0:
            assert sum(batch.num_rows for batch in read_often.batches()) == number + 1
    assert [batch.num_rows for batch in read_once.batches()] == [BATCH_ROWS, BATCH_ROWS, 100]
    assert read_once.table().equals(straight(records))
    assert read_often.table().equals(straight(records))
    assert read_often.trace_hash() == read_once.trace_hash()


def check_division(records: list[Record]) -> None:
    batches = list(batches_by_kind(recorded(records).packed()))
    assert all(batch["kind"].unique().to_pylist() == [batch["kind"][0].as_py()] for batch in batches)
    found = [row for batch in batches for row in batch.to_pylist()]
    assert sorted(found, key=lambda row: row["kind"]) == straight(sorted(records, key=lambda row: row.kind)).to_pylist()


@settings(deadline=None, derandomize=True, max_examples=40)
@given(st.lists(RECORDS, max_size=8))
def test_rows_by_kind_are_the_same_rows_in_the_order_of_each_kind(records: list[Record]) -> None:
    check_division(records)


def test_many_rows_are_divided_by_kind() -> None:
    with_lists = [Record(number / 8, "published", number % 7, shortest_hops=[number % 5] * 3) for number in range(9)]
    check_division([*with_lists, *(Record(0.5, "end", count=number) for number in range(BATCH_ROWS)), *with_lists])


def check_same(fast: Recorder, row: Record) -> None:
    slow = recorded([row])
    assert fast.table().equals(slow.table())
    assert fast.table().equals(straight([row]))


def test_the_fast_path_of_a_delivery_makes_the_same_row() -> None:
    for cause in (0, event_id(1, 9)):
        event = Event(event_id(3, 5), 1.5, 7, b"12345", cause)
        fast = Recorder("run")
        fast.delivered(2.25, 8, event, 4)
        check_same(fast, delivered_row(2.25, 8, event, 4))


def test_the_fast_path_of_a_drop_makes_the_same_row() -> None:
    for event in (NO_EVENT, event_id(3, 5)):
        fast = Recorder("run")
        fast.dropped(2.25, 8, "no-route", event)
        check_same(fast, dropped_row(2.25, 8, "no-route", event))


def test_the_fast_path_of_structure_makes_the_same_row() -> None:
    for peer in (NOBODY, 0, 4):
        for detail in ("", "5:1"):
            fast = Recorder("run")
            fast.structure(2.25, 8, "parent", peer=peer, value=3.5, detail=detail)
            check_same(fast, structure_row(2.25, 8, "parent", peer=peer, value=3.5, detail=detail))


def test_the_fast_path_of_a_publication_makes_the_same_row() -> None:
    hops = [0, 1, -1, 2]
    for content in (7, 2.5, "fire/north"):
        for cause in (NO_EVENT, event_id(2, 9)):
            for chains in (None, 0, 3):
                for utility in ("", "250ms"):
                    event = Event(event_id(3, 4), 1.5, content, b"abc", cause, utility)
                    fast = Recorder("run")
                    fast.published(1.5, event, "intervals", chains, hops, canonical(utility))
                    check_same(fast, published_row(1.5, event, "intervals", chains=chains, shortest_hops=hops))
