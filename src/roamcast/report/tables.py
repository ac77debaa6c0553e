"""The report's tables: small, formatted, ready for the template."""

from collections.abc import Collection
from typing import Any, NamedTuple

import pandas as pd

from roamcast.analysis.intervals import holm
from roamcast.analysis.student import CONFIDENCE
from roamcast.campaign.file import Campaign
from roamcast.campaign.plan import column_names
from roamcast.report.wording import percent, setting_title, with_interval
from roamcast.trace.measures import MEASURES

USUAL = tuple(name for name, measure in MEASURES.items() if measure.usual)
"""What the report shows unless the campaign file says otherwise."""

HEADLINES = tuple(name for name, measure in MEASURES.items() if measure.headline)
"""What the overview compares, unless the campaign file asks for measures of its own."""

HEADLINES_MAX = 5
NAMES_MAX = 3
COLUMNS_MAX = 6


class Cell(NamedTuple):
    text: str
    tone: str = ""  # better, worse, or nothing
    note: str = ""
    more: str = ""  # further names, which a page shows on demand
    more_count: int = 0
    link: str = ""


class Grid(NamedTuple):
    columns: list[str]
    rows: list[list[Cell]]
    leading: int  # the first columns name the row


def named(names: list[str], note: str) -> Cell:
    """The first names, and the others on demand."""
    hidden = names[NAMES_MAX:]
    return Cell(", ".join(names[:NAMES_MAX]), note=note, more=", ".join(hidden), more_count=len(hidden))


def parts(grid: Grid, columns_max: int = COLUMNS_MAX) -> list[Grid]:
    """A wide table as several that fit a screen; each has the columns that name the rows."""
    found = []
    for start in range(grid.leading, len(grid.columns), columns_max):
        part = slice(start, start + columns_max)
        rows = [[*row[: grid.leading], *row[part]] for row in grid.rows]
        found.append(Grid([*grid.columns[: grid.leading], *grid.columns[part]], rows, grid.leading))
    return found


def shown_measures(campaign: Campaign, points: pd.DataFrame) -> list[str]:
    """The requested measures, or those of the usual ones that are defined and not 0 everywhere."""
    if campaign.measures:
        return list(campaign.measures)
    largest = points.groupby("measure")["mean"].apply(lambda means: means.abs().max())
    return [name for name in USUAL if largest.get(name, 0) > 0]


def overview(
    campaign: Campaign, differences: pd.DataFrame, plan: pd.DataFrame, collapsed: Collection[int] = ()
) -> Grid:
    """Per rival of the baseline and headline measure: the differences over all places, and how many are certain.

    Points at which a protocol collapses are counted, not averaged: a cost per delivery of what hardly delivers says
    nothing."""
    headlines = list(campaign.measures or HEADLINES)[:HEADLINES_MAX]
    rows = []
    labels = plan.drop_duplicates("point").set_index("point")["protocol"]
    shown = corrected(differences, headlines)
    for label in dict.fromkeys(label for label in labels if label != campaign.baseline):
        mine = shown[shown["point"].map(labels) == label]
        lost = mine["point"].isin(list(collapsed))
        places = mine.loc[lost, "point"].nunique()
        cells = [Cell(label, "", f"collapses at {places} place{'' if places == 1 else 's'}" if places else "")]
        for name in headlines:
            found = mine[(mine["measure"] == name) & ~lost]
            cells.append(_span(name, found))
        rows.append(cells)
    return Grid(["", *(MEASURES[name].title for name in headlines)], rows, 1)


def corrected(differences: pd.DataFrame, measures: list[str], confidence: float = CONFIDENCE) -> pd.DataFrame:
    """The differences in these measures, each with `certain`: significant after Holm's correction for all of them.

    Without it, one comparison in twenty would look certain where there is no difference at all.
    """
    shown = differences[differences["measure"].isin(measures)]
    return shown.assign(certain=[p <= 1 - confidence for p in holm(shown["p"].tolist())])


def _span(name: str, found: pd.DataFrame) -> Cell:
    if found.empty:
        return Cell("–")
    least, most = found["relative"].min(), found["relative"].max()
    text = percent(least) if percent(least) == percent(most) else f"{percent(least)} … {percent(most)}"
    certain = int(found["certain"].sum())
    certainties = zip(found["mean"].tolist(), found["certain"].tolist(), strict=True)
    tones = {_tone(name, difference, is_certain) for difference, is_certain in certainties} - {""}
    places = "place" if len(found) == 1 else "places"
    return Cell(text, tones.pop() if len(tones) == 1 else "", f"certain at {certain} of {len(found)} {places}")


def point_table(campaign: Campaign, points: pd.DataFrame, plan: pd.DataFrame, measures: list[str]) -> Grid:
    """Every point with the mean and half-width of each measure."""
    swept = list(column_names(campaign).values())
    values: dict[Any, Any] = {(row.point, row.measure): row for row in points.itertuples()}
    rows = []
    for row in plan.drop_duplicates("point").sort_values("point").to_dict("records"):
        point = row["point"]
        found = [values.get((point, name)) for name in measures]
        runs = int((plan["point"] == point).sum())
        cells = [*(Cell(_setting(row[name])) for name in swept), Cell(str(row["protocol"]))]
        cells.append(Cell(str(runs), link=f"#point-{point}"))
        cells += [Cell("–") if it is None else Cell(with_interval(it.mean, it.low, it.high)) for it in found]
        rows.append(cells)
    headings = [*(setting_title(name) for name in swept), "protocol", "runs", *map(heading, measures)]
    return Grid(headings, rows, len(swept) + 1)


def difference_table(campaign: Campaign, differences: pd.DataFrame, plan: pd.DataFrame, measures: list[str]) -> Grid:
    """Every comparison with the baseline: mean difference, half-width, and the difference in per cent."""
    swept = list(column_names(campaign).values())
    settings = plan.drop_duplicates("point").set_index("point").to_dict("index")
    values = {(row.point, row.baseline, row.measure): row for row in corrected(differences, measures).itertuples()}
    rows = []
    for point, baseline in sorted({(row.point, row.baseline) for row in differences.itertuples()}):
        mine = settings[point]
        cells = [*(Cell(_setting(mine[name])) for name in swept), Cell(f"{mine['protocol']} − {campaign.baseline}")]
        for name in measures:
            it: Any = values.get((point, baseline, name))
            if it is None:
                cells.append(Cell("–"))
                continue
            tone = _tone(name, it.mean, it.certain)
            cells.append(Cell(with_interval(it.mean, it.low, it.high), tone, percent(it.relative)))
        rows.append(cells)
    headings = [*(setting_title(name) for name in swept), "difference", *map(heading, measures)]
    return Grid(headings, rows, len(swept) + 1)


def _tone(name: str, difference: float, is_certain: bool) -> str:
    better = MEASURES[name].better
    if not is_certain or not better:
        return ""
    return "better" if (difference > 0) == (better == "higher") else "worse"


def heading(name: str) -> str:
    measure = MEASURES[name]
    return f"{measure.title}, {measure.unit}" if measure.unit else measure.title


def _setting(value: Any) -> str:
    return "–" if value is None or value != value else str(value)
