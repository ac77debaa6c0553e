"""Buckets: whatever matches an interest is published under a bucket that the interest follows."""

from hypothesis import given, settings
from hypothesis import strategies as st

from roamcast.events import Content, Event, event_id
from roamcast.interests import Interest, Intervals, Topics, XPaths
from roamcast.interests.content import event_types
from roamcast.protocols.georendezvous.buckets import WILDCARDS, Buckets
from roamcast.protocols.georendezvous.parameters import GeoRendezvousParameters
from roamcast.seeds import Random
from roamcast.world.golf import golf_event, golf_interest

BUCKETS = Buckets(GeoRendezvousParameters(interval_buckets=4, interval_pool=100.0))

NUMBERS = st.one_of(st.integers(-50, 150), st.floats(-50, 150), st.sampled_from([0, 25, 50, 75, 100, 25.0, 24.999]))
LEVELS = st.lists(st.sampled_from(["a", "b", "<c>", "*", "**"]), min_size=1, max_size=3)


def event(content: Content) -> Event:
    return Event(event_id(1, 1), 0.0, content)


@settings(deadline=None, derandomize=True, max_examples=150)
@given(st.lists(st.tuples(NUMBERS, NUMBERS), max_size=3), NUMBERS)
def test_no_number_is_missed(ranges: list[tuple[float, float]], number: float) -> None:
    interest = Intervals.of(*ranges)
    followed = BUCKETS.of_interest(interest)
    assert followed == sorted(set(followed))
    if interest.matches(event(number)):
        assert set(BUCKETS.of_event(event(number))) & set(followed)


@settings(deadline=None, derandomize=True, max_examples=150)
@given(st.lists(LEVELS, min_size=1, max_size=3), st.lists(st.sampled_from(["a", "b", "<c>"]), min_size=1, max_size=3))
def test_no_topic_is_missed(patterns: list[list[str]], topic: list[str]) -> None:
    interest = Topics.of(*("/".join(levels) for levels in patterns))
    published = event("/".join(topic))
    if interest.matches(published):
        assert set(BUCKETS.of_event(published)) & set(BUCKETS.of_interest(interest))


def test_ranges_follow_only_the_stretches_that_they_touch() -> None:
    assert BUCKETS.of_interest(Intervals.of((0, 25))) == ["interval:0"]
    assert BUCKETS.of_interest(Intervals.of((24, 51))) == ["interval:0", "interval:1", "interval:2"]
    assert BUCKETS.of_interest(Intervals.of((99, 1000))) == ["interval:3"]
    assert BUCKETS.of_interest(Intervals.of()) == []


def test_patterns_follow_their_first_level() -> None:
    assert BUCKETS.of_interest(Topics.of("fire/north", "fire/south/*", "water")) == ["topic:fire", "topic:water"]
    assert BUCKETS.of_interest(Topics.of("*/north", "water")) == [WILDCARDS, "topic:water"]
    assert BUCKETS.of_event(event("fire/north")) == ["topic:fire", WILDCARDS]


def test_documents_meet_under_their_type() -> None:
    one = Buckets(GeoRendezvousParameters(content_buckets=1))
    for name in event_types():
        interest: Interest = XPaths.parse(f"/{name}")
        assert one.of_interest(interest) == [f"content:{name}:0"]
        assert BUCKETS.of_interest(interest) == [f"content:{name}:{index}" for index in range(4)]


@settings(deadline=None, derandomize=True, max_examples=60)
@given(st.integers(0, 2**32), st.sampled_from([0.02, 0.2, 0.9]), st.integers(1, 30))
def test_no_document_is_missed(seed: int, selectivity: float, content_buckets: int) -> None:
    random = Random(seed)
    buckets = Buckets(GeoRendezvousParameters(content_buckets=content_buckets))
    interest = golf_interest(selectivity, random)
    followed = buckets.of_interest(interest)
    assert followed == sorted(set(followed))
    for _ in range(10):
        published = event(golf_event(random))
        assert len(buckets.of_event(published)) == 1
        if interest.matches(published):
            assert set(buckets.of_event(published)) & set(followed)


def test_a_narrow_interest_follows_few_buckets() -> None:
    """The total score has 120 values, more than any other, so documents are divided by it."""
    narrow = XPaths.parse("/PGMFORUM[totalscore >= 31 and totalscore <= 60]")
    assert BUCKETS.of_interest(narrow) == ["content:PGMFORUM:1"]
    assert len(BUCKETS.of_interest(XPaths.parse("/PGMFORUM[player = 'els']"))) == 4


def test_publishers_advertise_where_somebody_may_listen() -> None:
    assert BUCKETS.of_advertisement(Topics.of("fire/**")) == [WILDCARDS, "topic:fire"]
    assert BUCKETS.of_advertisement(Intervals.of((0, 30))) == ["interval:0", "interval:1"]
