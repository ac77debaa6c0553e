"""Sets of strings and numbers against listing what is in them."""

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from roamcast.interests.content.values import Numbers, Pattern, ValueSet, Words, number_text, predecessor, successor

quick = settings(deadline=None, derandomize=True, max_examples=120)

ALPHABET = "abz"  # patterns use a and b only: z is the character that occurs nowhere
SHORT = ["".join(letters) for length in range(8) for letters in itertools.product(ALPHABET, repeat=length)]

bits = st.text("ab", min_size=1, max_size=2)
few = st.lists(bits, max_size=2).map(lambda texts: tuple(sorted(set(texts))))
patterns = st.builds(
    lambda prefix, suffix, *texts: Pattern(prefix, suffix, *texts).simplified(),
    st.text("ab", max_size=2),
    st.text("ab", max_size=2),
    *[few] * 5,
)
finite = st.lists(st.text("ab", max_size=3), max_size=3).map(Words.of)
sets: st.SearchStrategy[ValueSet] = st.one_of(patterns, finite)


def members(values: ValueSet) -> set[str]:
    return {text for text in SHORT if values.holds(text)}


@given(patterns)
@quick
def test_a_pattern_is_empty_only_if_no_string_fits(pattern: Pattern) -> None:
    spaced = "z".join([pattern.prefix, *pattern.contained, pattern.suffix])
    some_fits = any(pattern.holds(text) for text in (spaced, spaced.replace("z", "zz"), spaced.replace("z", "zzz")))
    assert pattern.is_empty == (not some_fits)


@given(sets, sets)
@quick
def test_meeting_and_covering(one: ValueSet, other: ValueSet) -> None:
    both = one.meet(other)
    assert members(both) == members(one) & members(other)
    if one.covers(other):
        assert members(one) >= members(other)
    elif isinstance(one, Pattern) and isinstance(other, Pattern) and not other.is_empty:
        assert outside(one, other)
    assert one.covers(one)
    assert one.covers(both)


def outside(one: Pattern, other: Pattern) -> bool:
    """Whether some string of `other` is not in `one`, among those that have what `other` forces and little else."""
    forced = "z".join(["", *other.contained, ""])
    extra = ["", *one.not_values, *one.not_prefixes, *one.not_suffixes, *one.not_contained]
    candidates = [
        begin + forced + middle + forced + end
        for begin in {other.prefix, *(max(other.prefix, each, key=len) for each in extra)}
        for middle in {"", *(f"z{each}z" for each in extra)}
        for end in {other.suffix, *(max(other.suffix, each, key=len) for each in extra)}
    ]
    return any(other.holds(text) and not one.holds(text) for text in [*candidates, *extra])


ranges = st.lists(st.tuples(st.integers(-9, 9), st.integers(-9, 9)), max_size=4)


@given(ranges, ranges)
@quick
def test_whole_numbers(one: list[tuple[int, int]], other: list[tuple[int, int]]) -> None:
    a, b = Numbers.of(one, True), Numbers.of(other, True)
    in_a, in_b = ({n for n in range(-12, 13) if each.holds(n)} for each in (a, b))
    assert in_a == {n for low, high in one for n in range(low, high + 1)}
    assert {n for n in range(-12, 13) if a.meet(b).holds(n)} == in_a & in_b
    assert {n for n in range(-12, 13) if a.join(b).holds(n)} == in_a | in_b
    assert a.covers(b) == (in_a >= in_b)
    assert (a == b) == (in_a == in_b)


@given(st.floats(-1e6, 1e6))
@quick
def test_doubles_have_neighbours_and_texts(value: float) -> None:
    above = successor(value, False)
    assert above > value
    assert predecessor(above, False) == value
    assert not Numbers(((above, 1e7),), False).holds(value)
    for each in (value, above):
        assert float(number_text(each)) == each
        assert "e" not in number_text(each)
