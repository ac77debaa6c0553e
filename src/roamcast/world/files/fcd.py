"""SUMO's floating car data: `<timestep time="…">` with `<vehicle id="…" x="…" y="…"/>` and `<person …/>` inside.

Each vehicle and each person is a node, present from the first to the last timestep that has it. `x` and `y` are metres,
or degrees of longitude and latitude if SUMO ran with `--fcd-output.geo`. SUMO writes its settings into a comment at the
top of the file; where that comment is missing, give the format `fcd-geo`.
"""

import re
from pathlib import Path
from typing import Final

from roamcast.errors import ConfigurationError
from roamcast.world.files.elements import ElementReader
from roamcast.world.files.recording import MovementRecording, Samples

_GEO: Final = re.compile(r"""fcd-output\.geo\s+value\s*=\s*["'](true|1|on|yes|t|x)["']""", re.IGNORECASE)
_MOVERS: Final = ("vehicle", "person", "container")


class _FcdReader(ElementReader):
    def __init__(self, path: Path, geographic: bool) -> None:
        super().__init__(path)
        self.samples = Samples()
        self.geographic = geographic
        self._now_s: float | None = None
        self._root = ""

    def begin(self, tag: str, attributes: dict[str, str]) -> None:
        if not self._root:
            self._root = tag
            self.geographic = self.geographic or any(_GEO.search(comment) for comment in self.comments)
            if tag != "fcd-export":
                raise self.line(f"<{tag}>").refuse("`<fcd-export>`, SUMO's floating car data")
        elif tag == "timestep":
            line = self.line(f"<timestep time={attributes.get('time')!r}>")
            self._now_s = line.number(attributes.get("time", ""), "a time in seconds")
        elif tag in _MOVERS:
            self._sample(tag, attributes)

    def _sample(self, tag: str, attributes: dict[str, str]) -> None:
        expected = f"`<{tag} id=… x=… y=…/>` inside a timestep, x and y numbers"
        shown = " ".join(f"{name}={attributes[name]!r}" for name in ("id", "x", "y") if name in attributes)
        line = self.line(f"<{tag} {shown}>")
        if self._now_s is None or "id" not in attributes:
            raise line.refuse(expected)
        x, y = (line.number(attributes.get(axis, ""), expected) for axis in ("x", "y"))
        add = self.samples.add_degrees if self.geographic else self.samples.add
        add(attributes["id"], self._now_s, x, y, line)


def read(path: Path, geographic: bool = False) -> MovementRecording:
    reader = _FcdReader(path, geographic)
    reader.read()
    if not len(reader.samples):
        raise ConfigurationError(f"{path}: expected at least one `<vehicle>` or `<person>` in a `<timestep>`")
    return reader.samples.recording(reader.geographic)
