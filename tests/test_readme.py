"""The README's two live nodes really talk."""

import shlex
import subprocess
import sys
import threading
from pathlib import Path

from roamcast.testing.endpoints import free_endpoints

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
PATIENCE_S = 30


def commands() -> list[list[str]]:
    block = README.split("Two live nodes that talk")[1].split("```")[1]
    return [shlex.split(line) for line in block.strip().splitlines()]


def test_the_two_nodes_of_the_readme_exchange_an_event() -> None:
    ((_, port),) = free_endpoints(1)  # one of their own: others may try the README on this machine
    nodes = []
    for command in commands():
        assert command[0] == "roamcast"
        words = [*command[1:], "--port", str(port)]
        nodes.append(
            subprocess.Popen(
                [sys.executable, "-m", "roamcast", *words],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        )
    first, second = nodes
    deadline = threading.Timer(PATIENCE_S, first.kill)
    deadline.start()
    try:
        assert first.stdout is not None
        assert second.stdout is not None
        assert second.stdin is not None
        assert first.stdout.readline().startswith("node 1 runs")
        assert second.stdout.readline().startswith("node 2 runs")
        typed = README.split("type `")[1].split("`")[0]
        print(typed, file=second.stdin, flush=True)
        assert '"fire/north" "smoke on the ridge"' in first.stdout.readline()
    finally:
        deadline.cancel()
        for node in nodes:
            node.kill()
            node.communicate(timeout=PATIENCE_S)
