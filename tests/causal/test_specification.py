"""The dependency language: what it means, and what it refuses."""

from collections.abc import Iterable

import pytest

from roamcast.causal import Link, Role, Specification, parse_specification
from roamcast.errors import ConfigurationError
from roamcast.interests import Intervals, Topics

THESIS = "a => b; a => c; a => d; b => e; c => e"  # thesis, section 5.1


def names(specification: Specification, numbers: Iterable[int]) -> list[str]:
    return [specification.types[number].name for number in numbers]


def test_reads_the_thesis_example() -> None:
    specification = parse_specification(THESIS)
    assert [event_type.name for event_type in specification.types] == ["a", "b", "c", "d", "e"]
    assert names(specification, specification.effects(0)) == ["b", "c", "d"]
    assert names(specification, specification.causes(4)) == ["b", "c"]
    assert names(specification, specification.initial) == ["a"]
    assert names(specification, specification.final) == ["d", "e"]


def test_chains_lines_and_repetitions_read_the_same() -> None:
    assert parse_specification("a => b => e\na=>c;; b => e ;") == parse_specification("a => b; b => e; a => c")


def test_types_mean_what_is_defined_or_something_of_their_own() -> None:
    specification = parse_specification("a: 5..10 20..30; a => b", first_number=1000)
    assert specification.types[0].interest == Intervals.of((5, 10), (20, 30))
    assert specification.types[1].interest == Intervals.of((1001, 1002))
    topics = parse_specification("fire: fire/**; fire => alarm", language="topics")
    assert [event_type.interest for event_type in topics.types] == [Topics.of("fire/**"), Topics.of("causal/alarm")]


@pytest.mark.parametrize("language", ["intervals", "topics"])
def test_its_text_reads_as_itself(language: str) -> None:
    specification = parse_specification(THESIS, language=language, first_number=7, copies=2)
    assert parse_specification(str(specification), language=language) == specification


def test_copies_have_nothing_to_do_with_each_other() -> None:
    specification = parse_specification("a => b", copies=3)
    assert [event_type.name for event_type in specification.types] == ["a.1", "b.1", "a.2", "b.2", "a.3", "b.3"]
    assert specification.dependencies == ((0, 1), (2, 3), (4, 5))
    assert names(specification, specification.initial) == ["a.1", "a.2", "a.3"]


def test_a_role_is_every_type_that_an_interest_has_events_of() -> None:
    specification = parse_specification("a => b => c", first_number=100)
    assert specification.role([Intervals.of((101, 102))], [Intervals.of((0, 101)), Intervals.of((102, 103))]) == Role(
        publishes=(1,), subscribes=(0, 2)
    )
    assert specification.role([Intervals.of((0, 100))], []).is_empty
    assert not specification.role([], [Intervals.of((100, 101))]).is_empty


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "no dependency"),
        ("a => ", "'' in 'a =>'"),
        ("a => 2b", "'2b'"),
        ("a -> b", "'a -> b' is neither"),
        ("a => b => c => a", "a => b => c => a never ends"),
        ("x => a; a => b => a", "a => b => a never ends"),
        ("a => a", "a => a never ends"),
        ("a: 0..1; a: 2..3; a => b", "'a' is defined twice"),
        ("q: 0..1; a => b", "'q' is defined but"),
        ("a: 1..1; a => b", "'a' is defined as nothing"),
        ("a: 0..5; b: 4..9; a => b", "'a' and 'b' share events"),
        ("a: 0-5; a => b", "'0-5' is not a range"),
    ],
)
def test_refuses_nonsense_by_name(text: str, says: str) -> None:
    with pytest.raises(ConfigurationError, match=says) as refusal:
        parse_specification(text)
    assert "\n" not in str(refusal.value)


def test_refuses_copies_of_defined_types() -> None:
    with pytest.raises(ConfigurationError, match="copies = 2"):
        parse_specification("a: 0..1; a => b", copies=2)


def test_links_may_be_probabilistic_and_delay_tolerant() -> None:
    found = parse_specification("a => b [0.6]; b => c [30s] => d [50%, 1.5s]; a => d")
    links = {
        (found.types[cause].name, found.types[effect].name): found.link(cause, effect)
        for cause, effect in found.dependencies
    }
    assert links == {
        ("a", "b"): Link(0.6),
        ("b", "c"): Link(1.0, 30.0),
        ("c", "d"): Link(0.5, 1.5),
        ("a", "d"): Link(),
    }
    assert parse_specification(str(found)) == found
    assert parse_specification("a => b").links == ()
    copies = parse_specification("a => b [0.25]", copies=2)
    assert [copies.link(*arrow) for arrow in copies.dependencies] == [Link(0.25)] * 2


@pytest.mark.parametrize(
    "text",
    ["a => b [0]", "a => b [1.2]", "a => b [often]", "a [0.5] => b", "a => b [0.5", "a => b [.5]; a => b", "a => b []"],
)
def test_links_that_make_no_sense_are_refused(text: str) -> None:
    with pytest.raises(ConfigurationError, match="dependencies"):
        parse_specification(text)
