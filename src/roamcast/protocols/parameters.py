"""What an operator settles before a node starts: its protocol's parameters, and the site."""

import msgspec

from roamcast.causal import Specification


class Parameters(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Base of a protocol's parameters. `__post_init__` refuses nonsense with `require`."""


def require(condition: bool, field: str, value: object, allowed: str) -> None:
    """Refuses a setting with one line that names the field, its value and what is allowed."""
    if _noted is not None:
        _noted[field] = f"{_noted[field]}; {allowed}" if field in _noted else allowed
    if not condition:
        raise ValueError(f"{field} = {value!r}: must be {allowed}")


def require_between(settings: msgspec.Struct, low: float, high: float, *fields: str) -> None:
    """Refuses settings out of a range that several fields share."""
    for field in fields:
        value = getattr(settings, field)
        require(low <= value <= high, field, value, f"between {low:,} and {high:,}")


_noted: dict[str, str] | None = None
"""What `require` has been told of each field, while `ranges` asks."""


def ranges(kind: type[msgspec.Struct]) -> dict[str, str]:
    """What is allowed for each field, in the words of the `require` calls that a struct with its defaults makes."""
    global _noted
    _noted = {}
    try:
        kind()
        return _noted
    finally:
        _noted = None


class Site(msgspec.Struct, frozen=True):
    """What an operator tells every node about the deployment before it starts."""

    width_m: float
    height_m: float
    range_m: float  # nominal radio range
    dependencies: Specification | None = None  # which events cause which others, if any do
