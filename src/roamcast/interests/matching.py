"""Matching in the hot path of protocols."""

from roamcast.events import Event
from roamcast.interests import Interest, Intervals
from roamcast.interests.ranges import contains


def matches(interest: Interest, event: Event) -> bool:
    """The same as `interest.matches(event)`. Intervals are matched here, because this module is compiled and theirs is
    not."""
    if type(interest) is Intervals:
        value = event.content
        return not isinstance(value, str) and contains(interest.ranges, value)
    return interest.matches(event)
