"""Topics against slow, obvious twins: matching by recursion, covering and overlap by listing topics."""

import itertools
from collections.abc import Iterator

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roamcast.errors import ConfigurationError, PeerError
from roamcast.events import Event
from roamcast.interests import Interest, Intervals, Topics, union_all
from roamcast.interests.topics import LEVELS_MAX, PATTERN_CHARACTERS_MAX, PATTERNS_MAX, _covers

quick = settings(deadline=None, derandomize=True, max_examples=150)

FRESH = "z"  # a name that no generated pattern mentions
SHORT_TOPICS = ["/".join(path) for n in range(1, 8) for path in itertools.product(("a", "b", FRESH), repeat=n)]

levels = st.sampled_from(["a", "b", "*", "**"])
short_patterns = st.lists(levels, min_size=1, max_size=3).map("/".join)
patterns = st.lists(levels, min_size=1, max_size=6).map("/".join)
topics = st.lists(st.sampled_from(["a", "b", FRESH]), min_size=1, max_size=7).map("/".join)
interests = st.lists(patterns, max_size=5).map(lambda texts: Topics.of(*texts))


def slow_match(pattern: list[str], path: list[str]) -> bool:
    if not pattern:
        return not path
    if pattern[0] == "**":
        return any(slow_match(pattern[1:], path[at:]) for at in range(len(path) + 1))
    return bool(path) and pattern[0] in ("*", path[0]) and slow_match(pattern[1:], path[1:])


def topics_of(pattern: str) -> set[str]:
    return {topic for topic in SHORT_TOPICS if slow_match(pattern.split("/"), topic.split("/"))}


def hardest_topics(pattern: str, run_max: int) -> Iterator[list[str]]:
    """With names that nobody asks for in place of wildcards, and every length of every `**`."""
    choices: list[list[list[str]]] = []
    for level in pattern.split("/"):
        if level == "**":
            choices.append([[FRESH] * n for n in range(run_max + 1)])
        else:
            choices.append([[FRESH if level == "*" else level]])
    for parts in itertools.product(*choices):
        path = [name for part in parts for name in part]
        if path:
            yield path


@pytest.mark.parametrize(
    ("pattern", "topic", "expected"),
    [
        ("fire/north", "fire/north", True),
        ("fire/north", "fire", False),
        ("fire/*", "fire/north", True),
        ("fire/*", "fire", False),
        ("fire/*", "fire/north/hall", False),
        ("fire/**", "fire", True),
        ("fire/**", "fire/north/hall", True),
        ("fire/**", "fires/north", False),
        ("**/hall", "hall", True),
        ("**/hall", "fire/north/hall", True),
        ("**/north/**", "fire/north", True),
        ("fire/**/hall", "fire/hall", True),
        ("fire/*/**", "fire", False),
        ("**", "anything", True),
    ],
)
def test_a_star_is_one_level_and_two_are_any_number(pattern: str, topic: str, expected: bool) -> None:
    assert Topics.of(pattern).matches(Event(1, 0.0, topic)) is expected


def test_numbers_are_no_topics() -> None:
    assert not Topics.of("**").matches(Event(1, 0.0, 7))


@given(st.lists(patterns, max_size=4), topics)
@quick
def test_matching_agrees_with_the_slow_twin_whatever_the_normal_form_did(texts: list[str], topic: str) -> None:
    expected = any(slow_match(text.split("/"), topic.split("/")) for text in texts)
    assert Topics.of(*texts).contains(topic) is expected


@given(short_patterns, short_patterns)
@quick
def test_one_pattern_covers_and_overlaps_exactly_what_its_topics_say(one: str, other: str) -> None:
    ours, theirs = topics_of(one), topics_of(other)
    assert Topics.of(one).covers(Topics.of(other)) is (theirs <= ours)
    assert Topics.of(one).overlaps(Topics.of(other)) is bool(ours & theirs)


@given(patterns, patterns)
@quick
def test_long_patterns_cover_exactly_the_hardest_topics(one: str, other: str) -> None:
    all_match = all(slow_match(one.split("/"), path) for path in hardest_topics(other, run_max=7))
    assert Topics.of(one).covers(Topics.of(other)) is all_match


@given(interests, interests, topics)
@quick
def test_covering_and_disjointness_never_lie(one: Topics, other: Topics, topic: str) -> None:
    if one.covers(other) and other.contains(topic):
        assert one.contains(topic)
    if one.contains(topic) and other.contains(topic):
        assert one.overlaps(other)
    assert one.overlaps(other) is other.overlaps(one)


@given(interests, interests, topics)
@quick
def test_a_union_matches_what_either_matches(one: Topics, other: Topics, topic: str) -> None:
    union = one.union(other)
    assert union.contains(topic) is (one.contains(topic) or other.contains(topic))
    assert union.covers(one)
    assert union.covers(other)
    assert union == other.union(one)
    assert union_all([one, other, one]) == union


@given(interests)
@quick
def test_encodings_round_trip(interest: Topics) -> None:
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(interest), type=Interest) == interest
    assert Topics.parse(str(interest)) == interest


@given(interests)
@quick
def test_no_pattern_of_the_normal_form_is_covered_by_another(interest: Topics) -> None:
    assert list(interest.patterns) == sorted(interest.patterns)
    for one, other in itertools.permutations(interest.patterns, 2):
        assert not Topics.of(other).covers(Topics.of(one))


def test_what_only_several_patterns_together_cover_is_missed() -> None:
    assert not Topics.of("a", "a/*/**").covers(Topics.of("a/**"))


def test_wildcards_have_one_way_of_being_written() -> None:
    assert Topics.of("a/**/*/**/b").patterns == ("a/*/**/b",)
    assert Topics.of("*/**") == Topics.of("**") == Topics.of("**/**", "a")


def test_many_wildcards_do_not_explode() -> None:
    hard = Topics.of("/".join(["**", "a"] * (LEVELS_MAX // 2)))
    assert not hard.contains("/".join(["a"] * 15 + ["b"]))
    assert hard.contains("/".join(["a"] * 1000))
    assert hard.overlaps(Topics.of("/".join(["a", "**"] * (LEVELS_MAX // 2))))
    assert not hard.covers(Topics.of("/".join(["*", "**", "b", "**"] * (LEVELS_MAX // 4))))


def test_forged_children_do_not_spin_a_union() -> None:
    """Twenty children with as many patterns as they may send: the work grows with what they sent, and no faster."""
    children = [Topics(tuple(sorted(f"*/{child}/{n}" for n in range(PATTERNS_MAX)))) for child in range(20)]
    _covers.cache_clear()
    assert union_all(children) == Topics.of("**")
    assert union_all(children[:1] * 20) == children[0]
    assert _covers.cache_info().misses < 20 * PATTERNS_MAX
    half = union_all([Topics(child.patterns[:12]) for child in children])
    assert half is not None
    assert half.contains("a/7/1")
    with pytest.raises(PeerError, match="patterns: 257"):
        Topics(tuple(sorted(f"a/{n}" for n in range(PATTERNS_MAX + 1))))
    with pytest.raises(ConfigurationError, match="257 patterns"):
        Topics.of(*[f"a/{n}" for n in range(PATTERNS_MAX + 1)])


BAD = [
    "",
    "a//b",
    "/a",
    "a/",
    "a*",
    "a/***",
    "a b",
    "a/\n",
    "a/\x00",
    "/".join("a" * (LEVELS_MAX + 1)),
    "a" * (PATTERN_CHARACTERS_MAX + 1),
]


@pytest.mark.parametrize("text", BAD)
def test_bad_patterns_are_the_users_mistake_or_the_peers(text: str) -> None:
    with pytest.raises(ConfigurationError, match=r"^interest: "):
        Topics.of("a", text)
    with pytest.raises(PeerError, match=r"^patterns: "):
        msgspec.msgpack.decode(msgspec.msgpack.encode([2, [text]]), type=Interest)


@pytest.mark.parametrize("patterns", [["b", "a"], ["a", "a"], ["**/*"], ["*/**"]])
def test_a_peer_must_send_the_normal_form(patterns: list[str]) -> None:
    with pytest.raises(PeerError, match="normal form"):
        msgspec.msgpack.decode(msgspec.msgpack.encode([2, patterns]), type=Interest)


def test_a_pattern_of_the_longest_and_deepest_kind_is_fine() -> None:
    assert Topics.of("a" * PATTERN_CHARACTERS_MAX).contains("a" * PATTERN_CHARACTERS_MAX)
    assert not Topics.of("/".join("a" * LEVELS_MAX)).is_empty
    assert Topics.parse("  ").is_empty


def test_other_languages_are_strangers() -> None:
    numbers = Intervals.of((0, 1))
    assert not Topics.of("**").covers(numbers)
    assert not Topics.of("**").overlaps(numbers)
    with pytest.raises(PeerError, match="not of the language 'topics'"):
        Topics.of("**").union(numbers)


def test_extra_share_estimates_what_the_other_does_not_attract() -> None:
    fire = Topics.of("fire/**")  # one name: a quarter of all events
    assert fire.extra_share(None, 64) == pytest.approx(1 / 4)
    assert fire.extra_share(Topics.of("**"), 64) == 0
    assert fire.extra_share(Topics.of("fire/*/hall"), 64) == pytest.approx(1 / 4 - 1 / 16)
    assert fire.extra_share(Topics.of("flood/**"), 64) == pytest.approx(1 / 4)
    assert Topics.of("a/b/c/d").extra_share(None, 64) == pytest.approx(1 / 64)  # no topic is rarer than the pool says
    assert Topics.of("**", "a").extra_share(None, 64) == 1
    assert Topics.of("a/**", "b/**", "c/**", "d/**", "e/**").extra_share(None, 64) == 1


@given(interests, interests)
@quick
def test_extra_share_is_a_share_and_nothing_where_covered(one: Topics, other: Topics) -> None:
    extra = one.extra_share(other, 1000)
    assert 0 <= extra <= one.extra_share(None, 1000) <= 1
    if other.covers(one):
        assert extra == 0
