"""Events: identity in one integer, immutable, the same after a journey over the wire."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roamcast.events import NO_EVENT, Content, Event, event_id

addresses = st.integers(0, 2**31 - 1)
numbers = st.integers(1, 2**32 - 1)


@given(addresses, numbers)
@settings(deadline=None, derandomize=True, max_examples=100)
def test_an_identity_names_publisher_and_number(publisher: int, number: int) -> None:
    event = Event(event_id(publisher, number), 0.0, 1)
    assert (event.publisher, event.number) == (publisher, number)
    assert event.id != NO_EVENT
    assert event.id < 2**63  # fits the trace's column


@given(addresses, numbers, addresses, numbers)
@settings(deadline=None, derandomize=True, max_examples=100)
def test_identities_differ_where_publisher_or_number_do(a: int, m: int, b: int, n: int) -> None:
    assert (event_id(a, m) == event_id(b, n)) is ((a, m) == (b, n))


@pytest.mark.parametrize("content", [7, -1.5, "fire/north"])
def test_events_round_trip(content: Content) -> None:
    event = Event(event_id(3, 4), 12.5, content, b"payload", event_id(1, 1))
    again = msgspec.msgpack.decode(msgspec.msgpack.encode(event), type=Event)
    assert again == event
    assert type(again.content) is type(content)


def test_events_are_frozen() -> None:
    with pytest.raises(AttributeError):
        Event(1, 0.0, 5).content = 6  # type: ignore[misc]
