"""The direction of imports and the purity of protocols, as ARCHITECTURE.md draws them, and the form of calls."""

import ast
from collections.abc import Iterable, Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1] / "src" / "roamcast"

LAYERS: tuple[tuple[str, ...], ...] = (
    ("form", "fields"),
    ("errors", "events", "seeds"),
    ("utility",),
    ("interests",),
    ("causal",),
    ("protocols",),
    ("documented",),
    ("trace",),
    ("delivery",),
    ("world", "live", "testing"),
    ("checkers", "emulator"),
    ("campaign",),
    ("analysis", "hunt"),
    ("report", "bench"),
    ("papers",),
    ("advise", "library"),
    ("apps", "doors"),
    ("cli",),
    ("__main__",),
)
"""From the bottom up. A package may import itself and the layers below, never its own layer or the ones above."""

PURE = ("events", "interests", "causal", "protocols", "delivery")
IMPURE = {
    *("asyncio", "concurrent", "datetime", "io", "logging", "multiprocessing", "os", "pathlib", "random", "secrets"),
    *("select", "selectors", "signal", "socket", "subprocess", "sys", "tempfile", "threading", "time", "uuid"),
}
"""Clocks, randomness, threads and the outside world: a protocol has its host instead."""

BUILDS_ON: dict[str, set[str]] = {
    "odmrp": {"routing"},
    "overlays": {"routing"},
    "somer": {"trees"},
    "somer_plus": {"trees"},
}
"""Systems do not import each other. `routing` is a service, `trees` the lower layer of both SOMERs."""

POSITIONAL_MAX = 5
"""A call with more arguments than this names them."""

TIMER_CALLS = ("set_timer", "cancel_timer", "on_timer")

SHARED_NAMES = {
    *("Broker", "Contentions", "Crossings", "Custody", "CustodyTimer", "Neighbour", "Publisher", "Roots", "Route"),
    *("RouterTimer", "Subscriber"),  # the same part in several systems
    *("Publish", "Subscribe", "Unsubscribe"),  # what an application does: planned in a workload, asked of a door
    "Packet",  # what is routed over several hops
    "Subscription",  # of an application, and the message that carries it
}
"""Type names that several modules define with the same meaning. Every other name is defined once. Messages are told
apart by their protocol, so two protocols may use the same name; a message and another class may not."""

MODULES = sorted(ROOT.rglob("*.py"))
SYSTEMS = sorted(path.parent.name for path in (ROOT / "protocols").glob("*/__init__.py"))


class Import:
    def __init__(self, names: list[str], line: int, only_for_types: bool) -> None:
        self.names = names  # the module, and the module with each name taken from it: a name may be a module too
        self.line = line
        self.only_for_types = only_for_types


def imports(tree: ast.AST, only_for_types: bool = False) -> Iterator[Import]:
    """Every import in a module, wherever it stands."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import([alias.name], node.lineno, only_for_types)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: relative import"
            module = node.module or ""
            yield Import([module, *(f"{module}.{alias.name}" for alias in node.names)], node.lineno, only_for_types)
        elif isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            yield from imports(node, only_for_types=True)
        else:
            yield from imports(node, only_for_types)


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def package(module: str) -> str | None:
    """The part of Roamcast that a module belongs to; None if it is not ours."""
    parts = module.split(".")
    return parts[1] if parts[0] == "roamcast" and len(parts) > 1 else None


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def layer(name: str) -> int:
    for height, packages in enumerate(LAYERS):
        if name in packages:
            return height
    raise AssertionError(f"roamcast.{name} is in no layer; add it to LAYERS where it belongs")


def upward(own: str, tree: ast.AST) -> list[str]:
    """The imports of a module of `own` that do not point downward."""
    return [
        f"line {each.line}: {name}"
        for each in imports(tree)
        for name in each.names
        if (other := package(name)) not in (None, own, "FORM", "__version__") and layer(str(other)) >= layer(own)
    ]


def impure(tree: ast.AST) -> list[str]:
    found = [f"line {each.line}: {each.names[0]}" for each in imports(tree) if each.names[0].split(".")[0] in IMPURE]
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("open", "print", "input"):
            found.append(f"line {node.lineno}: {ast.unparse(node.func)}()")
    return found


def foreign_systems(system: str, tree: ast.AST) -> list[str]:
    """The imports of a module of `system` that name a system it does not build on."""
    found = []
    for each in imports(tree):
        for name in each.names[:1]:
            parts = name.split(".")
            is_system = parts[:2] == ["roamcast", "protocols"] and len(parts) > 2 and parts[2] in SYSTEMS
            if is_system and parts[2] not in {system, *BUILDS_ON.get(system, ())}:
                found.append(f"line {each.line}: {name}")
    return found


def own_callables() -> set[str]:
    """Names of Roamcast's own functions and classes that take a fixed number of arguments."""
    fixed: set[str] = set()
    variadic: set[str] = set()
    for path in MODULES:
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.ClassDef):
                fixed.add(node.name)
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                (fixed if node.args.vararg is None else variadic).add(node.name)
    return fixed - variadic | {"__init__", "cls"}


def long_positional_calls(tree: ast.AST, callables: set[str]) -> list[str]:
    """Calls of Roamcast's own functions and classes with more than five arguments that carry no name."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and len(node.args) > POSITIONAL_MAX:
            name = ast.unparse(node.func).rpartition(".")[2]
            if name in callables:
                found.append(f"line {node.lineno}: {name} with {len(node.args)} positional arguments")
    return found


def literal_timers(tree: ast.AST) -> list[str]:
    """Timers that are named by a string instead of a member of an enum that says when they fire."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in TIMER_CALLS:
            parts = [part for argument in node.args for part in ast.walk(argument)]
            if any(isinstance(part, ast.Constant) and isinstance(part.value, str) for part in parts):
                found.append(f"line {node.lineno}: {ast.unparse(node)}")
    return found


def import_graph(paths: Iterable[Path]) -> dict[str, set[str]]:
    """Which module needs which one to be imported."""
    known = {module_name(path): path for path in paths}
    graph: dict[str, set[str]] = {}
    for name, path in known.items():
        needed = graph.setdefault(name, set())
        for each in imports(parsed(path)):
            taken = [other for other in each.names[1:] if other in known] or [each.names[0]]
            if not each.only_for_types:
                needed.update(other for other in taken if other in known and other != name)
    return graph


def identity(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", MODULES, ids=identity)
def test_imports_point_downward(path: Path) -> None:
    own = package(module_name(path))
    assert own is None or upward(own, parsed(path)) == []


@pytest.mark.parametrize("path", [path for path in MODULES if package(module_name(path)) in PURE], ids=identity)
def test_protocols_see_the_world_only_through_their_host(path: Path) -> None:
    assert impure(parsed(path)) == []


@pytest.mark.parametrize("system", SYSTEMS)
def test_systems_do_not_import_each_other(system: str) -> None:
    modules = (ROOT / "protocols" / system).rglob("*.py")
    found = {identity(path): foreign_systems(system, parsed(path)) for path in modules}
    assert {path: names for path, names in found.items() if names} == {}


def test_calls_with_many_arguments_name_them() -> None:
    callables = own_callables()
    found = {identity(path): long_positional_calls(parsed(path), callables) for path in MODULES}
    assert {path: calls for path, calls in found.items() if calls} == {}


def test_timers_of_protocols_are_members_of_an_enum() -> None:
    paths = [path for path in MODULES if package(module_name(path)) in ("protocols", "delivery")]
    found = {identity(path): literal_timers(parsed(path)) for path in paths}
    assert {path: calls for path, calls in found.items() if calls} == {}


def test_a_type_name_has_one_meaning() -> None:
    homes: dict[str, list[str]] = {}
    for path in MODULES:
        for node in parsed(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes.setdefault(node.name, []).append(identity(path))
    several = {
        name: paths
        for name, paths in homes.items()
        if len(paths) > 1 and not all(path.endswith("/messages.py") for path in paths)
    }
    assert {name: paths for name, paths in several.items() if name not in SHARED_NAMES} == {}
    assert several.keys() >= SHARED_NAMES, "names that are no longer shared"


def test_rows_of_the_trace_are_made_in_one_module() -> None:
    for path in MODULES:
        tree = parsed(path)
        knows = any("roamcast.trace.schema.Record" in each.names for each in imports(tree))
        made = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and ast.unparse(node.func) == "Record"]
        assert not (knows and made) or identity(path) == "trace/rows.py", f"{identity(path)}, line {made[0].lineno}"


def test_no_modules_import_each_other_in_a_circle() -> None:
    try:
        TopologicalSorter(import_graph(MODULES)).prepare()
    except CycleError as error:
        pytest.fail(f"import circle: {' -> '.join(error.args[1])}")


def test_every_package_has_its_place() -> None:
    for path in MODULES:
        own = package(module_name(path))
        assert own is None or layer(own) >= 0


def test_architecture_describes_every_package() -> None:
    text = (ROOT.parents[1] / "ARCHITECTURE.md").read_text(encoding="utf-8")
    rooms = text.partition("## The rooms")[2].partition("\n## ")[0]
    names = {package(module_name(path)) for path in MODULES} - {None, "__main__"}
    missing = [name for name in names if f"`{name}/`" not in rooms and f"`{name}.py`" not in rooms]
    assert missing == []


def test_the_checks_see_what_they_are_made_for() -> None:
    assert upward("protocols", ast.parse("from roamcast.world.scenario import Run")) != []
    assert upward("protocols", ast.parse("def f():\n    from roamcast import live")) != []
    assert upward("world", ast.parse("import roamcast.live.codec")) != []
    assert upward("world", ast.parse("from roamcast import live, trace")) != []
    assert upward("world", ast.parse("if TYPE_CHECKING:\n    from roamcast.cli import main")) != []
    assert upward("world", ast.parse("from roamcast.protocols import api\nfrom roamcast.world import files")) == []
    assert foreign_systems("odmrp", ast.parse("from roamcast.protocols.overlays.search import Search")) != []
    assert foreign_systems("odmrp", ast.parse("from roamcast.protocols.routing import unicast")) == []
    assert long_positional_calls(ast.parse("Frame(1, 2, 3, 4, 5, 6)"), {"Frame"}) != []
    assert long_positional_calls(ast.parse("Frame(1, 2, 3, 4, 5, size=6)"), {"Frame"}) == []
    assert long_positional_calls(ast.parse("table.select(1, 2, 3, 4, 5, 6)"), {"Frame"}) == []
    assert literal_timers(ast.parse('host.set_timer(1.0, ("hello", 0))')) != []
    assert literal_timers(ast.parse("host.set_timer(1.0, (LinkTimer.HELLO, 0))")) == []
    assert impure(ast.parse("import os.path")) != []
    assert impure(ast.parse("def f():\n    from time import monotonic")) != []
    assert impure(ast.parse("print('here')")) != []
    assert impure(ast.parse("import math\nfrom roamcast.seeds import Random")) == []
