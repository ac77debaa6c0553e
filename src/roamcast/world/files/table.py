"""CSV with a header: a row per node and instant, in any order.

| column | names |
|---|---|
| node | `node`, `id`, `name`, `vehicle_id`, `person_id` |
| time | `t_s`, `t`, `time`, `time_s`, `timestep_time`, `timestamp`; seconds, or ISO 8601 |
| place | `x_m`, `y_m`, or `x`, `y`, or `vehicle_x`, `vehicle_y`; metres |
| place | `lat`, `lon`, or `latitude`, `longitude`; degrees |

Other columns are ignored. Separators may be commas, semicolons or tabs. So SUMO's floating car data turned into CSV by
its `xml2csv.py` is read too.
"""

import csv
from pathlib import Path
from typing import Final, NamedTuple

from roamcast.errors import ConfigurationError
from roamcast.world.files.gpx import timestamp_s
from roamcast.world.files.lines import Line
from roamcast.world.files.recording import MovementRecording, Samples

_NODE: Final = ("node", "id", "name", "vehicle_id", "person_id", "vehicle", "person")
_TIME: Final = ("t_s", "t", "time", "time_s", "timestep_time", "timestamp")
_METRES: Final = (("x_m", "y_m"), ("x", "y"), ("vehicle_x", "vehicle_y"), ("person_x", "person_y"))
_DEGREES: Final = (("lon", "lat"), ("longitude", "latitude"), ("lng", "lat"))
_HEADER: Final = "a header with columns for node, time (t_s), and x_m, y_m or lat, lon"


def is_header(first_line: str) -> bool:
    names = [name.strip().strip('"').lower() for name in first_line.replace(";", ",").replace("\t", ",").split(",")]
    return any(name in names for name in _NODE) and any(name in names for name in _TIME)


def read(path: Path, text: str) -> MovementRecording:
    every = text.splitlines()
    first = next((number for number, line in enumerate(every, 1) if line.strip() and not line.startswith("#")), None)
    if first is None:
        raise ConfigurationError(f"{path}: expected {_HEADER}")
    header = every[first - 1]
    separator = max(",;\t", key=header.count)
    names = [name.strip().lower() for name in next(csv.reader([header], delimiter=separator))]
    places = _places(Line(path, first, header), names)
    samples = Samples()
    rows = csv.reader(every[first:], delimiter=separator)
    for row in rows:
        line = Line(path, first + rows.line_num, separator.join(row))
        if any(cell.strip() for cell in row) and not row[0].startswith("#"):
            _add(samples, line, row, places)
    if not len(samples):
        raise ConfigurationError(f"{path}: expected at least one row below the header")
    return samples.recording(places.geographic)


class _Places(NamedTuple):
    """Which columns hold what."""

    node: int
    time: int
    x: int
    y: int
    geographic: bool


def _places(header: Line, names: list[str]) -> _Places:
    node = next((name for name in _NODE if name in names), None)
    time = next((name for name in _TIME if name in names), None)
    for geographic, pairs in ((False, _METRES), (True, _DEGREES)):
        for x, y in pairs:
            if node is not None and time is not None and x in names and y in names:
                return _Places(names.index(node), names.index(time), names.index(x), names.index(y), geographic)
    raise header.refuse(_HEADER)


def _add(samples: Samples, line: Line, row: list[str], places: _Places) -> None:
    expected = "a node, a time in seconds or as in 2024-05-01T12:00:00Z, and two coordinates"
    if len(row) <= max(places.node, places.time, places.x, places.y):
        raise line.refuse(expected)
    node, when = row[places.node].strip(), row[places.time].strip()
    if not node:
        raise line.refuse(expected)
    t_s = timestamp_s(line, when, expected) if "-" in when[1:] and ":" in when else line.number(when, expected)
    x, y = line.number(row[places.x], expected), line.number(row[places.y], expected)
    add = samples.add_degrees if places.geographic else samples.add
    add(node, t_s, x, y, line)
