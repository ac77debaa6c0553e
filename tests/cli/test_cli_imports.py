"""Commands that people wait for import what they need and no more."""

import subprocess
import sys

HEAVY = ("lxml", "pandas", "pyspark", "altair", "roamcast.live", "roamcast.protocols.overlays")

PROGRAM = """
import sys
from roamcast.cli import main
try:
    main({arguments!r})
except SystemExit:
    print(*sorted(sys.modules), file=sys.stderr)
"""


def imported(*arguments: str) -> set[str]:
    command = [sys.executable, "-c", PROGRAM.format(arguments=list(arguments))]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    return set(ended.stderr.split())


def test_help_imports_neither_numpy_nor_arrow() -> None:
    assert not imported("--help") & {"numpy", "pyarrow", *HEAVY}


def test_a_small_simulation_imports_its_own_protocol_only() -> None:
    modules = imported("simulate", "--nodes", "5", "--area", "200", "--duration", "3", "--json")
    assert "roamcast.protocols.flooding" in modules
    assert not modules & set(HEAVY)
