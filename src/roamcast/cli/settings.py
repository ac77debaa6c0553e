"""What several commands read from their options in the same way."""

import tomllib
from typing import Any

from roamcast.errors import ConfigurationError


def assignments(option: str, texts: list[str]) -> dict[str, str]:
    """`name=value` options as a mapping; the owner of the setting checks its value."""
    settings: dict[str, str] = {}
    for text in texts:
        name, separator, value = text.partition("=")
        if not separator or not name:
            raise ConfigurationError(f"{option}: {text!r} is not a setting; write name=value")
        settings[name.strip()] = value.strip()
    return settings


def size_m(option: str, text: str) -> tuple[float, float]:
    """`1000` or `1500x300`: width and height in metres."""
    width, _, height = text.lower().partition("x")
    try:
        return float(width), float(height or width)
    except ValueError:
        raise ConfigurationError(f"{option}: {text!r} is not a size; write metres, as in 1000 or 1500x300") from None


def toml_value(text: str) -> Any:
    """A value as a scenario file would have it: number, true, [list]; anything else is text."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
