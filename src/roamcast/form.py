"""Which form of Roamcast runs: compiled or interpreted.

`setup.py` compiles the hot modules with mypyc from the very sources that run interpreted. The binaries lie beside their
sources, where Python prefers them, together with a note of the sources they were made from. `settle` runs before any of
them is imported and hides all of them if they must not be used: because `ROAMCAST_PURE=1` says so, or because a source
was edited since. It is all or none: a compiled module calls others without asking Python which form they have.

The rooms of `CORE` are what can decide a run's trace, so their digest also names runs (`world.scenario.run_id`). So
does the digest of the package that a protocol named by import path belongs to.
"""

import os
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from hashlib import blake2b
from importlib.machinery import EXTENSION_SUFFIXES, SOURCE_SUFFIXES, FileFinder, ModuleSpec, SourceFileLoader
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

PACKAGE = Path(__file__).parent
CORE = (
    *("errors.py", "fields.py", "events.py", "seeds.py", "utility.py"),
    *("causal", "interests", "protocols", "trace", "world"),
    "bench/neighbour.py",
)
NOTE = "compiled.txt"
"""Beside the package's sources: the digest of those that were compiled."""

COMPILED = "compiled"


@cache
def source_digest() -> str:
    """What the sources of `CORE` say, in 16 digits."""
    return digest_of(PACKAGE)


def digest_of(package: Path) -> str:
    digest = blake2b(digest_size=8)
    for name, content in _sources(package):
        digest.update(f"{name}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()


def _sources(package: Path) -> Iterator[tuple[str, bytes]]:
    """Names inside the package and contents, by name. Sources that came to an executor are in an archive."""
    if package.is_dir():
        files = [file for room in CORE for file in _files(package / room)]
        for name, file in sorted((file.relative_to(package).as_posix(), file) for file in files):
            yield name, file.read_bytes()
        return
    from zipfile import ZipFile

    with ZipFile(package.parent) as archive:
        prefix = f"{package.name}/"
        rooms = tuple(prefix + room for room in CORE)
        for name in sorted(archive.namelist()):
            if name.endswith(".py") and name.startswith(rooms):
                yield name.removeprefix(prefix), archive.read(name)


def _files(room: Path) -> list[Path]:
    return [room] if room.suffix == ".py" else list(room.rglob("*.py"))


@cache
def protocol_digest(protocol: str) -> str:
    """What the sources of a protocol's package say, if it is named `package.module:Class`; empty for Roamcast's own."""
    package = protocol_package(protocol)
    if not package:
        return ""
    digest = blake2b(digest_size=8)
    for name, file in package_files(package):
        if name.endswith(".py"):
            content = file.read_bytes()
            digest.update(f"{name}\0{len(content)}\0".encode())
            digest.update(content)
    return digest.hexdigest()


def protocol_package(protocol: str) -> str:
    """The top-level package or module of a protocol named by import path; empty for Roamcast's own."""
    module, separator, _ = protocol.partition(":")
    package = module.partition(".")[0]
    return "" if not separator or package == PACKAGE.name else package


def package_files(package: str) -> list[tuple[str, Path]]:
    """All files of a top-level package or module, by their names below the import path."""
    try:
        spec = find_spec(package)
    except (ImportError, ValueError):
        spec = None
    if spec is None:
        return []
    if spec.submodule_search_locations is None:
        return [(f"{package}.py", Path(spec.origin))] if spec.origin else []
    found = [
        (f"{package}/{file.relative_to(place).as_posix()}", file)
        for place in map(Path, spec.submodule_search_locations)
        for file in place.rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    ]
    for place in map(Path, spec.submodule_search_locations):  # mypyc's code for all modules of a group is beside them
        found += [(file.name, file) for file in place.parent.glob(f"{package}__mypyc.*") if file.is_file()]
    return sorted(found)


class SourcesOnly:
    """Finds Roamcast's sources, and never the binaries beside them."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if path is None or not fullname.startswith(f"{PACKAGE.name}."):
            return None
        for place in path:
            spec = FileFinder(place, (SourceFileLoader, SOURCE_SUFFIXES)).find_spec(fullname)
            if spec is not None:
                return spec
        return None


def settle() -> str:
    """Chooses the form for this process, and says which: `compiled`, or `interpreted` and why."""
    note = PACKAGE / NOTE
    if not (note.is_file() and any((PACKAGE / f"seeds{suffix}").is_file() for suffix in EXTENSION_SUFFIXES)):
        return "interpreted: this installation was not compiled"
    if os.environ.get("ROAMCAST_PURE", "0") not in ("", "0"):
        sys.meta_path.insert(0, SourcesOnly())
        return "interpreted: ROAMCAST_PURE is set"
    if note.read_text(encoding="utf-8") != source_digest():
        sys.meta_path.insert(0, SourcesOnly())
        print("roamcast: sources changed since they were compiled, running interpreted; make compiles", file=sys.stderr)
        return "interpreted: sources changed since they were compiled"
    return COMPILED
