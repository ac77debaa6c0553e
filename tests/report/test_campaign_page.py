"""The report: what it says, and that a browser shows it without a network."""

import json
import re
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import altair as alt
import msgspec
import pandas as pd
import pytest
from playwright.sync_api import Browser, Page, expect
from pyspark.sql import SparkSession

import roamcast.report
from roamcast.analysis.analyse import Analysis, Precision, analyse
from roamcast.campaign.commits import FAILED, RunOutcome
from roamcast.campaign.conduct import Conductor
from roamcast.campaign.file import Stop
from roamcast.campaign.store import Store, Written
from roamcast.report.campaign_page import _facts, render
from roamcast.report.figures import measure_figure
from roamcast.report.layouts import Layout
from roamcast.report.wording import number, percent, setting_title, setting_value, with_interval

VENDOR = Path(roamcast.report.__file__).with_name("vendor")
NOW = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
CAMPAIGN = """
title = "Coins & <frames>"
description = "Is it worth it?"
protocols = [
    "flooding",
    { name = "gossip", label = "coin 0.4", probability = 0.4 },
    { name = "gossip", label = "coin 0.5", probability = 0.5 },
    { name = "gossip", label = "coin 0.6", probability = 0.6 },
    { name = "gossip", label = "coin 0.7", probability = 0.7 },
    { name = "gossip", label = "coin 0.8", probability = 0.8 },
    { name = "gossip", label = "coin 0.9", probability = 0.9 },
]
seeds = 2
measures = ["delivery_ratio", "within_100ms", "latency_ms_mean", "frames_per_delivery", "airtime_per_delivery_ms"]
[scenario]
area_m = 400
duration_s = 12
[grid]
scenario.nodes = [10, 15]
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
    assert "56 of 56" in html
    assert f"--out {store.directory}" in html
    assert "2026-01-02 03:04 UTC" in html
    assert html.count("<svg") >= 6
    mean = analysis.points[(analysis.points["point"] == 0) & (analysis.points["measure"] == "frames_per_delivery")]
    assert with_interval(*mean[["mean", "low", "high"]].iloc[0]) in html
    assert "Failed runs" not in html


def test_it_names_nothing_outside_itself(page: Path) -> None:
    html = page.read_text(encoding="utf-8")
    for name in ("vega", "vega-lite", "vega-embed"):  # once, as they came
        source = (VENDOR / f"{name}.min.js").read_text(encoding="utf-8").partition("\n//# sourceMappingURL")[0]
        assert html.count(source) == 1
        html = html.replace(source, "")
    assert not re.search(r'(?:src|href)="(?!#|data:)', html)
    assert set(re.findall(r"https?://[^\s\"'<]+", html)) <= {
        "http://www.w3.org/2000/svg",
        "http://www.w3.org/1999/xlink",
        "https://vega.github.io/schema/vega-lite/v6.json",
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
    store.commit(99999, [Written([], [RunOutcome(failed, FAILED, "ValueError: <b>oops</b>", 0.1, 0)])])
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
    tab.wait_for_selector("html[data-ready]")
    assert said == []
    assert [url for url in asked if not url.startswith("data:")] == [page.as_uri()]
    assert tab.title().startswith("Coins & <frames>")
    for chart in tab.locator(".live svg.marks").all():
        box = chart.bounding_box()
        assert box is not None
        assert box["width"] > 200
        assert box["height"] > 50
    assert tab.evaluate("document.documentElement.scrollWidth <= window.innerWidth")  # tables scroll inside
    ink, paper = tab.evaluate(
        "[getComputedStyle(document.body).color, getComputedStyle(document.body).backgroundColor]"
    )
    assert contrast(ink, paper) > 7
    label = tab.locator(".live svg text").first.evaluate("node => getComputedStyle(node).fill")
    card = tab.locator("figure").first.evaluate("node => getComputedStyle(node).backgroundColor")
    assert contrast(label, card) > 4.5


@pytest.fixture
def shown(browser: Browser, page: Path) -> Iterator[Page]:
    tab = browser.new_page(viewport={"width": 1400, "height": 900}, color_scheme="light")
    tab.goto(page.as_uri())
    tab.wait_for_selector("html[data-ready]")
    yield tab
    tab.close()


FIGURE = "#figure-airtime-per-delivery"
POINTS = ".live .mark-symbol[class*='touch'] path"
TOUCHED = f"{FIGURE} {POINTS}"


def test_every_chart_is_vega_lite(page: Path) -> None:
    [text] = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page.read_text(encoding="utf-8"))
    figures = json.loads(text)["figures"]
    assert len(figures) > 10
    for figure in figures.values():
        for view in figure["views"] if figure["measure"] in ("", "delivery_ratio") else []:  # others look like these
            alt.Chart.from_dict(view["spec"])


def test_a_tooltip_says_what_the_table_says(shown: Page) -> None:
    """Every mean of a figure, by its point; the table is the one that stands in the page."""
    cells = shown.evaluate(
        """() => {
            const found = {};
            for (const table of document.querySelectorAll("[aria-label='All points'] table")) {
                const titles = [...table.querySelectorAll("th")].map((it) => it.textContent);
                const at = titles.indexOf("Airtime per delivery, ms");
                if (at < 0) continue;
                [...table.tBodies[0].rows].forEach((row, number) => (found[number] = row.cells[at].textContent));
            }
            return found;
        }"""
    )
    rows = shown.evaluate("JSON.parse(document.getElementById('data').textContent)")["figures"][FIGURE[1:]]["rows"]
    assert {str(row["point"]): row["told"] for row in rows} == {at: f"{text} ms" for at, text in cells.items()}
    first = rows[0]
    shown.locator(TOUCHED).first.hover()
    tooltip = shown.locator("#vg-tooltip-element.visible")
    expect(tooltip).to_be_visible()
    pairs = "rows => rows.map((row) => [...row.cells].map((it) => it.textContent))"
    told = dict(tooltip.locator("tr").evaluate_all(pairs))
    assert told["protocol"] == first["protocol"] == "flooding"
    assert told["Airtime per delivery"] == f"{cells[str(first['point'])]} ms"
    assert told["runs"] == "2"


def test_the_legend_switches_protocols_off_and_on(shown: Page) -> None:
    """In the figure at hand and in all others."""
    every = shown.locator(TOUCHED).count()
    assert every == 7 * 2
    button = shown.locator(f"{FIGURE} [data-protocol='coin 0.6']")
    button.click()
    expect(shown.locator(TOUCHED)).to_have_count(every - 2)
    elsewhere = shown.locator("#figure-delivery-ratio")
    expect(elsewhere.locator("[data-protocol='coin 0.6']")).to_have_attribute("aria-pressed", "false")
    expect(elsewhere.locator(POINTS)).to_have_count(every - 2)
    button.click()
    expect(shown.locator(TOUCHED)).to_have_count(every)
    shown.locator(f"{FIGURE} [data-every='hidden']").click()
    expect(shown.locator(TOUCHED)).to_have_count(0)
    shown.locator(f"{FIGURE} [data-every='shown']").click()
    expect(shown.locator(TOUCHED)).to_have_count(every)


def test_many_protocols_have_a_panel_each_and_one_for_all(shown: Page) -> None:
    """Two speeds make two views of small multiples; the last view has all protocols in one panel per speed."""
    figure = shown.locator(FIGURE)
    titles = figure.locator("[data-view]").all_inner_texts()
    assert titles == ["by nodes, speed max 1 m/s", "by nodes, speed max 20 m/s", "all in one"]
    panels = figure.locator(".live .role-frame.root .role-scope.cell > g")
    expect(panels).to_have_count(7)
    figure.locator("[data-view]").last.click()
    expect(panels).to_have_count(2)
    expect(shown.locator(TOUCHED)).to_have_count(7 * 4)


def test_a_point_leads_to_its_runs(analysed: tuple[Store, Analysis], shown: Page) -> None:
    store, analysis = analysed
    runs = analysis.runs[analysis.runs["point"] == 0]
    shown.locator(TOUCHED).first.click()
    dialog = shown.locator("#runs")
    expect(dialog).to_be_visible()
    assert shown.evaluate("location.hash") == "#point-0"
    assert dialog.locator("h2").inner_text() == "flooding, nodes 10, speed max 1 m/s"
    rows = dialog.locator("tbody tr")
    assert rows.count() == len(runs) == 2
    for row, run in zip(rows.all(), runs.to_dict("records"), strict=True):
        seed, value, _ = row.locator("td").all_inner_texts()
        assert int(seed) == run["seed"]
        assert float(value) == pytest.approx(run["airtime_per_delivery_ms"], rel=1e-3)
        commands = row.locator("div code").all_inner_texts()
        assert commands == [store.watch_command(run["run_id"]), store.replay_command(run["run_id"])]
    shown.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    shown.locator("[aria-label='All points'] a[href='#point-5']").first.click()
    expect(dialog).to_be_visible()


def test_the_first_screen_answers_and_further_names_open(shown: Page) -> None:
    for answer in shown.locator(".answer").all():
        box = answer.bounding_box()
        assert box is not None
        assert box["y"] + box["height"] < 900
    cell = shown.locator("#winners ~ .scroll td:has(.more), #decisions ~ .scroll td:has(.more)").first
    more = cell.locator(".more")
    count = int(more.locator("summary").inner_text().split()[1])
    names = more.evaluate("it => it.lastChild.textContent").split(", ")
    assert len(names) == count
    assert not set(names) & set(cell.evaluate("it => it.firstChild.textContent").strip().split(", "))
    more.locator("summary").click()
    assert names[-1] in cell.inner_text()


def test_a_phone_shows_it_without_shrinking(browser: Browser, page: Path) -> None:
    tab = browser.new_page(viewport={"width": 400, "height": 800})
    tab.goto(page.as_uri())
    tab.wait_for_selector("html[data-ready]")
    assert tab.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    charts = tab.locator("figure:not(#figure-map) .live svg.marks").evaluate_all(  # the map scrolls
        "all => all.map((it) => [it.getBoundingClientRect().width, it.width.baseVal.value, it.viewBox.baseVal.width, "
        "it.getBoundingClientRect().height])"
    )
    assert len(charts) > 10
    for width, asked, drawn, height in charts:
        assert width == pytest.approx(asked, abs=1) == pytest.approx(drawn, abs=1)  # letters have their own size
        assert 200 < width < 400
        assert height > 50
    tab.close()


def test_paper_and_pages_without_scripts_have_the_charts(browser: Browser, page: Path) -> None:
    context = browser.new_context(java_script_enabled=False)
    tab = context.new_page()
    tab.goto(page.as_uri())
    expect(tab.locator(".still svg")).to_have_count(tab.locator("figure").count())
    assert tab.locator(".still svg").first.is_visible()
    assert not tab.locator(".tabs").first.is_visible()
    context.close()


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
    assert "<svg" in measure_figure([layout], table.assign(n=2), "hops_mean").svg


def test_a_stopping_rule_says_what_confidence_its_looks_have(analysed: tuple[Store, Analysis]) -> None:
    manifest, plan = analysed[0].manifest(), analysed[0].plan().to_pandas()
    assert "intervals" not in dict(_facts(manifest, plan, [], NOW))
    stop = Stop(measure="delivery_ratio", half_width=0.2, least=8, batch=4, cap=24)
    stopped = msgspec.structs.replace(manifest, campaign=msgspec.structs.replace(manifest.campaign, stop=stop))
    said = dict(_facts(stopped, plan, [], NOW))["intervals"]
    assert said == "99 % each: the rule may look 5 times, and 95 % holds wherever it stops"


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
