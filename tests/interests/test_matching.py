"""The compiled way to match events is the languages' own."""

import pytest

from roamcast.events import Event
from roamcast.interests import Interest, parse_interest
from roamcast.interests.matching import matches

INTERESTS = [
    parse_interest("intervals", ""),
    parse_interest("intervals", "1..3"),
    parse_interest("intervals", "-5..0 2..4 7.5..9"),
    parse_interest("topics", "fire/#"),
]


@pytest.mark.parametrize("interest", INTERESTS, ids=str)
def test_matching_is_that_of_the_language(interest: Interest) -> None:
    for content in (-6, -5, 0, 1, 2.999, 3, 4, 7.5, 9.0, "fire/north", "water"):
        event = Event(1 << 32 | 1, 0.0, content)
        assert matches(interest, event) == interest.matches(event)
