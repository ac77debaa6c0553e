"""The formats of movement files, and how they are told apart."""

from pathlib import Path
from typing import Final, Literal, get_args

from roamcast.errors import ConfigurationError
from roamcast.world.files import bonnmotion, fcd, gpx, ns2, one, table
from roamcast.world.files.lines import lines, read_text
from roamcast.world.files.recording import MovementRecording

Format = Literal["ns2", "bonnmotion", "one", "fcd", "fcd-geo", "gpx", "csv", "csv-geo"]

FORMATS: Final[tuple[str, ...]] = get_args(Format)
_BEGINNING: Final = 4096  # characters of an XML file among which its root is looked for


def read_movements(path: Path, named: Format | None = None) -> MovementRecording:
    """The movements in a file, or of a folder of GPX files. Without a name, its format is told from what it holds."""
    if path.is_dir() and named in (None, "gpx") and any(path.glob("*.gpx")):
        return gpx.read(path)
    text = read_text(path)
    what = named or told_apart(path, text)
    if what == "gpx":
        return gpx.read(path)
    if what in ("fcd", "fcd-geo"):
        return fcd.read(path, geographic=what == "fcd-geo")
    if what == "ns2":
        return ns2.read(path, text)
    if what == "bonnmotion":
        return bonnmotion.read(path, text)
    return one.read(path, text) if what == "one" else table.read(path, text, geographic=what == "csv-geo")


def told_apart(path: Path, text: str) -> Format:
    beginning = text[:_BEGINNING].lstrip()
    if beginning.startswith("<"):
        return "gpx" if "<gpx" in beginning or ":gpx" in beginning else "fcd"
    names = path.name.removesuffix(".gz")
    if names.endswith(".movements"):
        return "bonnmotion"
    said = lines(path, text)
    first, second = next(said, None), next(said, None)
    if first is None:
        raise ConfigurationError(f"{path}: expected at least one node; the file is empty")
    if table.is_header(first.text) or names.endswith((".csv", ".tsv")):
        return "csv"
    if first.text.startswith("["):
        return "one"
    try:
        numbers = [float(word) for word in first.text.split()]
    except ValueError:
        return "ns2"
    if len(numbers) in (6, 8) and second is not None and len(second.text.split()) in (4, 5):
        return "one"
    return "bonnmotion"
