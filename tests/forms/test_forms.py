"""Compiled and interpreted are one product: the same traces, the same bytes, and never a stale binary."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import roamcast
from roamcast.form import COMPILED, CORE, PACKAGE, digest_of
from roamcast.protocols.catalogue import PROTOCOLS
from roamcast.protocols.message import Message

HERE = Path(__file__).parent

is_compiled = pytest.mark.skipif(
    roamcast.FORM != COMPILED, reason=f"runs {roamcast.FORM}; make compiles where there is a C compiler"
)


def python(*arguments: str, source: Path = PACKAGE.parent, **environment: str) -> subprocess.CompletedProcess[str]:
    given = os.environ | {"PYTHONPATH": str(source), "ROAMCAST_PURE": "0"} | environment
    return subprocess.run([sys.executable, *arguments], env=given, capture_output=True, text=True, check=True)


def form_of(source: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    module = "roamcast.world.scheduler"
    return python(
        "-c", f"import roamcast, {module}; print(roamcast.FORM, {module}.__file__)", source=source, **environment
    )


@pytest.mark.slow("runs every protocol interpreted, too")
@is_compiled
def test_every_protocol_leaves_the_same_trace_in_both_forms() -> None:
    answers: list[dict[str, Any]] = [
        json.loads(python(str(HERE / "trace_hashes.py"), ROAMCAST_PURE=pure).stdout) for pure in ("0", "1")
    ]
    compiled, interpreted = answers
    assert compiled["form"] == COMPILED
    assert interpreted["form"].startswith("interpreted")
    assert len(compiled["hashes"]) >= 8 * len(PROTOCOLS)
    differing = [run for run, found in compiled["hashes"].items() if interpreted["hashes"][run] != found]
    assert differing == []


@is_compiled
def test_pure_hides_every_binary() -> None:
    said = form_of(PACKAGE.parent, ROAMCAST_PURE="1").stdout
    assert said.startswith("interpreted: ROAMCAST_PURE is set")
    assert said.strip().endswith("scheduler.py")


@is_compiled
def test_an_edited_source_never_runs_its_old_binary(tmp_path: Path) -> None:
    shutil.copytree(PACKAGE, tmp_path / "roamcast", ignore=shutil.ignore_patterns("__pycache__"))
    for shared in PACKAGE.parent.glob("*.so"):
        shutil.copy(shared, tmp_path)
    assert form_of(tmp_path).stdout.startswith(COMPILED)
    edited = tmp_path / "roamcast" / "world" / "scheduler.py"
    edited.write_text(edited.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    said = form_of(tmp_path)
    assert said.stdout.startswith("interpreted: sources changed")
    assert said.stdout.strip().endswith("scheduler.py")
    assert said.stderr.splitlines() == [
        "roamcast: sources changed since they were compiled, running interpreted; make compiles"
    ]


def test_the_digest_depends_on_names_and_contents_of_the_core_alone(tmp_path: Path) -> None:
    package = tmp_path / "roamcast"
    (package / "world").mkdir(parents=True)
    (package / "cli").mkdir()
    for name in (*(core for core in CORE if core.endswith(".py")), "world/scheduler.py", "cli/node.py"):
        (package / name).parent.mkdir(exist_ok=True)
        (package / name).write_text(name, encoding="utf-8")
    before = digest_of(package)
    (package / "cli" / "node.py").write_text("other", encoding="utf-8")
    assert digest_of(package) == before
    (package / "world" / "scheduler.py").rename(package / "world" / "queue.py")
    renamed = digest_of(package)
    assert renamed != before
    (package / "world" / "queue.py").write_text("other", encoding="utf-8")
    assert digest_of(package) != renamed
    shutil.make_archive(str(tmp_path / "shipped"), "zip", tmp_path, "roamcast")
    assert digest_of(tmp_path / "shipped.zip" / "roamcast") == digest_of(package)


def test_messages_are_frozen_and_travel_as_arrays_in_every_form() -> None:
    """mypyc would drop these keywords of a class silently, so modules that define messages stay interpreted."""
    assert all(PROTOCOLS.values())  # which imports them
    kinds = _descendants(Message)
    assert len(kinds) > 50
    for kind in kinds:
        assert kind.__struct_config__.frozen, kind
        assert kind.__struct_config__.array_like, kind
        module = sys.modules[kind.__module__].__file__
        assert module is not None
        assert module.endswith(".py"), f"{kind} is compiled"


def _descendants(kind: type[Message]) -> list[type[Message]]:
    return [each for child in kind.__subclasses__() for each in (child, *_descendants(child))]
