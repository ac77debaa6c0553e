"""The book of results: what is committed is what its data says, and nothing in it leads nowhere."""

import re
import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from roamcast.analysis.analyse import Precision
from roamcast.campaign.conduct import Conductor
from roamcast.errors import ConfigurationError
from roamcast.papers.ablation import ablation_page
from roamcast.papers.ablation import keep as keep_ablation
from roamcast.papers.arena import keep, kept_arenas, renew_tables, write_arena
from roamcast.papers.book import PAPERS, with_findings, write_book
from roamcast.papers.catalogue import FIGURES
from roamcast.papers.summary import kept_results

BOOK = Path(__file__).parents[2] / "docs" / "results"
DUEL = """
title = "A duel"
description = "Two protocols, two densities."
protocols = ["flooding", "gossip"]
seeds = 3
measures = ["delivery_ratio", "within_100ms", "latency_ms_mean", "airtime_per_delivery_ms"]
[scenario]
area_m = 400
duration_s = 12
[grid]
scenario.nodes = [10, 15]
"""


MEASURED = {"emulator.md", "speed.md", "spark.md", "live.md", "where-time-goes.md", "hunt.md", "adversaries.md"}
"""Pages of the book that other commands write: what they tell was measured on a machine, or found by a hunt."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A book made from the committed data. Its figures are those committed: drawing them all takes long."""
    directory = tmp_path_factory.mktemp("book") / "results"
    shutil.copytree(BOOK, directory)
    for page in directory.glob("*.md"):
        if page.name not in MEASURED:
            page.unlink()
    write_book(directory, compare=False, pictures=False)  # whether results are older was found when it was made
    return directory


def test_the_committed_pages_are_those_that_the_data_makes(made: Path) -> None:
    pages = {page.name for page in made.glob("*.md")}
    assert pages == {page.name for page in BOOK.glob("*.md")}
    for name in pages:
        committed, fresh = (directory / name for directory in (BOOK, made))
        assert committed.read_text(encoding="utf-8") == fresh.read_text(encoding="utf-8"), f"{name}: run roamcast book"


def test_every_link_and_picture_is_there(made: Path) -> None:
    for page in made.glob("*.md"):
        for target in re.findall(r"\]\(([^)#]+)", page.read_text(encoding="utf-8")):
            assert target.startswith(("http", "../")) or (made / target).exists(), f"{page.name}: {target}"
            assert target.startswith("http") or (BOOK / target).exists(), f"{page.name}: {target} is not committed"


def test_a_claim_that_fails_has_its_explanation() -> None:
    judged = [claim for summary in kept_results(BOOK / "data") for claim in with_findings(summary).of_paper]
    failing = [claim for claim in judged if claim.verdict == "fails"]
    assert all(len(claim.finding.split()) >= 20 for claim in failing), failing


def test_headings_say_what_is_not_at_the_papers_scale(made: Path) -> None:
    left_out = {"paper": "", "sparse": ", at fewer points than the paper", "quick": ", not at the paper's scale"}
    for summary in kept_results(made / "data"):
        page = (made / f"{summary.paper}.md").read_text(encoding="utf-8")
        assert f"## {summary.figure}{left_out[summary.scale]}" in page.splitlines()
        assert all(claim.statement in page for claim in summary.claims)


def test_the_opening_page_takes_two_minutes(made: Path) -> None:
    """At 250 words a minute; and it names every paper's verdict and where its claims are."""
    index = (made / "README.md").read_text(encoding="utf-8")
    assert len(index.split()) <= 750  # tables and links count too
    for paper in PAPERS:
        assert paper.verdict in index
        assert f"({paper.name}.md)" in index


def test_what_the_verdicts_name_is_in_the_catalogue() -> None:
    for paper in PAPERS:
        named = re.findall(r"\b(?:somer|odmrp|geo|overlay)-[\w.]*\w", paper.verdict)
        assert named
        assert set(named) <= set(FIGURES)


def test_the_arenas_page_is_made_of_what_is_kept_of_a_campaign(spark: SparkSession, tmp_path: Path) -> None:
    file = tmp_path / "duel.toml"
    file.write_text(DUEL, encoding="utf-8")
    conductor = Conductor(file, tmp_path / "out", master="local[2]")
    conductor.conduct(spark, precise=Precision(spark, conductor.store))
    book = tmp_path / "book"
    keep_ablation(spark, conductor.store, book)
    ablation = ablation_page(book)
    assert "| gossip | " in ablation
    assert "12 runs, 3 seeds per point" in ablation
    searched = tmp_path / "capacity"
    searched.mkdir()
    rates = '{"label": "gossip", "passes": {"rate_per_s": 1.5}, "fails": {"rate_per_s": 1.8}}'
    (searched / "capacity.json").write_text(f'{{"publishers": 4, "capacities": [{rates}]}}', encoding="utf-8")
    keep(spark, conductor.store, book, capacity=searched)
    keep(spark, conductor.store, book, "arena-hard")
    (book / "data" / "arena" / "notes.md").write_text("Gossip is cheaper, because it flips coins.\n", encoding="utf-8")
    shutil.rmtree(tmp_path / "out")
    written = write_arena(book)
    assert {path.suffix for path in written} == {".md", ".svg"}
    page = (book / "arena.md").read_text(encoding="utf-8")
    assert "12 runs, 3 seeds per point" in page
    assert "Gossip is cheaper, because it flips coins." in page
    assert "| gossip | 1.5 | 6 | 1.8 |" in page
    assert "| nodes 15 |" in page[page.index("## Which protocol when") :]
    assert (book / "figures" / "arena-map.svg").exists()
    assert kept_arenas(book) == ["arena", "arena-hard"]
    written = write_arena(book, "arena-hard")
    assert {path.name for path in written} >= {"arena-hard.md", "arena-hard-map.svg"}
    hard = (book / "arena-hard.md").read_text(encoding="utf-8")
    assert "then `roamcast book --hard DIR`" in hard
    assert "| nodes 15 |" in hard
    assert "Gossip is cheaper" not in hard
    assert "## Capacity" not in hard
    assert "## Measure by measure" not in hard
    assert re.search(r"^\| 15 \| gossip \| 3 \|", page, re.MULTILINE)


@pytest.mark.parametrize("name", ["README.md", "docs/guide/choose.md"])
def test_tables_of_readme_and_guide_are_those_of_the_stored_arena(name: str, tmp_path: Path) -> None:
    document = BOOK.parents[1] / name
    copy = Path(shutil.copy(document, tmp_path))
    renew_tables(BOOK, copy)
    assert copy.read_text() == document.read_text()


def test_a_document_without_marks_has_no_tables_to_renew(tmp_path: Path) -> None:
    document = tmp_path / "plain.md"
    document.write_text("nothing\n")
    with pytest.raises(ConfigurationError, match="none of the marks"):
        renew_tables(BOOK, document)


def test_a_figure_is_drawn_again(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    for name in ("geo-3c.json", "older.json"):
        shutil.copy(BOOK / "data" / name, tmp_path / "data" / name)
    written = write_book(tmp_path, compare=False)
    assert tmp_path / "figures" / "geo-3c.svg" in written
    assert (tmp_path / "figures" / "geo-3c.svg").read_text(encoding="utf-8").startswith("<svg")


def test_a_book_without_data_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="holds no summaries"):
        write_book(tmp_path)
