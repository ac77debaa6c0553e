"""Positions and contacts, one per line.

- Positions: `x y` in metres; the n-th line is node n, from 0.
- Contacts: `a b from until`, nodes by number from 0, times in seconds. Also The ONE's connectivity events,
  `time CONN a b up` and `... down` (`one.py`).

Columns are separated by blanks or commas. `#` starts a comment and empty lines are skipped.
"""

from pathlib import Path

from roamcast.errors import ConfigurationError
from roamcast.world.files.lines import lines
from roamcast.world.files.one import connectivity

Point = tuple[float, float]
Contact = tuple[int, int, float, float]


def read_positions(path: Path) -> tuple[Point, ...]:
    expected = "`x y`, two numbers in metres"
    positions: list[Point] = []
    for line in lines(path):
        x_m, y_m = (line.number(column, expected) for column in line.columns(2, expected))
        positions.append((x_m, y_m))
    if not positions:
        raise ConfigurationError(f"{path}: expected at least one position, `x y` per line")
    return tuple(positions)


def read_contacts(path: Path) -> tuple[Contact, ...]:
    expected = "`a b from until`: two different node numbers and two times in seconds, until after from"
    contacts: list[Contact] = []
    every = list(lines(path))
    if every and " CONN " in every[0].text:
        return connectivity(every)
    for line in every:
        a, b, from_text, until_text = line.columns(4, expected)
        from_s, until_s = line.number(from_text, expected), line.number(until_text, expected)
        if not (a.isdecimal() and b.isdecimal() and int(a) != int(b) and 0 <= from_s < until_s):
            raise line.refuse(expected)
        contacts.append((int(a), int(b), from_s, until_s))
    if not contacts:
        raise ConfigurationError(f"{path}: expected at least one contact, `a b from until` per line")
    return tuple(contacts)
