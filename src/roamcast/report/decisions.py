"""Which protocol when: for every place the ones to choose from, by what matters most, and where protocols collapse.

Only protocols that can be deployed compete; limits do not.

- *Delivery*: the best delivery ratio.
- *Speed*: the largest share delivered within 100 ms.
- *Airtime*: the least airtime per delivery among those that hold up there, that is deliver at least `HOLDS_UP` of what
  the best delivers. Otherwise a protocol that delivers to neighbours only would win.

At a place the best one is among those named, with 95 % confidence (`analysis.comparisons`). One that is named alone has
won. A protocol *collapses* at a place where it delivers less than `COLLAPSE` of what the best delivers. Averages over
places would hide that, so overviews leave such places out and name them.
"""

from typing import Any, NamedTuple

import pandas as pd

from roamcast.analysis.comparisons import Contest, contest
from roamcast.analysis.intervals import Observations
from roamcast.campaign.file import Campaign
from roamcast.campaign.plan import SWEEPS
from roamcast.report.contenders import limits
from roamcast.report.layouts import Layout, layouts_of
from roamcast.report.places import contender_names, place_titles
from roamcast.report.tables import Cell, Grid, named
from roamcast.report.wording import number, setting_value
from roamcast.trace.measures import MEASURES

DELIVERY, SPEED, AIRTIME = "delivery_ratio", "within_100ms", "airtime_per_delivery_ms"
HOLDS_UP = 0.95
COLLAPSE = 0.7

QUESTIONS = {
    DELIVERY: "delivery matters most",
    SPEED: "delivery within 100 ms matters most",
    AIRTIME: f"airtime matters most, with at least {100 * HOLDS_UP:g} % of the best delivery",
}

BASE_MEASURES = {
    DELIVERY: "delivered",
    SPEED: "within 100 ms",
    AIRTIME: "airtime per delivery",
    "latency_ms_p50": "median latency",
}


class Choice(NamedTuple):
    """Which protocol to choose at a place, by what matters most."""

    result: Contest
    mean: float  # of the best

    @property
    def names(self) -> list[str]:
        return [self.result.best, *self.result.level]


class Decision(NamedTuple):
    place: int
    choices: dict[str, Choice]  # by measure
    collapsed: list[str]


def decisions(campaign: Campaign, plan: pd.DataFrame, runs: pd.DataFrame) -> list[Decision]:
    """One per place, in the order of the plan. None where fewer than two compete, or without the measures."""
    competing = plan[~plan["protocol"].isin(limits(campaign))]
    if competing["protocol"].nunique() < 2 or any(name not in runs for name in QUESTIONS):
        return []
    names = contender_names(campaign, competing)
    found = []
    for place in competing["place"].drop_duplicates().sort_values():
        points = competing.loc[competing["place"] == place, "point"].drop_duplicates()
        values = {name: _observations(runs, points, names, name) for name in QUESTIONS}
        if values[DELIVERY]:
            found.append(_decided(int(place), values))
    return found


def _decided(place: int, values: dict[str, dict[str, Observations]]) -> Decision:
    means = {name: _mean(each) for name, each in values[DELIVERY].items()}
    most = max(means.values())
    holding = [name for name, mean in means.items() if mean >= HOLDS_UP * most]
    choices = {}
    for measure, observed in values.items():
        better = MEASURES[measure].better
        rivals = {name: each for name, each in observed.items() if measure != AIRTIME or name in holding}
        if rivals and better:
            result = contest(rivals, better)
            choices[measure] = Choice(result, _mean(rivals[result.best]))
    return Decision(place, choices, [name for name, mean in means.items() if mean < COLLAPSE * most])


def collapsed_points(campaign: Campaign, plan: pd.DataFrame, runs: pd.DataFrame) -> set[int]:
    """The points at which their protocol collapses."""
    names = contender_names(campaign, plan)
    gone = {(decision.place, name) for decision in decisions(campaign, plan, runs) for name in decision.collapsed}
    rows = plan.drop_duplicates("point")
    return {
        int(point) for point, place in zip(rows["point"], rows["place"], strict=True) if (place, names[point]) in gone
    }


def decision_table(
    campaign: Campaign, plan: pd.DataFrame, runs: pd.DataFrame, *, ends_only: bool = False, names_only: bool = False
) -> Grid:
    """One row a place: what is special there, and who to choose. With `ends_only`, the ends of the sweeps and the place
    that they share. With `names_only`, without figures and collapses."""
    found = decisions(campaign, plan, runs)
    titles = place_titles(campaign, plan)
    shown = _ends(campaign, plan) if ends_only else {each.place for each in found}
    rows = []
    for decision in found:
        if decision.place in shown:
            cells = [_cell(decision.choices.get(measure), measure) for measure in QUESTIONS]
            if names_only:
                cells = [cell._replace(note="") for cell in cells]
            rows.append([titles[decision.place], *cells, Cell(", ".join(decision.collapsed) or "–")])
    columns = ["where", *(f"if {question}" for question in QUESTIONS.values()), "collapse"]
    return Grid(columns[:-1], [row[:-1] for row in rows], 1) if names_only else Grid(columns, rows, 1)


def base_table(campaign: Campaign, plan: pd.DataFrame, runs: pd.DataFrame) -> Grid:
    """Every protocol's means where all sweeps meet, the least airtime first; without variants of one."""
    names = [contender.label for contender in campaign.contenders if contender.label == contender.protocol]
    here = plan[plan["place"].isin(_meeting(campaign, plan)) & plan["protocol"].isin(names)]
    means = runs[runs["run_id"].isin(here["run_id"])].groupby("protocol")[list(BASE_MEASURES)].mean()
    rows = [
        [Cell(f"`{name}`" + (", a limit" if name in limits(campaign) else "")), *map(Cell, _base_figures(mean))]
        for name, mean in means.sort_values(AIRTIME).iterrows()
    ]
    return Grid(["protocol", *BASE_MEASURES.values()], rows, 1)


def _base_figures(mean: "pd.Series[float]") -> list[str]:
    """Shares to the third decimal, costs to the first, with their units."""
    units = {name: MEASURES[name].unit for name in BASE_MEASURES}
    return [f"{mean[name]:.1f} {unit}" if unit else f"{mean[name]:.3f}" for name, unit in units.items()]


def crossed_table(campaign: Campaign, plan: pd.DataFrame, runs: pd.DataFrame, measure: str = AIRTIME) -> Grid:
    """Who to choose where several axes cross: along the columns the first axis, along the rows all others. Empty unless
    the campaign's first grid has several axes."""
    layout = layouts_of(campaign, plan)[0]
    found = {decision.place: decision for decision in decisions(campaign, plan, runs)}
    if not layout.panels or not found:
        return Grid([], [], 1)
    placed = layout.placed(plan.drop_duplicates("place")[["point"]]).sort_values("place", kind="stable")
    values = sorted(placed["x"].unique()) if layout.is_numeric else list(placed["x"].drop_duplicates())
    rows = []
    for title, part in placed.groupby("panel", sort=False):
        places = dict(zip(part["x"], part["place"], strict=True))
        chosen = [found[int(places[x])].choices.get(measure) if x in places else None for x in values]
        rows.append([Cell(str(title)), *(_cell(choice, measure) for choice in chosen)])
    headings = [setting_value(str(layout.x), _axis_value(layout, x)) for x in values]
    return Grid(["", *headings], rows, 1)


def collapse_table(campaign: Campaign, plan: pd.DataFrame, runs: pd.DataFrame) -> Grid:
    """Per protocol and sweep, the values at which it collapses."""
    gone = {(decision.place, name) for decision in decisions(campaign, plan, runs) for name in decision.collapsed}
    layouts = [layout for layout in layouts_of(campaign, plan) if layout.x is not None]
    labels = [contender.label for contender in campaign.contenders if contender.label not in limits(campaign)]
    names = contender_names(campaign, plan)
    rows = []
    for label in labels:
        cells = [_collapses(layout, plan, names, label, gone) for layout in layouts]
        rows.append([Cell(label), *cells])
    return Grid(["", *(layout.x_title for layout in layouts)], rows if gone else [], 1)


def _collapses(
    layout: Layout, plan: pd.DataFrame, names: dict[int, str], label: str, gone: set[tuple[int, str]]
) -> Cell:
    here = plan[plan["protocol"] == label].drop_duplicates("point")
    placed = layout.placed(here[["point"]]).to_dict("records")
    lost = [row for row in placed if (int(row["place"]), names[int(row["point"])]) in gone]
    if not lost:
        return Cell("holds up")
    values = [", ".join(filter(None, (_axis_value(layout, row["x"]), str(row["panel"])))) for row in lost]
    return Cell("everywhere" if len(lost) == len(placed) else f"at {', '.join(values)}", "worse")


def _axis_value(layout: Layout, value: Any) -> str:
    return f"{value:g}" if layout.is_numeric else str(value)


def _ends(campaign: Campaign, plan: pd.DataFrame) -> set[int]:
    """The places at both ends of each sweep, and the one that all share."""
    found: set[int] = set()
    for layout in layouts_of(campaign, plan):
        placed = layout.placed(plan.drop_duplicates("point")[["point"]])
        if layout.x is None:
            found.update(map(int, placed["place"]))
            continue
        order = sorted(placed["x"].unique()) if layout.is_numeric else list(placed["x"].drop_duplicates())
        found.update(map(int, placed.loc[placed["x"].isin([order[0], order[-1]]), "place"]))
    return found | _meeting(campaign, plan)


def _meeting(campaign: Campaign, plan: pd.DataFrame) -> set[int]:
    """The place that all sweeps share, if there is one."""
    if SWEEPS not in plan:
        return set()
    meets = plan[SWEEPS].map(lambda text: len(str(text).split()) == len(campaign.sweeps))
    return set(map(int, plan.loc[meets, "place"]))


def _cell(choice: Choice | None, measure: str) -> Cell:
    if choice is None:
        return Cell("–")
    names = choice.names
    figure = _figure(choice.mean, measure)
    next_one = choice.result.runner_up
    if len(names) > 1 or next_one is None:
        return named(names, figure)
    sign = 1 if MEASURES[measure].better == "lower" else -1
    behind = choice.mean + sign * choice.result.margins[next_one].mean
    return Cell(names[0], "better", f"{figure}; next {next_one} {_figure(behind, measure)}")


def _figure(mean: float, measure: str) -> str:
    return f"{number(float(f'{mean:.3g}'))} {MEASURES[measure].unit}".strip()


def _observations(
    runs: pd.DataFrame, points: Any, names: dict[int, str], measure: str
) -> dict[str, Observations]:
    values: dict[str, Observations] = {}
    for point, mine in runs[runs["point"].isin(points)].groupby("point", sort=True):
        known = pd.to_numeric(mine.set_index("seed")[measure]).dropna()
        if len(known):
            values[names[int(str(point))]] = {int(str(seed)): float(value) for seed, value in known.items()}
    return values


def _mean(values: Observations) -> float:
    return sum(values.values()) / len(values)
