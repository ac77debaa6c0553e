"""Figures as campaigns: estimates against hand-worked numbers, verdicts, shapes, and one figure from end to end."""

import json
import math
import tomllib
from pathlib import Path

import msgspec
import pandas as pd
import pytest
from pyspark.sql import SparkSession

from roamcast.campaign.conduct import Progress
from roamcast.campaign.file import load_campaign
from roamcast.campaign.plan import points
from roamcast.campaign.text import campaign_text
from roamcast.cli import main
from roamcast.errors import ConfigurationError
from roamcast.papers.catalogue import FIGURES, figures_named
from roamcast.papers.estimate import Estimate, Observations, draw, judge, verdict
from roamcast.papers.figure import Bounds, Claim, Curve, Figure, Scale, Values, as_measured, at_least, at_most, between
from roamcast.papers.listing import listed
from roamcast.papers.reproduce import Reproduction
from roamcast.papers.shapes import excess, gain_over, index_to_worst, saving, to_minimum, to_smallest_of_all
from roamcast.papers.sources import changed, code_of, sources_of
from roamcast.papers.summary import last_results, read_summary, write_summary
from roamcast.trace.measures import MEASURES

T3 = 3.182446305284263  # Student's quantile for 3 degrees of freedom, 95 %


def sample(observed: dict[tuple[str, float], list[float]]) -> Observations:
    rows = [
        {"curve": curve, "x": x, "seed": seed, "value": value}
        for (curve, x), values in observed.items()
        for seed, value in enumerate(values)
    ]
    return Observations(pd.DataFrame(rows))


def interval(estimate: Estimate) -> list[float]:
    assert estimate.value is not None
    assert estimate.low is not None
    assert estimate.high is not None
    return [estimate.value, estimate.low, estimate.high]


def test_the_interval_of_a_mean_is_students() -> None:
    (estimate,) = sample({("a", 1.0): [2.0, 4.0, 4.0, 6.0]}).estimates([lambda values: values["a"][1.0]])
    half_width = T3 * math.sqrt(8 / 3) / 2
    assert interval(estimate) == pytest.approx([4, 4 - half_width, 4 + half_width])


def test_differences_are_paired_by_seed() -> None:
    pairs = sample({("a", 1.0): [10.0, 20.0, 30.0, 40.0], ("b", 1.0): [9.0, 19.0, 29.0, 39.0]})
    (estimate,) = pairs.estimates([lambda values: values["a"][1.0] - values["b"][1.0]])
    assert interval(estimate) == pytest.approx([1, 1, 1])


def test_weights_let_observations_count_instead_of_runs() -> None:
    rows = [("a", 1.0, 0, 10.0, 1.0), ("a", 1.0, 1, 40.0, 3.0), ("a", 1.0, 2, math.nan, 0.0)]
    weighed = Observations(pd.DataFrame(rows, columns=["curve", "x", "seed", "value", "weight"]))
    assert weighed.values() == {"a": {1.0: pytest.approx((10 + 3 * 40) / 4)}}


def test_one_seed_gives_no_interval_and_missing_runs_no_value() -> None:
    alone = sample({("a", 1.0): [3.0]})
    found = alone.estimates([lambda values: values["a"][1.0], lambda values: values["b"][1.0]])
    assert found == [Estimate(3.0), Estimate(None)]
    patchy = sample({("a", 1.0): [1.0, math.nan, 3.0, 5.0]})
    assert patchy.values() == {"a": {1.0: pytest.approx(3)}}


@pytest.mark.parametrize(
    ("low", "high", "region", "told"),
    [
        (0.76, 0.80, at_least(0.75), "holds"),
        (0.70, 0.74, at_least(0.75), "fails"),
        (0.70, 0.80, at_least(0.75), "undecided"),
        (0.05, 0.10, at_most(0.10), "holds"),
        (0.2, 0.8, between(0.1, 0.9), "holds"),
        (0.95, 0.99, between(0.1, 0.9), "fails"),
        (None, None, at_most(1), "undecided"),
    ],
)
def test_a_verdict_needs_the_whole_interval(low: float | None, high: float | None, region: Bounds, told: str) -> None:
    assert verdict(Estimate(0.5, low, high), region) == told


def test_judging_says_what_was_asked() -> None:
    claim = Claim("a is large", "2", lambda values: values["a"][1.0], at_least(3), finding="it is not")
    ((judgement, _),) = judge(sample({("a", 1.0): [2.0, 2.1, 1.9]}), [claim])
    assert (judgement.verdict, judgement.required, judgement.finding) == ("fails", "at least 3", "it is not")


COSTS: Values = {"slow": {1.0: 4.0, 2.0: 10.0}, "fast": {1.0: 2.0, 2.0: 4.0}}


def test_shapes() -> None:
    assert to_minimum(COSTS) == {"slow": {1.0: 1.0, 2.0: 2.5}, "fast": {1.0: 1.0, 2.0: 2.0}}
    assert to_smallest_of_all(COSTS)["slow"] == {1.0: 2.0, 2.0: 5.0}
    assert index_to_worst(COSTS) == {"slow": {1.0: 1.0, 2.0: 1.0}, "fast": {1.0: 2.0, 2.0: 2.5}}
    assert gain_over("slow")(COSTS) == {"gain": {1.0: 0.5, 2.0: pytest.approx(0.6)}}
    assert saving(COSTS, "fast", "slow", 1.0) == 0.5
    assert excess("slow", 2.0, [1.0])(COSTS) == 1.5


def test_drawn_curves_come_in_order_with_their_intervals() -> None:
    points = draw(sample({("a", 2.0): [2.0, 4.0], ("a", 1.0): [1.0, 1.0], ("b", 1.0): [5.0, 5.0]}), as_measured)
    assert [(point.curve, point.x, point.estimate.value) for point in points] == [("a", 1, 1), ("a", 2, 3), ("b", 1, 5)]
    assert points[0].estimate.low == points[0].estimate.high == 1


def test_campaign_text_is_toml() -> None:
    tables = {
        "title": 'so-called "ä"',
        "protocols": ["flooding", {"name": "gossip", "label": "g", "probability": 0.5}],
        "seeds": 3,
        "scenario": {"radio": {"preset": "ns2"}, "area_m": [1000.0, 500]},
        "grid": {"size": [{"scenario.nodes": 5, "scenario.area_m": 300}], "gossip.certain_hops": [1, 2]},
        "flag": True,
    }
    assert tomllib.loads(campaign_text(tables)) == tables


def small_figure() -> Figure:
    tables = {
        "protocols": ["flooding", {"name": "gossip", "label": "gossip", "probability": 0.3}],
        "seeds": 3,
        "scenario": {
            "duration_s": 12,
            "area_m": 400,
            "radio": {"model": "ideal"},
            "workload": {"start_s": 1, "tail_s": 1, "publisher_share": 0.5},
        },
        "grid": {"scenario.nodes": [6, 12]},
    }
    return Figure(
        id="test-1",
        title="Frames",
        paper="test",
        section="nowhere",
        setting="A network.",
        quick=tables,
        paper_scale=tables,
        quick_note="Everything.",
        curves=(Curve("flooding", "flooding", "frames_total"), Curve("gossip", "gossip", "frames_total")),
        x="nodes",
        x_title="nodes",
        y_title="frames, index",
        shown=index_to_worst,
        claims=(
            Claim("more nodes send more", "more", lambda at: at["flooding"][12] / at["flooding"][6], at_least(1)),
            Claim("gossip sends ten times more", "10", lambda at: at["gossip"][12] / at["flooding"][12], at_least(10)),
        ),
    )


def test_a_figure_from_end_to_end(spark: SparkSession, tmp_path: Path) -> None:
    figure = small_figure()
    summary = Reproduction(figure, "quick", tmp_path, master="local[2]").run(spark)
    assert (summary.runs, summary.seeds, summary.failed) == (12, 3, ())
    assert (summary.looks, summary.runs_of_paper, summary.exhausted) == ((3,), 3, True)
    assert set(summary.sources) == {"simulator", "flooding", "gossip"}
    assert [claim.verdict for claim in summary.claims] == ["holds", "fails"]
    assert [(point.curve, point.x) for point in summary.points] == [
        ("flooding", 6),
        ("flooding", 12),
        ("gossip", 6),
        ("gossip", 12),
    ]
    assert summary.points[0].estimate.value == 1
    directory = tmp_path / "test-1-quick"
    assert (directory / "figure.svg").read_text().startswith("<svg")
    page = (directory / "index.html").read_text()
    assert "more nodes send more" in page
    assert "http" not in page.replace("http://www.w3.org/", "")
    assert last_results(tmp_path) == [summary]


def test_a_summary_that_is_none_is_refused(tmp_path: Path) -> None:
    bad = tmp_path / "bad.json"
    bad.write_text("{}")
    with pytest.raises(ConfigurationError, match="bad"):
        read_summary(bad)
    with pytest.raises(ConfigurationError, match="none"):
        read_summary(tmp_path / "none.json")


def test_figures_are_found_by_name() -> None:
    assert [figure.id for figure in figures_named("somer-6.5")] == ["somer-6.5"]
    assert len(figures_named("somer")) == 12
    simulated, emulated = figures_named("all"), figures_named("all", "emulator")
    assert [figure for figure in FIGURES.values() if figure not in emulated] == simulated
    assert [figure.id for figure in emulated] == [f"overlay-{number}-emulated" for number in (13, 14, 16, 17)]
    with pytest.raises(ConfigurationError, match="somer-9"):
        figures_named("somer-9.9")


@pytest.mark.parametrize("name", FIGURES)
@pytest.mark.parametrize("scale", ["quick", "paper"])
def test_every_figure_plans_its_campaign(name: str, scale: Scale, tmp_path: Path) -> None:
    figure = FIGURES[name]
    file = tmp_path / "campaign.toml"
    file.write_text(campaign_text(figure.campaign(scale)))
    campaign = load_campaign(file)
    planned = points(campaign)
    assert len(planned) > 1
    if figure.curves:
        swept = {column for point in planned for column in point.settings}
        labels = {point.label for point in planned}
        assert figure.x in swept
        assert {curve.measure for curve in figure.curves} <= MEASURES.keys()
        if scale == "paper":
            assert {curve.contender for curve in figure.curves} <= labels


def test_the_command_line_lists_and_refuses(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit, match="0"):
        main(["reproduce", "--list", "--json", "--out", str(tmp_path)])
    told = json.loads(capsys.readouterr().out)
    assert {row["figure"] for row in told} == FIGURES.keys()
    assert {row["result"] for row in told} == {"not yet run"}
    assert all(row["claims"] == [] and row["runs_of_paper"] > 0 for row in told)
    for arguments in (["reproduce", "somer-9.9"], ["reproduce"]):
        with pytest.raises(SystemExit, match="2"):
            main(arguments)
        assert capsys.readouterr().err.count("\n") == 1


def test_the_list_shows_results_of_ones_own_before_those_of_the_book(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    book = Path("docs/results/data")
    kept = read_summary(Path(__file__).parents[2] / book / "geo-3c.json")
    other = msgspec.structs.replace(kept, figure="geo-3a")
    monkeypatch.chdir(tmp_path)
    for summary in (kept, other):
        write_summary(summary, book / f"{summary.figure}.json")
    write_summary(msgspec.structs.replace(kept, claims=()), Path("results/geo-3c-quick/summary.json"))
    with pytest.raises(SystemExit, match="0"):
        main(["reproduce", "--list", "--json"])
    told = {row["figure"]: (row["result"], row["from"]) for row in json.loads(capsys.readouterr().out)}
    assert told["geo-3c"] == ("no claims of the paper", "results")
    assert told["geo-3a"] == (other.score, str(book))
    assert told["somer-6.1"] == ("not yet run", "")


def test_a_figure_stops_when_its_claims_are_decided_and_resumes_where_it_stopped(
    spark: SparkSession, tmp_path: Path
) -> None:
    figure = small_figure()
    tables = figure.quick | {"seeds": 40, "grid": {"scenario.nodes": [6, 12]}}
    sure, never = figure.claims[1], Claim("unknowable", "", lambda at: at["nobody"][12], at_least(0))
    decided = msgspec.structs.replace(figure, quick=tables, paper_scale=tables, claims=(sure,))
    looks: list[int] = []
    summary = Reproduction(decided, "quick", tmp_path, master="local[2]").run(
        spark, on_look=lambda seen: looks.append(seen.seeds)
    )
    assert looks == [8]
    assert (summary.seeds, summary.exhausted, summary.count("fails")) == (8, False, 1)
    open_ended = msgspec.structs.replace(decided, claims=(sure, never))
    seen: list[Progress] = []
    again = Reproduction(open_ended, "quick", tmp_path, master="local[2]", most=20).run(spark, seen.append)
    assert seen[0].done == 8 * 4  # what the first attempt left is not simulated again
    assert (again.looks, again.seeds) == ((8, 16), 16)
    assert [claim.verdict for claim in again.claims] == ["fails", "undecided"]
    assert again.command.endswith("--most 20")


def test_only_what_an_undecided_claim_needs_gets_more_seeds(spark: SparkSession, tmp_path: Path) -> None:
    figure = small_figure()
    tables = figure.quick | {"seeds": 40}
    figure = msgspec.structs.replace(figure, quick=tables, paper_scale=tables)
    (_, at_first) = Reproduction(figure, "quick", tmp_path, master="local[2]").run(spark).claims
    assert at_first.estimate.value is not None
    by_a_hair = msgspec.structs.replace(figure.claims[1], region=at_least(at_first.estimate.value))
    summary = Reproduction(
        msgspec.structs.replace(figure, claims=(figure.claims[1], by_a_hair)),
        "quick",
        tmp_path,
        master="local[2]",
        most=16,
    ).run(spark)
    assert summary.runs == 8 * 4 + 8 * 2  # only the two points at 12 nodes went on
    assert (summary.seeds, summary.seeds_fewest, summary.seeds_text) == (16, 8, "8 to 16")
    assert summary.claims[0].verdict == "fails"


def test_a_result_is_older_when_a_part_of_its_sources_changed() -> None:
    today = sources_of({"protocols": ["flooding", {"name": "somer"}, {"name": "ps-maodv"}]})
    assert list(today) == ["simulator", "flooding", "ps-maodv", "somer"]
    assert len(set(today.values())) == 4
    assert changed(today, today) == ()
    assert changed(today | {"somer": "0"}, today) == ("somer",)
    assert changed({}, today) == ("unknown",)


def test_comments_and_docstrings_make_no_result_older() -> None:
    plain = "def f(x):\n    return '# no comment'\n"
    told = '"""Theory."""\n\ndef f(x):  # why\n    """What\n    it does."""\n\n    # how\n    return \'# no comment\'\n'
    assert code_of(told) == code_of(plain)
    assert code_of(plain.replace("return", "yield")) != code_of(plain)


def test_the_list_tells_scale_seeds_and_verdicts(tmp_path: Path) -> None:
    figure = FIGURES["geo-3c"]
    kept = read_summary(Path(__file__).parents[2] / "docs/results/data/geo-3c.json")
    fresh = msgspec.structs.replace(
        kept,
        scale="paper",
        seeds=200,
        sources=sources_of(figure.campaign("paper")),
        claims=tuple(
            msgspec.structs.replace(old, statement=claim.statement)
            for old, claim in zip(kept.claims, figure.claims, strict=True)
        ),
    )
    write_summary(fresh, tmp_path / "geo-3c.json")
    (row,) = (row for row in listed(tmp_path / "none", tmp_path) if row.figure == "geo-3c")
    assert (row.at_paper_scale, row.exhausted, row.older) == (True, True, [])
    assert row.holds + row.fails + row.undecided == len(row.claims) == len(figure.claims)
    write_summary(msgspec.structs.replace(fresh, claims=fresh.claims[:1]), tmp_path / "geo-3c.json")
    (row,) = (row for row in listed(tmp_path / "none", tmp_path) if row.figure == "geo-3c")
    assert row.older == ["claims"]
