"""Whether stored results are older than today's sources.

A summary keeps a digest for each part of the sources that can decide its runs: one for the simulator with everything
that all protocols share, and one for each protocol among its contenders (the modules that the protocol imports). If one
of them differs today, the same seeds may give other traces. They need not: a digest changes with every edit of the
code. Comments, docstrings and empty lines do not count. `witness` finds out whether the runs changed, too.
"""

import ast
from collections.abc import Iterable
from functools import cache
from hashlib import blake2b
from io import StringIO
from pathlib import Path
from tokenize import COMMENT, generate_tokens

from roamcast.form import CORE, PACKAGE
from roamcast.papers.figure import Tables
from roamcast.protocols.catalogue import protocol_class

SIMULATOR = "simulator"
UNKNOWN = "unknown"
_PROTOCOLS = "protocols"


def sources_of(campaign: Tables) -> dict[str, str]:
    """Part -> digest, of all parts that can decide the runs of a campaign."""
    names = sorted({entry if isinstance(entry, str) else str(entry["name"]) for entry in campaign["protocols"]})
    return {SIMULATOR: _simulator()} | {name: _protocol(name) for name in names}


def changed(stored: dict[str, str], today: dict[str, str]) -> tuple[str, ...]:
    """The parts that are not as they were when results were made; `UNKNOWN` if the results do not tell."""
    if not stored:
        return (UNKNOWN,)
    return tuple(name for name, digest in today.items() if stored.get(name) != digest)


@cache
def _simulator() -> str:
    rooms = [PACKAGE / room for room in CORE if room != _PROTOCOLS]
    files = [file for room in rooms for file in ([room] if room.suffix == ".py" else room.rglob("*.py"))]
    return _digest([*files, *(PACKAGE / _PROTOCOLS).glob("*.py")])


@cache
def _protocol(name: str) -> str:
    """Of the modules below `roamcast.protocols` that a protocol needs, found by its imports."""
    found: dict[str, Path] = {}
    waiting = [protocol_class(name).__module__]
    while waiting:
        module = waiting.pop()
        file = _file(module)
        if module in found or file is None or file.parent == PACKAGE / _PROTOCOLS:
            continue
        found[module] = file
        waiting += _imports(file)
    return _digest(found.values())


def _file(module: str) -> Path | None:
    prefix = f"{PACKAGE.name}.{_PROTOCOLS}."
    if not module.startswith(prefix):
        return None
    place = PACKAGE / Path(*module.split(".")[1:])
    files = (place.with_suffix(".py"), place / "__init__.py")
    return next((file for file in files if file.is_file()), None)


def _imports(file: Path) -> list[str]:
    """The modules that a module may import: `from a.b import c` can mean a.b or a.b.c."""
    found: list[str] = []
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            found += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return found


def _digest(files: Iterable[Path]) -> str:
    digest = blake2b(digest_size=8)
    for name, file in sorted((file.relative_to(PACKAGE).as_posix(), file) for file in files):
        content = code_of(file.read_text(encoding="utf-8")).encode()
        digest.update(f"{name}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()


def code_of(text: str) -> str:
    """The lines of a module without comments, strings that stand alone, and empty lines."""
    lines = text.splitlines()
    for token in generate_tokens(StringIO(text).readline):
        if token.type == COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column]
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            end = node.end_lineno or node.lineno
            lines[node.lineno - 1 : end] = [""] * (end - node.lineno + 1)
    return "\n".join(line.rstrip() for line in lines if line.strip())
