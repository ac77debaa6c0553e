"""The ONE, the Opportunistic Network Environment simulator (Keränen, Ott and Kärkkäinen, SIMUTools 2009).

- External movements, which its `ExternalMovement` model reads: a first line `minTime maxTime minX maxX minY maxY`, then
  `time id x y` per line. The declared minima become time 0 and the area's corner.
- Location snapshots, which its `LocationSnapshotReport` writes: a line `[time]`, then `name x y` per node.
- Connectivity, which its `ConnectivityONEReport` writes: `time CONN a b up` and `time CONN a b down`. A link that is
  still up at the end of the file ends with the last event.
"""

from collections.abc import Sequence
from pathlib import Path

from roamcast.errors import ConfigurationError
from roamcast.world.files.lines import Line, lines
from roamcast.world.files.recording import MovementRecording, Samples

Contact = tuple[int, int, float, float]


def read(path: Path, text: str) -> MovementRecording:
    every = list(lines(path, text))
    if not every:
        raise ConfigurationError(f"{path}: expected `minTime maxTime minX maxX minY maxY`, then `time id x y` per line")
    return _snapshots(every) if every[0].text.startswith("[") else _external(every)


def _external(every: list[Line]) -> MovementRecording:
    expected = "`minTime maxTime minX maxX minY maxY`, minima below maxima"
    header = every[0]
    bounds = [header.number(column, expected) for column in header.text.split()]
    if len(bounds) not in (6, 8) or any(low >= high for low, high in zip(bounds[:6:2], bounds[1:6:2], strict=True)):
        raise header.refuse(expected)
    begin_s, end_s, west_m, east_m, south_m, north_m = bounds[:6]
    expected = f"`time id x y`, within the bounds of line {header.line_number}"
    samples = Samples()
    for line in every[1:]:
        columns = line.text.split()
        if len(columns) not in (4, 5):  # the fifth is a height
            raise line.refuse(expected)
        t_s, x_m, y_m = (line.number(columns[place], expected) for place in (0, 2, 3))
        if not (begin_s <= t_s <= end_s and west_m <= x_m <= east_m and south_m <= y_m <= north_m):
            raise line.refuse(expected)
        samples.add(columns[1], t_s - begin_s, x_m - west_m, y_m - south_m, line)
    if not len(samples):
        raise ConfigurationError(f"{header.path}: expected at least one `time id x y`")
    return samples.recording(area_m=(east_m - west_m, north_m - south_m), until_s=end_s - begin_s)


def _snapshots(every: list[Line]) -> MovementRecording:
    samples = Samples()
    t_s = 0.0
    for line in every:
        if line.text.startswith("["):
            t_s = line.number(line.text[1:].removesuffix("]"), "`[time]`, a number of seconds")
        else:
            expected = "`name x y`, or `[time]`"
            name, x_text, y_text = line.columns(3, expected)
            samples.add(name, t_s, line.number(x_text, expected), line.number(y_text, expected), line)
    if not len(samples):
        raise ConfigurationError(f"{every[0].path}: expected at least one `name x y` after `[time]`")
    return samples.recording()


def connectivity(every: Sequence[Line]) -> tuple[Contact, ...]:
    """Contacts from connectivity events. Hosts are numbered; a letter before the number (`p12`) is dropped."""
    expected = "`time CONN a b up` or `time CONN a b down`, in order of time"
    open_since: dict[tuple[int, int], float] = {}
    contacts: list[Contact] = []
    now_s = 0.0
    for line in every:
        time_text, what, first, second, state = line.columns(5, expected)
        t_s = line.number(time_text, expected)
        a, b = (_number(line, name, expected) for name in (first, second))
        if what != "CONN" or state not in ("up", "down") or t_s < now_s or a == b:
            raise line.refuse(expected)
        now_s = t_s
        pair = (min(a, b), max(a, b))
        if state == "up":
            open_since.setdefault(pair, t_s)
        elif pair in open_since:
            contacts.append((*pair, open_since.pop(pair), t_s))
        else:
            raise line.refuse("a link that is up before it goes down")
    contacts += ((*pair, since_s, now_s) for pair, since_s in open_since.items())
    contacts = [contact for contact in contacts if contact[2] < contact[3]]
    if not contacts:
        raise ConfigurationError(f"{every[0].path}: expected at least one link that is up for a while")
    return tuple(sorted(contacts))


def _number(line: Line, name: str, expected: str) -> int:
    digits = name.lstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
    if not digits.isdecimal():
        raise line.refuse(expected)
    return int(digits)
