"""GPX, the exchange format of GPS receivers: one node per track (`<trk>`), from its points with a time.

Segments of a track belong to one node, which goes straight from the end of one to the start of the next. Routes and
waypoints are ignored, because they have no times. A folder stands for all `.gpx` files in it, by name. Times are in ISO
8601, or plain seconds, as SUMO's `traceExporter` writes them.
"""

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from roamcast.errors import ConfigurationError
from roamcast.world.files.elements import ElementReader
from roamcast.world.files.lines import Line
from roamcast.world.files.recording import MovementRecording, Samples

_PLAIN: Final = re.compile(r"[0-9]+(\.[0-9]*)?")


class _GpxReader(ElementReader):
    def __init__(self, path: Path, samples: Samples) -> None:
        super().__init__(path)
        self._samples = samples
        self._tracks = 0
        self._name = ""
        self._points: list[tuple[float, float, float, Line]] = []  # of the track: t_s, longitude, latitude
        self._point: tuple[float, float, Line] | None = None
        self._time_s: float | None = None
        self._open: list[str] = []

    def begin(self, tag: str, attributes: dict[str, str]) -> None:
        if not self._open and tag != "gpx":
            raise self.line(f"<{tag}>").refuse("`<gpx>`")
        self._open.append(tag)
        if tag == "trk":
            self._tracks += 1
            self._name = f"{self.path.name.partition('.')[0]} track {self._tracks}"
            self._points = []
        elif tag == "trkpt":
            line = self.line(f"<trkpt lat={attributes.get('lat')!r} lon={attributes.get('lon')!r}>")
            expected = "`<trkpt lat=… lon=…>`, both numbers"
            longitude, latitude = (line.number(attributes.get(name, ""), expected) for name in ("lon", "lat"))
            self._point = (longitude, latitude, line)
            self._time_s = None

    def end(self, tag: str, text: str) -> None:
        self._open.pop()
        inside = self._open[-1] if self._open else ""
        if tag == "name" and inside == "trk" and text:
            self._name = text
        elif tag == "time" and inside == "trkpt":
            self._time_s = _seconds(self.line(text), text)
        elif tag == "trkpt" and self._point is not None:
            longitude, latitude, line = self._point
            if self._time_s is None:
                raise line.refuse("a `<time>` in every point of a track")
            self._points.append((self._time_s, longitude, latitude, line))
        elif tag == "trk":
            name = self._samples.unused(self._name)
            for t_s, longitude, latitude, line in self._points:
                self._samples.add_degrees(name, t_s, longitude, latitude, line)


def read(path: Path) -> MovementRecording:
    samples = Samples()
    paths = sorted(path.glob("*.gpx")) if path.is_dir() else [path]
    for each in paths:
        _GpxReader(each, samples).read()
    if not len(samples):
        raise ConfigurationError(f"{path}: expected at least one track with points, `<trk>`")
    return samples.recording(geographic=True)


def _seconds(line: Line, text: str) -> float:
    expected = "a time such as 2024-05-01T12:00:00Z"
    return line.number(text, expected) if _PLAIN.fullmatch(text) else timestamp_s(line, text, expected)


def timestamp_s(line: Line, text: str, expected: str) -> float:
    """An ISO 8601 time as seconds since 1970; without a zone it is UTC."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise line.refuse(expected) from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
