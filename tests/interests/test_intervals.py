"""Number intervals against sets of whole numbers."""

import math

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roamcast.errors import ConfigurationError, PeerError
from roamcast.events import Event
from roamcast.interests import Interest, Intervals, Topics, parse_interest, union_all

quick = settings(deadline=None, derandomize=True, max_examples=200)

POOL = 24
bounds = st.integers(-4, POOL + 4)
interests = st.lists(st.tuples(bounds, bounds), max_size=5).map(lambda ranges: Intervals.of(*ranges))
real_bounds = st.one_of(bounds, st.floats(-1e6, 1e6), st.sampled_from([-math.inf, math.inf]))
real_interests = st.lists(st.tuples(real_bounds, real_bounds), max_size=5).map(lambda ranges: Intervals.of(*ranges))


def numbers(interest: Intervals) -> set[int]:
    return {value for value in range(-10, POOL + 10) if any(low <= value < high for low, high in interest.ranges)}


def test_ranges_are_half_open() -> None:
    interest = Intervals.of((10, 20))
    assert [interest.matches(Event(1, 0.0, value)) for value in (9, 10, 19.9, 20)] == [False, True, True, False]
    assert not interest.matches(Event(1, 0.0, "12"))
    assert not interest.matches(Event(1, 0.0, math.nan))


@given(st.lists(st.tuples(bounds, bounds), max_size=5))
@quick
def test_the_normal_form_means_the_same_and_is_the_only_one(ranges: list[tuple[int, int]]) -> None:
    interest = Intervals.of(*ranges)
    meant = {value for low, high in ranges for value in range(low, high)}
    assert numbers(interest) == meant
    assert {value for value in range(-10, POOL + 10) if interest.contains(value)} == meant
    assert Intervals.of(*((value, value + 1) for value in meant)) == interest


@given(interests, interests)
@quick
def test_the_algebra_is_that_of_sets(one: Intervals, other: Intervals) -> None:
    ours, theirs = numbers(one), numbers(other)
    assert one.covers(other) is (theirs <= ours)
    assert one.overlaps(other) is bool(ours & theirs)
    assert one.overlaps(other) is other.overlaps(one)
    assert numbers(one.union(other)) == ours | theirs
    assert one.union(other) == other.union(one) == union_all([one, other, one])
    assert one.is_empty is (not ours)


@given(interests, interests)
@quick
def test_extra_share_counts_the_pool(one: Intervals, other: Intervals) -> None:
    extra = (numbers(one) - numbers(other)) & set(range(POOL))
    assert one.extra_share(other, POOL) == pytest.approx(len(extra) / POOL)
    assert one.extra_share(None, POOL) == pytest.approx(len(numbers(one) & set(range(POOL))) / POOL)


@given(real_interests, real_interests, st.floats(-1e6, 1e6))
@quick
def test_covering_and_disjointness_never_lie(one: Intervals, other: Intervals, value: float) -> None:
    if one.covers(other) and other.contains(value):
        assert one.contains(value)
    if one.contains(value) and other.contains(value):
        assert one.overlaps(other)
    assert one.union(other).contains(value) is (one.contains(value) or other.contains(value))


@given(real_interests)
@quick
def test_encodings_round_trip(interest: Intervals) -> None:
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(interest), type=Interest) == interest
    assert Intervals.parse(str(interest)) == interest


def test_text_form() -> None:
    assert str(Intervals.parse("30..40 1..2.5 35..50")) == "1..2.5 30..50"
    assert Intervals.parse("").is_empty
    assert Intervals.parse("-5..-3").ranges == ((-5, -3),)
    assert Intervals.parse("-inf..inf").contains(1e300)


@pytest.mark.parametrize("text", ["5", "a..b", "1..", "..", "1..nan", "1-5", f"0..{2**63}"])
def test_bad_text_is_the_users_mistake(text: str) -> None:
    with pytest.raises(ConfigurationError, match=r"^interest: "):
        Intervals.parse(text)


@pytest.mark.parametrize("ranges", [[[2, 1]], [[1, 1]], [[1, 2], [2, 3]], [[5, 6], [1, 2]], [[math.nan, 1.0]]])
def test_a_peer_must_send_the_normal_form(ranges: list[list[float]]) -> None:
    with pytest.raises(PeerError, match=r"^ranges: "):
        msgspec.msgpack.decode(msgspec.msgpack.encode([1, ranges]), type=Interest)


def test_other_languages_are_strangers() -> None:
    topics = Topics.of("**")
    everything = Intervals.of((-math.inf, math.inf))
    assert not everything.covers(topics)
    assert not everything.overlaps(topics)
    with pytest.raises(PeerError, match="not of the language 'intervals'"):
        everything.union(topics)


def test_parse_interest_names_the_languages_it_knows() -> None:
    assert parse_interest("intervals", "1..2") == Intervals.of((1, 2))
    assert parse_interest("topics", "a/*") == Topics.of("a/*")
    with pytest.raises(ConfigurationError, match="allowed: intervals, topics"):
        parse_interest("sql", "1..2")


def test_the_union_of_nothing_is_nothing() -> None:
    assert union_all([]) is None
