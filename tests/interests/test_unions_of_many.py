"""Unions of many interests: the quick way gives what the obvious one gives."""

from functools import reduce

from hypothesis import given
from hypothesis import strategies as st

from roamcast.interests import Topics, union_all

levels = st.sampled_from(["a", "b", "*", "**"])
patterns = st.lists(levels, min_size=1, max_size=3).map("/".join)
interests = st.lists(patterns, min_size=1, max_size=4).map(lambda texts: Topics.of(*texts))


@given(st.lists(interests, min_size=1, max_size=6))
def test_the_union_of_many_is_that_of_one_after_the_other(given_ones: list[Topics]) -> None:
    assert union_all(given_ones) == reduce(Topics.union, given_ones)


@given(st.lists(patterns, min_size=1, max_size=8))
def test_no_pattern_that_is_left_is_covered_by_another(texts: list[str]) -> None:
    left = Topics.of(*texts).patterns
    for pattern in left:
        assert not any(Topics((other,)).covers(Topics((pattern,))) for other in left if other != pattern)
    assert all(Topics(left).covers(Topics.of(text)) for text in texts)


def test_no_interests_have_no_union() -> None:
    assert union_all([]) is None
