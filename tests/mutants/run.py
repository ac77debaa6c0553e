"""The mutation check: seeds one bug at a time and asks whether the tests, or a short hunt, find it.

    python tests/mutants/run.py --minutes 5 --out results/mutants.json

Each bug of `mutants.toml` goes into a copy of the sources, which run interpreted. A bug is found by the suite if a test
of its protocol's area fails (those marked slow are left out), by the hunt if a case of its protocol does. Bugs that
neither finds show what to test next. `--minutes 0` asks the suite only, `--missed` lets the hunt look only for what the
suite has not found. Interrupted, the same command continues, and a hunt can be added later to what the suite said.
`make mutants` runs all of it.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
FOUND = "tests/hunt/test_found.py"
SUITE_S_MAX = 900
PATIENCE_S = 600  # a case, and shrinking it, may outlast the hunt by this
TESTS_FAILED = 1  # pytest's exit code


def mutants() -> list[dict[str, str]]:
    listed: list[dict[str, str]] = tomllib.loads((HERE / "mutants.toml").read_text(encoding="utf-8"))["mutant"]
    return listed


def source(mutant: dict[str, str], src: Path = ROOT / "src") -> Path:
    return src / "roamcast" / "protocols" / mutant["file"]


def mutated(mutant: dict[str, str], text: str) -> str:
    assert text.count(mutant["old"]) == 1, f"{mutant['name']}: `old` must occur once in {mutant['file']}"
    return text.replace(mutant["old"], mutant["new"])


def tests_of(mutant: dict[str, str]) -> list[str]:
    """The files to ask, those that go step by step or are named after the module first. Tests of live nodes are left
    out: on a busy machine they fail for other reasons."""
    place = ROOT / mutant["tests"]
    files = sorted(place.glob("test_*.py")) if place.is_dir() else [place]
    stem = Path(mutant["file"]).stem
    files = [file for file in files if not file.stem.endswith("_live")]
    files.sort(key=lambda file: (stem not in file.stem, "steps" not in file.stem, "simulated" in file.stem))
    return list(dict.fromkeys([*(str(file.relative_to(ROOT)) for file in files), FOUND]))


def check(mutant: dict[str, str], minutes: float, known: dict[str, Any], *, missed: bool) -> dict[str, Any]:
    """Whether the suite and the hunt find this bug; None: not asked. `known` is the answer so far."""
    with tempfile.TemporaryDirectory() as directory:
        src = Path(directory) / "src"
        shutil.copytree(ROOT / "src", src, ignore=shutil.ignore_patterns("*.so", "__pycache__", "compiled.txt"))
        place = source(mutant, src)
        place.write_text(mutated(mutant, place.read_text(encoding="utf-8")), encoding="utf-8")
        environment = {**os.environ, "PYTHONPATH": str(src), "ROAMCAST_PURE": "1"}
        out = Path(directory) / "hunt"
        hunt = ["-m", "roamcast", "hunt", "--protocol", mutant["protocol"], "--jobs", "1", "--out", str(out)]
        suite = ["-m", "pytest", "-x", "-q", "-m", "not slow", "-o", f"pythonpath={src}", *tests_of(mutant)]
        by_suite = known["suite"] if known else _suite_finds(suite, environment)
        hunts = minutes and not (missed and by_suite)
        return {
            "name": mutant["name"],
            "what": mutant["what"],
            "suite": by_suite,
            "hunt": _hunt_finds([*hunt, "--json"], environment, minutes) if hunts else None,
            "hunt_minutes": minutes if hunts else 0,
        }


def _suite_finds(arguments: list[str], environment: dict[str, str]) -> bool:
    """Whether a test fails. A suite that does not end has found something, too: a bug that hangs."""
    ended = _run(arguments, environment, SUITE_S_MAX)
    return ended is None or ended.returncode == TESTS_FAILED


def _hunt_finds(arguments: list[str], environment: dict[str, str], minutes: float) -> bool:
    """Whether a case fails; a hunt that breaks down itself has found nothing."""
    ended = _run([*arguments, "--hours", str(minutes / 60)], environment, 60 * minutes + PATIENCE_S)
    return ended is None or (ended.stdout.startswith(b"{") and bool(json.loads(ended.stdout)["open"]))


def _run(
    arguments: list[str], environment: dict[str, str], patience_s: float
) -> subprocess.CompletedProcess[bytes] | None:
    command = [sys.executable, *arguments]
    try:
        return subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, timeout=patience_s, check=False
        )
    except subprocess.TimeoutExpired:
        return None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0, help="of hunting per bug; 0: the suite only")
    parser.add_argument("--missed", action="store_true", help="hunt only for what the suite has not found")
    parser.add_argument("--out", type=Path, default=Path("results/mutants.json"))
    parser.add_argument("--only", nargs="*", help="names of bugs")
    asked = parser.parse_args()
    results: list[dict[str, Any]] = json.loads(asked.out.read_text()) if asked.out.exists() else []
    answers = {each["name"]: each for each in results}
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    for mutant in mutants():
        known = answers.get(mutant["name"], {})
        to_hunt = asked.minutes and known and known["hunt"] is None and not (asked.missed and known["suite"])
        if (known and not to_hunt) or (asked.only and mutant["name"] not in asked.only):
            continue
        answers[mutant["name"]] = check(mutant, asked.minutes, known, missed=asked.missed)
        print(answers[mutant["name"]], flush=True)
        results = list(answers.values())
        asked.out.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    found = sum(bool(each["suite"] or each["hunt"]) for each in results)
    print(f"{found} of {len(results)} seeded bugs were found")


if __name__ == "__main__":
    main()
