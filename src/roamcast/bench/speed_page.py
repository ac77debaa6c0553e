"""The page of speed, made from stored measurements alone.

    docs/results/data/speed/peers.json      what `roamcast bench peers --store docs/results` measured
    docs/results/data/speed/forms.json      what `roamcast bench forms --store docs/results` measured
    docs/results/speed.md

Either may be missing; the page then says that what it would show was not measured.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import TypeVar

import jinja2
import msgspec

from roamcast.bench import forms as forms_bench
from roamcast.bench import peers as peers_bench
from roamcast.bench.forms import Forms
from roamcast.bench.goals import goals, growth
from roamcast.bench.peers import Comparison
from roamcast.errors import ConfigurationError

PAGE = "speed.md"

Kind = TypeVar("Kind", Comparison, Forms)


def store(directory: Path, measured: Comparison | Forms) -> Path:
    """Keeps the measurements in `directory` and makes its page again; returns the page."""
    data = _data(directory, type(measured))
    data.parent.mkdir(parents=True, exist_ok=True)
    data.write_bytes(msgspec.json.format(msgspec.json.encode(measured), indent=1) + b"\n")
    page = directory / PAGE
    page.write_text(render(_stored(directory, Comparison), _stored(directory, Forms)), encoding="utf-8")
    return page


def render(comparison: Comparison | None, forms: Forms | None) -> str:
    loader = jinja2.FileSystemLoader(Path(__file__).parent / "templates")
    environment = jinja2.Environment(loader=loader, trim_blocks=True, lstrip_blocks=True, autoescape=False)
    peers_table = forms_table = ""
    if comparison:
        peers_table = _markdown(peers_bench.COLUMNS, peers_bench.table(comparison), peers_bench.TEXT_COLUMNS)
    if forms:
        forms_table = _markdown(forms_bench.COLUMNS, forms_bench.table(forms), 1)
    text = environment.get_template(PAGE).render(
        comparison=comparison,
        forms=forms,
        goals=goals(comparison, forms),
        peers_table=peers_table,
        forms_table=forms_table,
        growths=_growths(comparison),
        versions=_versions(comparison),
    )
    return text.rstrip() + "\n"


def _growths(comparison: Comparison | None) -> list[tuple[str, float]]:
    names = dict.fromkeys(row.simulator for row in comparison.measurements) if comparison else {}
    return [(name, grown) for name in names if (grown := growth(comparison, name)) is not None]


def _versions(comparison: Comparison | None) -> str:
    rows = comparison.measurements if comparison else ()
    return ", ".join(dict.fromkeys(f"{row.simulator.partition(',')[0]} {row.version}" for row in rows))


def _markdown(columns: Iterable[str], rows: list[list[str]], texts: int) -> str:
    """A table whose first `texts` columns are words and the others numbers."""
    names = list(columns)
    lines = [names, ["---"] * texts + ["---:"] * (len(names) - texts), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _data(directory: Path, kind: type[Comparison] | type[Forms]) -> Path:
    return directory / "data" / "speed" / ("peers.json" if kind is Comparison else "forms.json")


def _stored(directory: Path, kind: type[Kind]) -> Kind | None:
    path = _data(directory, kind)
    if not path.is_file():
        return None
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except msgspec.DecodeError as error:
        raise ConfigurationError(f"{path}: is not what roamcast bench stored: {error}") from None
