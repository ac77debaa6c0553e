"""Positions, movements and contacts as text files, read and written.

- Positions: one `x y` per line, in metres; the n-th line is node n, from 0.
- Movements: what ns-2's `setdest` writes and BonnMotion exports. A node has a starting place and is told at times to
  go somewhere at a speed; told again before it arrives, it turns where it is; told to go at speed 0, it stops. Lines
  about `$god_` (ns-2's all-knowing object) are skipped, because contacts are computed here.
- Contacts: one `a b from until` per line, nodes by number from 0, times in seconds.

In the plain formats, columns are separated by blanks or commas. In all, `#` starts a comment and empty lines are
skipped. What is written reads back the same, because numbers are written in full. A line that makes no sense is
refused with its number and what was expected there.
"""

import os
import re
from collections.abc import Iterator
from itertools import pairwise
from math import hypot, isfinite
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Final

from roamcast.errors import ConfigurationError
from roamcast.world.contacts import ContactPlan
from roamcast.world.mobility import Corner, Movements

Point = tuple[float, float]
Contact = tuple[int, int, float, float]

ARRIVED_S: Final = 1e-9
"""A node told to go on this shortly around its arrival has arrived; without this, rounding would add corners."""

_PLACE: Final = re.compile(r"\$node_\((\d+)\)\s+set\s+([XYZ])_\s+(\S+)")
_COMMAND: Final = re.compile(r'\$\w+\s+at\s+(\S+)\s+"\s*\$node_\((\d+)\)\s+setdest\s+(\S+)\s+(\S+)\s+([^\s"]+)\s*"')


class _Line:
    """One line of an input file, and how to refuse it."""

    def __init__(self, path: Path, number: int, text: str) -> None:
        self._place = f"{path}:{number}"
        self.text = text

    def refuse(self, expected: str) -> ConfigurationError:
        shown = self.text if len(self.text) <= 60 else self.text[:57] + "..."
        return ConfigurationError(f"{self._place}: {shown!r}: expected {expected}")

    def columns(self, count: int, expected: str) -> list[str]:
        columns = self.text.replace(",", " ").split()
        if len(columns) != count:
            raise self.refuse(expected)
        return columns

    def number(self, text: str, expected: str) -> float:
        try:
            value = float(text)
        except ValueError:
            raise self.refuse(expected) from None
        if not isfinite(value):
            raise self.refuse(expected)
        return value


def read_positions(path: Path) -> tuple[Point, ...]:
    expected = "`x y`, two numbers in metres"
    positions: list[Point] = []
    for line in _lines(path):
        x_m, y_m = (line.number(column, expected) for column in line.columns(2, expected))
        positions.append((x_m, y_m))
    if not positions:
        raise ConfigurationError(f"{path}: expected at least one position, `x y` per line")
    return tuple(positions)


def read_contacts(path: Path) -> tuple[Contact, ...]:
    expected = "`a b from until`: two different node numbers and two times in seconds, until after from"
    contacts: list[Contact] = []
    for line in _lines(path):
        a, b, from_text, until_text = line.columns(4, expected)
        from_s, until_s = line.number(from_text, expected), line.number(until_text, expected)
        if not (a.isdecimal() and b.isdecimal() and int(a) != int(b) and 0 <= from_s < until_s):
            raise line.refuse(expected)
        contacts.append((int(a), int(b), from_s, until_s))
    if not contacts:
        raise ConfigurationError(f"{path}: expected at least one contact, `a b from until` per line")
    return tuple(contacts)


class _Itinerary:
    """What a movement file says about one node: where it starts, and when it is told to go where, how fast."""

    def __init__(self, first_mention: _Line) -> None:
        self.first_mention = first_mention
        self.start_m: dict[str, float] = {}
        self.orders: list[tuple[float, float, float, float]] = []  # t_s, x_m, y_m, speed_mps

    def corners(self, node: int) -> tuple[Corner, ...]:
        if not {"X", "Y"} <= self.start_m.keys():
            place = f"a starting place, `$node_({node}) set X_ NUMBER` and the same for Y_, somewhere in the file"
            raise self.first_mention.refuse(place)
        corners = [(0.0, self.start_m["X"], self.start_m["Y"])]
        for t_s, x_m, y_m, speed_mps in sorted(self.orders, key=lambda order: order[0]):
            _halt(corners, t_s)
            now_s, now_x_m, now_y_m = corners[-1]
            distance_m = hypot(x_m - now_x_m, y_m - now_y_m)
            if speed_mps > 0 and now_s + distance_m / speed_mps > now_s:
                corners.append((now_s + distance_m / speed_mps, x_m, y_m))
        return tuple(corners)


def read_movements(path: Path) -> tuple[tuple[Corner, ...], ...]:
    """The corners of every node, from an ns-2 movement file."""
    itineraries: dict[int, _Itinerary] = {}
    for line in _lines(path):
        if "god_" in line.text:
            continue
        if place := _PLACE.fullmatch(line.text):
            node, axis, value = place.groups()
            start_m = itineraries.setdefault(int(node), _Itinerary(line)).start_m
            start_m[axis] = line.number(value, f"a number of metres after {axis}_")
        elif command := _COMMAND.fullmatch(line.text):
            itineraries.setdefault(int(command[2]), _Itinerary(line)).orders.append(_order(line, command))
        else:
            raise line.refuse('`$node_(N) set X_ NUMBER` or `$ns_ at TIME "$node_(N) setdest X Y SPEED"`')
    for expected_node, node in enumerate(sorted(itineraries)):
        if node != expected_node:
            raise ConfigurationError(f"{path}: no lines about $node_({expected_node}): expected nodes 0, 1, 2, …")
    if not itineraries:
        raise ConfigurationError(f"{path}: expected at least one node, `$node_(0) set X_ NUMBER`")
    return tuple(itineraries[node].corners(node) for node in range(len(itineraries)))


def _order(line: _Line, command: re.Match[str]) -> tuple[float, float, float, float]:
    expected = "TIME, X, Y and SPEED to be numbers, TIME and SPEED at least 0"
    t_s, x_m, y_m, speed_mps = (line.number(command[group], expected) for group in (1, 3, 4, 5))
    if t_s < 0 or speed_mps < 0:
        raise line.refuse(expected)
    return t_s, x_m, y_m, speed_mps


def _halt(corners: list[Corner], t_s: float) -> None:
    """Makes the last corner the place where the node is at `t_s`."""
    end_s, x_m, y_m = corners[-1]
    if t_s > end_s + ARRIVED_S:
        corners.append((t_s, x_m, y_m))
    elif t_s < end_s - ARRIVED_S:
        corners.pop()
        start_s, start_x_m, start_y_m = corners[-1]
        if t_s > start_s:
            share = (t_s - start_s) / (end_s - start_s)
            corners.append((t_s, start_x_m + share * (x_m - start_x_m), start_y_m + share * (y_m - start_y_m)))


def positions_text(movements: Movements, t_s: float) -> str:
    return "".join(f"{x_m!r} {y_m!r}\n" for x_m, y_m in movements.positions(t_s).tolist())


def movements_text(movements: Movements) -> str:
    places: list[str] = []
    orders: list[tuple[float, str]] = []
    for node in range(movements.nodes):
        corners = movements.corners(node)
        _, start_x_m, start_y_m = corners[0]
        places += (f"$node_({node}) set {axis}_ {at_m!r}\n" for axis, at_m in (("X", start_x_m), ("Y", start_y_m)))
        for (t_s, x_m, y_m), (next_s, next_x_m, next_y_m) in pairwise(corners):
            distance_m = hypot(next_x_m - x_m, next_y_m - y_m)
            if distance_m > 0:
                order = f"setdest {next_x_m!r} {next_y_m!r} {distance_m / (next_s - t_s)!r}"
                orders.append((t_s, f'$ns_ at {t_s!r} "$node_({node}) {order}"\n'))
    orders.sort(key=lambda order: order[0])
    return "".join(places) + "".join(text for _, text in orders)


def contacts_text(plan: ContactPlan) -> str:
    rows = zip(plan.a.tolist(), plan.b.tolist(), plan.from_s.tolist(), plan.until_s.tolist(), strict=True)
    return "# a b from_s until_s\n" + "".join(f"{a} {b} {from_s!r} {until_s!r}\n" for a, b, from_s, until_s in rows)


def write_whole(path: Path, text: str) -> None:
    """Writes a file so that it is either there complete or, whatever happens, as it was before."""
    partial: Path | None = None
    try:
        with NamedTemporaryFile("w", encoding="utf-8", dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
            partial = Path(file.name)
            file.write(text)
        partial.chmod(0o666 & ~_umask())
        partial.replace(path)
    except OSError as error:
        raise ConfigurationError(f"{path}: cannot be written: {error.strerror}") from None
    finally:
        if partial is not None:
            partial.unlink(missing_ok=True)


def _umask() -> int:
    """The permissions new files lack. The system tells it only by setting it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _lines(path: Path) -> Iterator[_Line]:
    """The lines that say something, without comments."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigurationError(f"{path}: cannot be read: expected a text file in UTF-8") from None
    for number, full in enumerate(text.splitlines(), start=1):
        said = full.partition("#")[0].strip()
        if said:
            yield _Line(path, number, said)
