"""The report: what it says, and that a browser shows it without a network."""

import re
import shutil
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pandas as pd
import pytest
from playwright.sync_api import Browser
from pyspark.sql import SparkSession

from roamcast.analysis.analyse import Analysis, Precision, analyse
from roamcast.campaign.commits import FAILED, Outcome
from roamcast.campaign.conduct import Conductor
from roamcast.campaign.store import Store, Written
from roamcast.report.campaign_page import render
from roamcast.report.figures import Layout, measure_figure
from roamcast.report.wording import number, percent, setting_title, setting_value, with_interval

NOW = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
CAMPAIGN = """
title = "Coins & <frames>"
description = "Is it worth it?"
protocols = ["flooding", { name = "gossip", probability = 0.5 }]
seeds = 2
[scenario]
area_m = 400
duration_s = 12
[grid]
scenario.nodes = [10, 15, 20]
scenario.mobility.speed_max_mps = [1, 20]
"""


@pytest.fixture(scope="module")
def analysed(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Store, Analysis]:
    directory = tmp_path_factory.mktemp("report")
    file = directory / "coins.toml"
    file.write_text(CAMPAIGN, encoding="utf-8")
    conductor = Conductor(file, directory / "out", master="local[2]")
    conductor.conduct(spark, precise=Precision(spark, conductor.store))
    return conductor.store, analyse(spark, conductor.store)


@pytest.fixture(scope="module")
def page(analysed: tuple[Store, Analysis], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(render(*analysed, NOW), encoding="utf-8")
    return path


def test_it_holds_what_a_reviewer_asks_for(analysed: tuple[Store, Analysis], page: Path) -> None:
    store, analysis = analysed
    html = page.read_text(encoding="utf-8")
    assert "Coins &amp; &lt;frames&gt;" in html  # what users write is text, not markup
    assert "24 of 24" in html
    assert f"--out {store.directory}" in html
    assert "2026-01-02 03:04 UTC" in html
    assert html.count("<svg") >= 6
    mean = analysis.points[(analysis.points["point"] == 0) & (analysis.points["measure"] == "frames_per_delivery")]
    assert with_interval(*mean[["mean", "low", "high"]].iloc[0]) in html
    assert "Failed runs" not in html


def test_it_names_nothing_outside_itself(page: Path) -> None:
    html = page.read_text(encoding="utf-8")
    assert not re.search(r'(?:src|href)="(?!#|data:)', html)
    assert "<script" not in html
    assert set(re.findall(r"https?://[^\s\"'<]+", html)) <= {
        "http://www.w3.org/2000/svg",
        "http://www.w3.org/1999/xlink",
    }
    identifiers = re.findall(r'\bid="([^"]+)"', html)
    assert len(identifiers) == len(set(identifiers))


def test_failed_and_missing_runs_are_told(analysed: tuple[Store, Analysis], tmp_path: Path) -> None:
    whole, analysis = analysed
    store = Store(shutil.copytree(whole.directory, tmp_path / "out"))
    lost, failed = sorted(store.outcomes())[:2]
    for commit in store.commits():
        kept = [run for run in commit.runs if run.run_id not in (lost, failed)]
        store.directory.write(commit.name, msgspec.json.encode(msgspec.structs.replace(commit, runs=kept)))
    store.commit(99999, [Written([], [Outcome(failed, FAILED, "ValueError: <b>oops</b>", 0.1, 0)])])
    html = render(store, analysis, NOW)
    assert "1 run failed" in html
    assert "1 run has not been simulated yet" in html
    assert "ValueError: &lt;b&gt;oops&lt;/b&gt;" in html
    assert store.replay_command(failed) in html


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_browser_shows_it_without_error_and_without_the_network(browser: Browser, page: Path, scheme: str) -> None:
    tab = browser.new_page(viewport={"width": 1280, "height": 900}, color_scheme=scheme)  # type: ignore[arg-type]
    said: list[str] = []
    asked: list[str] = []
    tab.on("console", lambda message: said.append(message.text))
    tab.on("pageerror", lambda error: said.append(str(error)))
    tab.on("request", lambda request: asked.append(request.url))
    tab.goto(page.as_uri())
    assert said == []
    assert [url for url in asked if not url.startswith("data:")] == [page.as_uri()]
    assert tab.title().startswith("Coins & <frames>")
    for chart in tab.locator(".chart svg").all():
        box = chart.bounding_box()
        assert box is not None
        assert box["width"] > 200
        assert box["height"] > 50
    assert tab.evaluate("document.documentElement.scrollWidth <= window.innerWidth")  # tables scroll inside
    ink, paper = tab.evaluate(
        "[getComputedStyle(document.body).color, getComputedStyle(document.body).backgroundColor]"
    )
    assert contrast(ink, paper) > 7
    label = tab.locator(".chart svg text").first.evaluate("node => getComputedStyle(node).fill")
    card = tab.locator("figure").first.evaluate("node => getComputedStyle(node).backgroundColor")
    assert contrast(label, card) > 4.5


def contrast(one: str, other: str) -> float:
    """The contrast ratio of the Web Content Accessibility Guidelines."""

    def luminance(colour: str) -> float:
        channels = [int(text) / 255 for text in re.findall(r"\d+", colour)[:3]]
        red, green, blue = (c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    darker, lighter = sorted((luminance(one), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def test_a_contender_without_the_swept_parameter_is_the_same_all_along(tmp_path: Path) -> None:
    from roamcast.campaign.file import load_campaign
    from roamcast.campaign.plan import plan_table, points, replicates

    file = tmp_path / "campaign.toml"
    text = 'protocols = ["flooding", "gossip"]\nseeds = 2\n[grid]\ngossip.probability = [0.2, 0.4, 0.6]\n'
    file.write_text(text, encoding="utf-8")
    campaign = load_campaign(file)
    found = points(campaign)
    plan = plan_table(campaign, replicates(found, campaign.seeds)).drop_columns("run").to_pandas()
    layout = Layout(campaign, plan, campaign.sweeps[0])
    table = pd.DataFrame(
        [{"point": point.point, "measure": "hops_mean", "mean": 2.0, "low": 1.5, "high": 2.5} for point in found]
    )
    placed = layout.placed(table)
    assert layout.x == "probability"
    assert sorted(placed[placed["protocol"] == "flooding"]["x"]) == [0.2, 0.4, 0.6]
    assert "<svg" in measure_figure([layout], table, "hops_mean")


def test_numbers_have_the_digits_that_their_interval_justifies() -> None:
    assert with_interval(12.3456, 12.3456 - 0.0234, 12.3456 + 0.0234) == "12.346 ± 0.023"
    assert with_interval(1234.56, 1234.56 - 78.9, 1234.56 + 78.9) == "1,235 ± 79"
    assert with_interval(5.0, float("nan"), float("nan")) == "5"
    assert with_interval(None, None, None) == "–"
    assert number(-0.5) == "−0.5"
    assert percent(-0.294) == "−29 %"
    assert percent(0.031) == "+3.1 %"
    assert percent(float("nan")) == "–"


def test_settings_are_called_as_people_call_them() -> None:
    assert setting_title("speed_max_mps") == "speed max (m/s)"
    assert setting_title("nodes") == "nodes"
    assert setting_value("speed_max_mps", "2") == "speed max 2 m/s"
    assert setting_value("nodes", "50") == "nodes 50"
