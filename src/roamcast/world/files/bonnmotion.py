"""BonnMotion's native movements (Aschenbruck et al., SIMUTools 2010): one line per node, its corners in a row.

A corner is `t x y`, or `t x y z` in three dimensions, of which the height is ignored. Which of both it is, is said by
`J=2D` or `J=3D` in the `.params` file beside the movements; without that file it is the one under which the times of
every line grow. The `.params` file also gives the area (`x=`, `y=`) and the duration.
"""

from pathlib import Path
from typing import Final

from roamcast.errors import ConfigurationError
from roamcast.world.files.lines import Line, lines, read_text
from roamcast.world.files.recording import MovementRecording, bounds_m
from roamcast.world.mobility.movements import Corner

ROUNDING_M: Final = 1.0
"""Two corners at the same time may be this far apart: times are rounded, and trips may be shorter than that."""


def read(path: Path, text: str) -> MovementRecording:
    every = list(lines(path, text))
    if not every:
        raise ConfigurationError(f"{path}: expected at least one node, `t x y t x y ...` on one line")
    settings = _params(path)
    rows = [_numbers(line) for line in every]
    sizes = {"2D": (3,), "3D": (4,)}.get(settings.get("J", ""), (3, 4))
    size = next((size for size in sizes if all(_fits(row, size) for row in rows)), sizes[0])
    paths = tuple(_corners(line, row, size) for line, row in zip(every, rows, strict=True))
    area_m = bounds_m(paths)
    if "x" in settings and "y" in settings:
        area_m = (float(settings["x"]), float(settings["y"]))
    last_s = max(path[-1][0] for path in paths)
    duration_s = float(settings["duration"]) if "duration" in settings else last_s
    return MovementRecording(paths, area_m=area_m, duration_s=duration_s or None)


def _numbers(line: Line) -> list[float]:
    return [line.number(column, "numbers: `t x y t x y ...`") for column in line.text.split()]


def _fits(row: list[float], size: int) -> bool:
    times_s = row[::size]
    return len(row) % size == 0 and times_s == sorted(times_s)


def _corners(line: Line, row: list[float], size: int) -> tuple[Corner, ...]:
    what = "t x y" if size == 3 else "t x y z"
    if len(row) % size:
        raise line.refuse(f"corners `{what}` in a row, {size} numbers each (there are {len(row)} numbers)")
    corners: list[Corner] = []
    for at in range(0, len(row), size):
        t_s, x_m, y_m = row[at : at + 3]
        if t_s < 0 or (corners and t_s < corners[-1][0]):
            raise line.refuse(f"corners `{what}` in order of time (the one at {t_s:g} s is not)")
        if not corners and t_s > 0:
            corners.append((0.0, x_m, y_m))
        if not corners or t_s > corners[-1][0]:
            corners.append((t_s, x_m, y_m))
        elif abs(x_m - corners[-1][1]) + abs(y_m - corners[-1][2]) > ROUNDING_M:
            raise line.refuse(f"one place at {t_s:g} s")
    return tuple(corners)


def _params(path: Path) -> dict[str, str]:
    """The settings beside `NAME.movements` or `NAME.movements.gz`, those that matter here and are numbers."""
    name = path.name.removesuffix(".gz").removesuffix(".movements")
    beside = path.with_name(f"{name}.params")
    if beside == path or not beside.is_file():
        return {}
    settings: dict[str, str] = {}
    for line in lines(beside, read_text(beside)):
        key, _, value = line.text.partition("=")
        if key in ("x", "y", "duration"):
            number = line.number(value, f"{key}=NUMBER, above 0")
            if number <= 0:
                raise line.refuse(f"{key}=NUMBER, above 0")
            settings[key] = value
        elif key == "J":
            settings[key] = value
    return settings
