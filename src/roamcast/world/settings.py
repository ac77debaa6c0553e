"""The base of everything that a scenario is made of."""

import msgspec


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Base of every part of a scenario: plain data that refuses unknown fields."""
