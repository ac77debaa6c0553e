"""Tables that travel in several messages: nothing is lost, no message is too large, and none is superfluous."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from roamcast.interests import Intervals
from roamcast.protocols.batches import batches, batches_of, encoded_bytes, room_bytes
from roamcast.protocols.somer.messages import Advertisement, Entry
from roamcast.testing import TinyNet

SIZES = st.lists(st.integers(1, 40))


@given(SIZES, st.integers(1, 60), st.integers(1, 8))
def test_batches_keep_order_and_limits(sizes: list[int], bytes_max: int, items_max: int) -> None:
    found = batches(sizes, int, bytes_max, items_max)
    assert [size for batch in found for size in batch] == sizes
    assert all(len(batch) == 1 or sum(batch) <= bytes_max for batch in found)
    assert all(1 <= len(batch) <= items_max for batch in found)


@given(SIZES, st.integers(1, 60), st.integers(1, 8))
def test_a_batch_ends_only_where_the_next_item_does_not_fit(sizes: list[int], bytes_max: int, items_max: int) -> None:
    found = batches(sizes, int, bytes_max, items_max)
    for batch, following in pairwise(found):
        assert len(batch) == items_max or sum(batch) + following[0] > bytes_max


@given(SIZES, st.integers(1, 8))
def test_batches_by_number_are_batches_of_any_size(sizes: list[int], items_max: int) -> None:
    assert batches_of(sizes, items_max) == [tuple(batch) for batch in batches(sizes, int, 10**9, items_max)]


@given(st.integers(64, 3000), st.lists(st.integers(0, 12), max_size=60))
def test_a_table_of_rows_that_fit_a_frame_travels_in_frames(frame_bytes_max: int, widths: list[int]) -> None:
    host = TinyNet([], "flooding", nodes=1, frame_bytes_max=frame_bytes_max).host(0)
    entries = [
        (Entry(root, root << 20, Intervals.of(*((4 * low, 4 * low + 1) for low in range(width + 1))), None), 5)
        for root, width in enumerate(widths)
    ]
    empty = Advertisement(1 << 31, 1 << 31, True, 1, ())
    for batch in batches(entries, encoded_bytes, room_bytes(host, empty)):
        sent = Advertisement(1 << 31, 1 << 31, True, 300, tuple(batch))
        assert len(batch) == 1 or encoded_bytes(sent) <= frame_bytes_max
