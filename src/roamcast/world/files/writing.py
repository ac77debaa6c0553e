"""Positions, movements and contacts as text that the readers of this package read back the same."""

import os
from itertools import pairwise
from math import hypot
from pathlib import Path
from tempfile import NamedTemporaryFile

from roamcast.errors import ConfigurationError
from roamcast.world.contacts import ContactPlan
from roamcast.world.mobility import Movements


def positions_text(movements: Movements, t_s: float) -> str:
    return "".join(f"{x_m!r} {y_m!r}\n" for x_m, y_m in movements.positions(t_s).tolist())


def movements_text(movements: Movements, area_m: tuple[float, float], duration_s: float) -> str:
    """As an ns-2 movement file that ends with the run. Its first line is that of `setdest`, with a duration added."""
    shown = [f"nodes: {movements.nodes}", f"max x: {area_m[0]!r}", f"max y: {area_m[1]!r}", f"duration: {duration_s!r}"]
    places: list[str] = []
    orders: list[tuple[float, str]] = []
    for node in range(movements.nodes):
        corners = movements.until(node, duration_s)
        _, start_x_m, start_y_m = corners[0]
        places += (f"$node_({node}) set {axis}_ {at_m!r}\n" for axis, at_m in (("X", start_x_m), ("Y", start_y_m)))
        for (t_s, x_m, y_m), (next_s, next_x_m, next_y_m) in pairwise(corners):
            distance_m = hypot(next_x_m - x_m, next_y_m - y_m)
            if distance_m > 0:
                order = f"setdest {next_x_m!r} {next_y_m!r} {distance_m / (next_s - t_s)!r}"
                orders.append((t_s, f'$ns_ at {t_s!r} "$node_({node}) {order}"\n'))
    orders.sort(key=lambda order: order[0])
    return f"# {', '.join(shown)}\n" + "".join(places) + "".join(text for _, text in orders)


def table_text(movements: Movements, duration_s: float) -> str:
    """The same as CSV: a row per node and corner."""
    rows = ["node,t_s,x_m,y_m\n"]
    for node in range(movements.nodes):
        corners = movements.until(node, duration_s)
        if corners[-1][0] < duration_s:  # it is there until the end
            corners.append((duration_s, *corners[-1][1:]))
        rows += (f"{node},{t_s!r},{x_m!r},{y_m!r}\n" for t_s, x_m, y_m in corners)
    return "".join(rows)


def contacts_text(plan: ContactPlan) -> str:
    rows = zip(plan.a.tolist(), plan.b.tolist(), plan.from_s.tolist(), plan.until_s.tolist(), strict=True)
    return "# a b from_s until_s\n" + "".join(f"{a} {b} {from_s!r} {until_s!r}\n" for a, b, from_s, until_s in rows)


def write_whole(path: Path, content: str | bytes) -> None:
    """Writes a file so that it is either there complete or, whatever happens, as it was before."""
    partial: Path | None = None
    try:
        data = content.encode("utf-8") if isinstance(content, str) else content
        with NamedTemporaryFile("wb", dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
            partial = Path(file.name)
            file.write(data)
        partial.chmod(0o666 & ~_umask())
        partial.replace(path)
    except OSError as error:
        raise ConfigurationError(f"{path}: cannot be written: {error.strerror}") from None
    finally:
        if partial is not None:
            partial.unlink(missing_ok=True)


def _umask() -> int:
    """The permissions that new files lack. The system tells it only by setting it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
