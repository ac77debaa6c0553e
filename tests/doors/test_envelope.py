"""What travels with an event, and retained messages: whatever a peer sends."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roamcast.doors.envelope import ATTRIBUTES_CHARACTERS_MAX, ATTRIBUTES_MAX, MAGIC, opened, wrapped
from roamcast.doors.retained import Retained, RetainedValue, asked, question, read_stamp, written_stamp
from roamcast.errors import ConfigurationError
from roamcast.interests.topics import Topics

TEXTS = st.text(st.characters(min_codepoint=32, exclude_categories=["Cc", "Cs"]), max_size=40)
NAMES = st.from_regex(r"[a-z][a-z0-9-]{0,20}", fullmatch=True)


@given(st.binary(max_size=50) | st.binary(max_size=50).map(MAGIC.__add__), st.dictionaries(NAMES, TEXTS, max_size=8))
def test_what_is_wrapped_is_opened_as_it_was(payload: bytes, attributes: dict[str, str]) -> None:
    assert opened(wrapped(payload, attributes)) == (attributes, payload)


def test_a_payload_without_attributes_travels_as_it_is() -> None:
    assert wrapped(b"smoke", {}) == b"smoke"
    assert opened(b"smoke") == ({}, b"smoke")


@given(st.binary(max_size=80))
def test_what_only_looks_like_an_envelope_is_a_payload(tail: bytes) -> None:
    attributes, payload = opened(MAGIC + tail)
    assert payload == MAGIC + tail or wrapped(payload, attributes)[: len(MAGIC)] == MAGIC


@pytest.mark.parametrize(
    "attributes",
    [
        {str(number): "" for number in range(ATTRIBUTES_MAX + 1)},
        {"long": "x" * ATTRIBUTES_CHARACTERS_MAX},
        {"": "x"},
        {"n" * 65: "x"},
        {"line": "a\nb"},
    ],
)
def test_too_much_is_refused(attributes: dict[str, str]) -> None:
    with pytest.raises(ConfigurationError, match="attributes"):
        wrapped(b"", attributes)


MESSAGES = st.lists(
    st.builds(
        RetainedValue,
        st.sampled_from(["a", "b", "c"]),
        st.binary(max_size=2),
        st.tuples(st.floats(0, 9), st.integers(1, 9)),
        st.booleans(),
    ),
    unique_by=lambda kept: (kept.content, kept.stamp),
)


@given(MESSAGES)
def test_the_order_of_arrival_does_not_matter(messages: list[RetainedValue]) -> None:
    """Whatever comes first, the message with the latest stamp stays."""
    latest = {kept.content: kept for kept in sorted(messages, key=lambda kept: kept.stamp)}
    retained = Retained(10)
    for kept in messages:
        retained.keep(kept)
    own = retained.own_within(Topics.of("**"))
    assert {kept.content: kept for kept in own} == {name: kept for name, kept in latest.items() if kept.is_own}


def test_no_more_is_retained_than_allowed() -> None:
    retained = Retained(2)
    gone = [retained.keep(RetainedValue(name, b"x", (1.0, 1), is_own=True))[1] for name in ("a", "b", "c")]
    assert gone == [[], [], ["a"]]
    assert len(retained) == 2


def test_questions_and_stamps_are_read_as_they_were_written() -> None:
    assert asked(question(["a/*", "b"])) == Topics.of("a/*", "b")
    assert asked(question([str(number) for number in range(100)])) == Topics.of("**")
    assert asked(b"\xff") is None
    assert asked(b"a//b") is None
    assert read_stamp(written_stamp((1.5, 7)), (9.0, 9)) == (1.5, 7)
    for nonsense in ("", "x 1", "nan 1", "1.0 y", "99.0 1"):  # from the future: no later than the event that brought it
        assert read_stamp(nonsense, (9.0, 9)) == (9.0, 9)
