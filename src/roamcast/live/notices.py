"""What a node tells its operator, apart from the events it delivers."""

from enum import IntEnum
from typing import Any

import msgspec


class Level(IntEnum):
    """How much it matters; the numbers are those of syslog, so that a journal understands them."""

    ERROR = 3
    WARNING = 4
    INFO = 6
    DEBUG = 7


class Notice(msgspec.Struct, frozen=True):
    level: Level
    kind: str  # for programs, such as "neighbour"
    text: str  # for people, one line
    fields: dict[str, Any] = {}
