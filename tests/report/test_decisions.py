"""Which protocol when, from measures that are written down here."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from roamcast.campaign.file import Campaign, load_campaign
from roamcast.campaign.plan import plan_table, points, replicates
from roamcast.errors import ConfigurationError
from roamcast.report.answers import Answer, RankedProtocol, answers
from roamcast.report.decisions import (
    AIRTIME,
    DELIVERY,
    collapse_table,
    collapsed_points,
    crossed_table,
    decision_table,
    decisions,
)
from roamcast.report.maps import decision_map, profiles
from roamcast.report.markdown import markdown_table, put_between_marks
from roamcast.report.tables import Cell, Grid, named, parts

STAR = """
protocols = ["flooding", "gossip", "somer", "oracle"]
seeds = 6
[scenario]
nodes = 30
[[grid]]
scenario.nodes = [30, 45, 60]
[[grid]]
scenario.mobility.speed_max_mps = [10, 20]
[[grid]]
scenario.nodes = [30, 60]
scenario.mobility.speed_max_mps = [10, 20]
"""
MEANS = {"flooding": (0.99, 8.0), "gossip": (0.97, 6.0), "somer": (0.80, 2.0), "oracle": (1.0, 1.0)}
"""Delivery ratio and airtime per delivery; somer collapses with 60 nodes."""


@pytest.fixture
def campaign(tmp_path: Path) -> Campaign:
    path = tmp_path / "campaign.toml"
    path.write_text(STAR, encoding="utf-8")
    return load_campaign(path)


def planned(campaign: Campaign) -> pd.DataFrame:
    table = plan_table(campaign, replicates(points(campaign), campaign.seeds))
    return table.drop_columns("run").to_pandas()


def measured(plan: pd.DataFrame) -> pd.DataFrame:
    rows: list[dict[Any, Any]] = []
    for row in plan.to_dict("records"):
        delivery, airtime = MEANS[row["protocol"]]
        if row["protocol"] == "somer" and row["nodes"] == "60":
            delivery = 0.4
        wobble = 0.001 * (row["seed"] * len(row["protocol"]) % 5)
        values = {DELIVERY: delivery + wobble, "within_100ms": delivery - wobble, AIRTIME: airtime + wobble}
        rows.append(row | values)
    return pd.DataFrame(rows)


def test_airtime_counts_among_those_that_hold_up(campaign: Campaign) -> None:
    plan = planned(campaign)
    found = decisions(campaign, plan, measured(plan))
    assert [each.choices[DELIVERY].names for each in found] == [["flooding"]] * 5
    assert [each.choices[AIRTIME].names for each in found] == [["gossip"]] * 5  # somer is cheaper, but loses a fifth


def test_the_answer_counts_places(campaign: Campaign) -> None:
    plan = planned(campaign)
    delivery, speed, airtime = answers(campaign, plan, measured(plan))
    assert delivery == Answer("delivery matters most", 5, [RankedProtocol("flooding", 5, 5)], 0)
    assert speed.standings == [RankedProtocol("flooding", 5, 5)]
    assert airtime.standings == [RankedProtocol("gossip", 5, 5)]


def test_further_names_wait_until_they_are_asked_for() -> None:
    cell = named(["a", "b", "c", "d", "e"], "0.9")
    assert (cell.text, cell.more, cell.more_count) == ("a, b, c", "d, e", 2)
    assert named(["a", "b", "c"], "0.9").more == ""
    assert markdown_table(Grid(["who"], [[cell]], 1)).endswith("| a, b, c and 2 more (0.9) |")


def test_a_wide_table_is_cut_into_some_that_fit() -> None:
    wide = Grid(["place", "a", "b", "c"], [[Cell("here"), Cell("1"), Cell("2"), Cell("3")]], 1)
    first, second = parts(wide, 2)
    assert (first.columns, second.columns) == (["place", "a", "b"], ["place", "c"])
    assert [cell.text for cell in second.rows[0]] == ["here", "3"]
    assert parts(Grid([], [], 1)) == []


def test_a_collapse_is_named_not_averaged(campaign: Campaign) -> None:
    plan = planned(campaign)
    table = collapse_table(campaign, plan, measured(plan))
    cells = {row[0].text: [cell.text for cell in row[1:]] for row in table.rows}
    assert cells["flooding"] == ["holds up"] * 3
    assert cells["somer"] == ["at 60", "holds up", "at 60, speed max 10 m/s, 60, speed max 20 m/s"]
    assert "oracle" not in cells
    labels = plan.drop_duplicates("point").set_index("point")["protocol"]
    assert {labels[point] for point in collapsed_points(campaign, plan, measured(plan))} == {"somer"}


def test_the_short_table_has_the_ends_of_the_sweeps_and_where_they_meet(campaign: Campaign) -> None:
    plan = planned(campaign)
    rows = decision_table(campaign, plan, measured(plan), ends_only=True).rows
    assert [row[0].text for row in rows][:3] == ["where all sweeps meet", "nodes 60", "speed max 20 m/s"]
    assert "nodes 45" not in [row[0].text for row in rows]
    assert len(decision_table(campaign, plan, measured(plan)).rows) == 5


def test_where_axes_cross_there_is_a_column_per_value_of_the_first(campaign: Campaign, tmp_path: Path) -> None:
    path = tmp_path / "cross.toml"
    path.write_text(STAR[: STAR.index("[[grid]]")] + STAR[STAR.rindex("[[grid]]") :], encoding="utf-8")
    crossing = load_campaign(path)
    plan = planned(crossing)
    table = crossed_table(crossing, plan, measured(plan))
    assert table.columns == ["", "nodes 30", "nodes 60"]
    assert [row[0].text for row in table.rows] == ["speed max 10 m/s", "speed max 20 m/s"]
    assert {cell.text for row in table.rows for cell in row[1:]} == {"gossip"}
    plan = planned(campaign)
    assert crossed_table(campaign, plan, measured(plan)).rows == []


def test_without_the_measures_there_is_no_decision(campaign: Campaign) -> None:
    plan = planned(campaign)
    assert decisions(campaign, plan, measured(plan).drop(columns="within_100ms")) == []


def test_the_map_and_the_profiles_name_who_is_chosen(campaign: Campaign) -> None:
    plan = planned(campaign)
    runs = measured(plan)
    drawing = decision_map(campaign, plan, runs)
    assert drawing is not None
    assert "gossip" in drawing.svg
    assert "somer" not in drawing.svg
    long = runs.melt(["point"], [DELIVERY, AIRTIME], "measure", "value")
    means = long.groupby(["point", "measure"])["value"].mean().rename("mean").reset_index()
    drawn = profiles(campaign, plan, pd.DataFrame(means))
    assert drawn is not None
    assert all(name in drawn.svg for name in (*MEANS, "at its worst place", ">0.4<"))


def test_a_table_goes_between_the_marks_of_a_document(campaign: Campaign, tmp_path: Path) -> None:
    plan = planned(campaign)
    text = markdown_table(decision_table(campaign, plan, measured(plan)))
    assert text.startswith("| where | if delivery matters most |")
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- decisions -->\nold\n<!-- end of decisions -->\nafter\n")
    put_between_marks(page, "decisions", text)
    assert page.read_text() == f"before\n<!-- decisions -->\n{text}\n<!-- end of decisions -->\nafter\n"
    with pytest.raises(ConfigurationError, match="end of figures"):
        put_between_marks(page, "figures", text)
