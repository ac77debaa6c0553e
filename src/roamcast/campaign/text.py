"""A campaign as the text of a campaign file, so that figures and advice run like any campaign and can be rerun."""

import json
import re
from typing import Any

from roamcast.world.scenario_file import Tables

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


def campaign_text(tables: Tables) -> str:
    """One line per entry and per element of a list of tables; deeper tables are written inline."""
    return "\n".join(f"{_key(key)} = {_value(value, wide=True)}" for key, value in tables.items()) + "\n"


def _value(value: Any, *, wide: bool = False) -> str:
    if isinstance(value, dict):
        inside = ", ".join(f"{_key(key)} = {_value(part)}" for key, part in value.items())
        return f"{{ {inside} }}" if inside else "{}"
    if isinstance(value, (list, tuple)):
        if wide and any(isinstance(part, dict) for part in value):
            return "[\n" + "".join(f"    {_value(part)},\n" for part in value) + "]"
        return f"[{', '.join(map(_value, value))}]"
    return json.dumps(value, ensure_ascii=False)  # text, numbers and truth values are the same in TOML


def _key(key: str) -> str:
    return key if _BARE_KEY.fullmatch(key) else json.dumps(key)
