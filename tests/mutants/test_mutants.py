"""The seeded bugs still fit the sources; `make mutants` asks who finds them."""

import ast
import runpy
from pathlib import Path
from typing import Any

import pytest

SCRIPT: dict[str, Any] = runpy.run_path(str(Path(__file__).parent / "run.py"))
MUTANTS = SCRIPT["mutants"]()


def test_there_are_thirty_with_names_of_their_own() -> None:
    assert len({mutant["name"] for mutant in MUTANTS}) == 30


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant["name"])
def test_a_seeded_bug_changes_the_source_and_leaves_it_valid(mutant: dict[str, str]) -> None:
    text = SCRIPT["source"](mutant).read_text(encoding="utf-8")
    changed = SCRIPT["mutated"](mutant, text)
    assert ast.dump(ast.parse(changed)) != ast.dump(ast.parse(text))
    assert (SCRIPT["ROOT"] / mutant["tests"]).exists()
