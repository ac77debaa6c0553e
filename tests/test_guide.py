"""The guide is true: every block that a reader would run is run, page by page, in order.

- `sh` blocks run in bash and must succeed.
- `python` blocks run one by one, each by itself, in the directory of the blocks before.
- A block whose first line is a comment with a file's name is that file.
- `console` and `text` blocks are shown, not run.
"""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
GUIDE = ROOT / "docs" / "guide"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"# (\w[\w.-]*\.(?:toml|py|csv))\n")
PATIENCE_S = 300


class Block(NamedTuple):
    language: str
    text: str

    @property
    def file(self) -> str | None:
        named = FILE.match(self.text)
        return named.group(1) if named else None


def blocks(page: Path) -> list[Block]:
    return [Block(*found.groups()) for found in BLOCK.finditer(page.read_text(encoding="utf-8"))]


PAGES = sorted(page.name for page in GUIDE.glob("*.md") if any(block.language != "text" for block in blocks(page)))


@pytest.mark.slow("runs the commands of the guide, campaigns among them")
@pytest.mark.parametrize("name", PAGES)
def test_every_block_of_the_page_runs(name: str, tmp_path: Path) -> None:
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(tmp_path)]),
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
    }
    for block in blocks(GUIDE / name):
        if block.file is not None:
            content = block.text if not block.file.endswith(".csv") else block.text.partition("\n")[2]
            (tmp_path / block.file).write_text(content, encoding="utf-8")
            continue
        if block.language == "sh":
            command = ["bash", "-e", "-o", "pipefail", "-c", block.text]
        elif block.language == "python":
            command = [sys.executable, "-c", block.text]
        else:
            assert block.language in ("console", "text"), f"{name}: {block.language} is neither run nor shown"
            continue
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=PATIENCE_S, check=False
        )
        assert done.returncode == 0, f"{name}:\n{block.text}\n{done.stdout[-2000:]}\n{done.stderr[-3000:]}"


def test_the_pages_lead_to_each_other() -> None:
    listed = re.findall(r"^(guide/[\w-]+|\w+|results/README)$", (ROOT / "docs" / "index.md").read_text(), re.MULTILINE)
    for entry in listed:
        assert (ROOT / "docs" / f"{entry}.md").exists() or entry == "guide/settings", entry
    there = {f"guide/{page.stem}" for page in GUIDE.glob("*.md")}
    assert there <= set(listed)
    for page in GUIDE.glob("*.md"):
        for target in re.findall(r"\]\(([\w./-]+\.md)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists() or target == "settings.md", f"{page.name} links to {target}"
