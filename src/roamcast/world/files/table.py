"""CSV with a header: a row per node and instant, in any order.

| column | names |
|---|---|
| node | `node`, `id`, `name`, `vehicle_id`, `person_id` |
| time | `t_s`, `t`, `time`, `time_s`, `timestep_time`, `timestamp`; seconds, or ISO 8601 |
| place | `x_m`, `y_m`, or `x`, `y`, or `vehicle_x`, `vehicle_y`; metres |
| place | `lat`, `lon`, or `latitude`, `longitude`; degrees |

Other columns are ignored. Separators may be commas, semicolons or tabs. So SUMO's floating car data as CSV is read too,
as SUMO writes it itself and as its `xml2csv.py` makes it: there a row is about a vehicle or about a person, each with
columns of its own. Where `x` and `y` are degrees, as after `--fcd-output.geo`, give the format `csv-geo`.
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
_MOVERS: Final = ("vehicle", "person", "container")
_DEGREES: Final = (("lon", "lat"), ("longitude", "latitude"), ("lng", "lat"))
_HEADER: Final = "a header with columns for node, time (t_s), and x_m, y_m or lat, lon"


def is_header(first_line: str) -> bool:
    names = [name.strip().strip('"').lower() for name in first_line.replace(";", ",").replace("\t", ",").split(",")]
    return any(name in names for name in _NODE) and any(name in names for name in _TIME)


def read(path: Path, text: str, geographic: bool = False) -> MovementRecording:
    every = text.splitlines()
    first = next((number for number, line in enumerate(every, 1) if line.strip() and not line.startswith("#")), None)
    if first is None:
        raise ConfigurationError(f"{path}: expected {_HEADER}")
    header = every[first - 1]
    separator = max(",;\t", key=header.count)
    names = [name.strip().lower() for name in next(csv.reader([header], delimiter=separator))]
    kinds = _places(Line(path, first, header), names, geographic)
    samples = Samples()
    rows = csv.reader(every[first:], delimiter=separator)
    for row in rows:
        line = Line(path, first + rows.line_num, separator.join(row))
        if any(cell.strip() for cell in row) and not row[0].startswith("#"):
            _add(samples, line, row, kinds)
    if not len(samples):
        raise ConfigurationError(f"{path}: expected at least one row below the header")
    return samples.recording(kinds[0].geographic)


class _Places(NamedTuple):
    """Which columns hold what, in rows about one kind of node."""

    node: int
    time: int
    x: int
    y: int
    geographic: bool


def _places(header: Line, names: list[str], geographic: bool) -> list[_Places]:
    """Most files have one kind of rows; those with columns for vehicles and for persons have two."""
    time = next((name for name in _TIME if name in names), None)
    movers = [kind for kind in _MOVERS if all(f"{kind}_{what}" in names for what in ("id", "x", "y"))]
    if time is not None and movers:
        columns = [[names.index(f"{kind}_{what}") for what in ("id", "x", "y")] for kind in movers]
        return [_Places(node, names.index(time), x, y, geographic) for node, x, y in columns]
    node = next((name for name in _NODE if name in names), None)
    for in_degrees, pairs in ((False, _METRES), (True, _DEGREES)):
        for x, y in pairs:
            if node is not None and time is not None and x in names and y in names:
                at = names.index
                return [_Places(at(node), at(time), at(x), at(y), in_degrees or geographic)]
    raise header.refuse(_HEADER)


def _add(samples: Samples, line: Line, row: list[str], kinds: list[_Places]) -> None:
    expected = "a node, a time in seconds or as in 2024-05-01T12:00:00Z, and two coordinates"
    for places in kinds:
        if len(row) > max(places.node, places.time, places.x, places.y) and row[places.node].strip():
            break
    else:
        raise line.refuse(expected)
    node, when = row[places.node].strip(), row[places.time].strip()
    t_s = timestamp_s(line, when, expected) if "-" in when[1:] and ":" in when else line.number(when, expected)
    x, y = line.number(row[places.x], expected), line.number(row[places.y], expected)
    add = samples.add_degrees if places.geographic else samples.add
    add(node, t_s, x, y, line)
