"""Settings document themselves: every parameter of every protocol has a meaning, a range and a default."""

import msgspec
import pytest

from roamcast.documented import Setting, documented
from roamcast.protocols.catalogue import PROTOCOLS
from roamcast.protocols.parameters import Parameters, require
from roamcast.world.radio.models import RADIOS

LARGEST = 9


class Example(Parameters, frozen=True):
    wait_s: float = 0.5  # how long it waits
    # How many it keeps;
    # the rest is dropped.
    kept_max: int = 3
    kept_min: int = 1

    is_loud: bool = False

    def __post_init__(self) -> None:
        for field in ("wait_s", "kept_max"):
            require(getattr(self, field) > 0, field, getattr(self, field), "above 0")
        require(self.kept_max <= LARGEST, "kept_max", self.kept_max, f"at most {LARGEST}")


class Heir(Example, frozen=True):
    wait_s: float = 2.0  # how long it waits here


def test_comments_ranges_units_and_defaults_are_found() -> None:
    assert documented(Heir) == [
        Setting("wait_s", "number", 2.0, "s", "how long it waits here", "above 0"),
        Setting("kept_max", "whole number", 3, "", "How many it keeps; the rest is dropped.", "above 0; at most 9"),
        Setting("kept_min", "whole number", 1, "", "How many it keeps; the rest is dropped.", ""),
        Setting("is_loud", "true or false", False, "", "", ""),
    ]


@pytest.mark.parametrize("kind", [protocol.Parameters for protocol in PROTOCOLS.values()] + list(RADIOS.values()))
def test_every_setting_says_what_it_means_and_what_is_allowed(kind: type[msgspec.Struct]) -> None:
    for setting in documented(kind):
        assert setting.meaning, f"{kind.__name__}.{setting.name} has no comment"
        assert setting.allowed or setting.type not in ("number", "whole number"), f"{setting.name} has no range"
