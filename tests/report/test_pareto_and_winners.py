"""The comparison sections of a report, from tables that are written down here."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from roamcast.campaign.file import Campaign, load_campaign
from roamcast.campaign.plan import plan_table, points, replicates
from roamcast.report.contenders import colours, limits
from roamcast.report.drawing import decades, logarithmic, spans_decades
from roamcast.report.figures import measure_figure
from roamcast.report.layouts import common_layout, layouts_of
from roamcast.report.pareto import front, tradeoffs
from roamcast.report.winners import winners_table

STAR = """
protocols = ["flooding", "gossip", "somer", "oracle"]
seeds = 6
[scenario]
nodes = 30
[[grid]]
scenario.nodes = [30, 60]
[[grid]]
scenario.mobility.speed_max_mps = [10, 20]
"""
MEANS = {"flooding": (0.99, 8.0), "gossip": (0.95, 6.0), "somer": (0.90, 7.0), "oracle": (1.0, 1.0)}
"""Delivery ratio and airtime per delivery."""


@pytest.fixture
def campaign(tmp_path: Path) -> Campaign:
    return loaded(tmp_path, STAR)


def loaded(directory: Path, text: str) -> Campaign:
    path = directory / "campaign.toml"
    path.write_text(text, encoding="utf-8")
    return load_campaign(path)


def planned(campaign: Campaign) -> pd.DataFrame:
    table = plan_table(campaign, replicates(points(campaign), campaign.seeds))
    return table.drop_columns("run").to_pandas()


def measured(plan: pd.DataFrame) -> pd.DataFrame:
    """Every network has its own level, which all contenders share; flooding alone is erratic at 60 nodes."""
    rows: list[dict[Any, Any]] = []
    for row in plan.to_dict("records"):
        delivery, airtime = MEANS[row["protocol"]]
        erratic = row["nodes"] == "60" and row["protocol"] == "flooding"
        swing = (0.3 if row["seed"] % 2 else -0.3) if erratic else 0.0005 * (row["seed"] * len(row["protocol"]) % 5)
        rows.append(row | {"delivery_ratio": delivery - 0.01 * row["seed"] + swing, "airtime_per_delivery_ms": airtime})
    return pd.DataFrame(rows)


def summarised(runs: pd.DataFrame) -> pd.DataFrame:
    long = runs.melt(["point"], ["delivery_ratio", "airtime_per_delivery_ms"], "measure", "value")
    means = long.groupby(["point", "measure"])["value"].mean().rename("mean").reset_index()
    return pd.DataFrame(means.assign(low=means["mean"] - 0.01, high=means["mean"] + 0.01, n=6))


def test_the_front_holds_who_is_beaten_by_nobody() -> None:
    rows = pd.DataFrame({"gain": [0.9, 0.8, 0.7, 0.9], "cost": [5.0, 2.0, 3.0, 6.0]})
    assert front(rows) == [True, True, False, False]
    assert front(pd.DataFrame({"gain": [0.5, 0.5], "cost": [1.0, 1.0]})) == [True, True]


def test_limits_compete_with_nobody(campaign: Campaign) -> None:
    assert limits(campaign) == {"oracle"}
    assert len(set(colours(campaign).values())) == 4
    assert list(colours(campaign)) == ["flooding", "gossip", "somer", "oracle"]


def test_tradeoffs_at_the_shared_place_and_at_the_end_of_each_sweep(campaign: Campaign) -> None:
    plan = planned(campaign)
    [airtime] = tradeoffs(campaign, plan, summarised(measured(plan)))
    assert airtime.title == "Delivery against airtime"
    panels = list(dict.fromkeys(row["panel"] for row in airtime.drawing.rows))
    assert panels == ["where all sweeps meet", "nodes 60", "speed max 20 m/s"]
    svg = airtime.drawing.svg
    assert all(text in svg for text in (*panels, "oracle"))
    on_front = {row["protocol"] for row in airtime.drawing.rows if row["front"]}
    assert on_front == {"flooding", "gossip"}  # somer is beaten in both respects, oracle is a limit


def test_nobody_to_compare_with_means_no_comparison(tmp_path: Path) -> None:
    alone = loaded(tmp_path, 'protocols = ["flooding", "oracle"]\nseeds = 6\n[grid]\nscenario.nodes = [30, 60]\n')
    plan = planned(alone)
    runs = measured(plan)
    assert tradeoffs(alone, plan, summarised(runs)) == []
    assert winners_table(alone, plan, runs, ["delivery_ratio"]).rows == []


def test_who_wins_where(campaign: Campaign) -> None:
    plan = planned(campaign)
    table = winners_table(campaign, plan, measured(plan), ["delivery_ratio", "airtime_per_delivery_ms", "expected"])
    assert table.columns == ["", "Delivery ratio", "Airtime per delivery"]  # no better or worse number of expected ones
    base, crowded, fast = table.rows
    assert base[0].text == "where all sweeps meet"
    assert base[0].note == "nodes 30, speed max 10 m/s"
    assert (crowded[0].text, fast[0].text) == ("nodes 60", "speed max 20 m/s")
    assert (base[1].text, base[1].tone) == ("flooding", "better")
    assert "ahead of gossip" in base[1].note
    assert (crowded[1].text, crowded[1].tone) == ("flooding, gossip", "")  # an erratic best rules nobody out
    assert [row[2].text for row in table.rows] == ["gossip"] * 3


def test_decades_make_room_for_nothing() -> None:
    wide = pd.Series([0.0, 0.2, 40.0])
    assert spans_decades(wide)
    assert logarithmic(wide)["type"] == "symlog"
    assert decades(wide) == [0.0, 1.0, 10.0]
    assert not spans_decades(pd.Series([0.0, 5.0, 40.0]))
    assert not spans_decades(pd.Series([0.0, 0.0]))
    assert not spans_decades(pd.Series([-1.0, 0.001, 40.0]))
    assert logarithmic(pd.Series([3.0, 300.0]))["type"] == "log"


def test_a_sweep_is_a_panel_with_its_own_axis(campaign: Campaign) -> None:
    plan = planned(campaign)
    layouts = layouts_of(campaign, plan)
    assert [layout.x for layout in layouts] == ["nodes", "speed_max_mps"]
    assert [layout.ticks for layout in layouts] == [[30, 60], [10, 20]]
    assert common_layout(campaign, plan).x is None
    svg = measure_figure(layouts, summarised(measured(plan)), "airtime_per_delivery_ms").svg
    assert "nodes" in svg
    assert "speed max (m/s)" in svg
