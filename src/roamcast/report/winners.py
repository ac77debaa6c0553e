"""Which protocol wins where: for every place and measure, the contenders that may be the best.

If a single one is left after the others were ruled out (see `analysis.comparisons`), it has won; otherwise those that
are left share the place. Limits do not compete.
"""

import pandas as pd

from roamcast.analysis.comparisons import Contest, contest
from roamcast.analysis.intervals import Observations, mean_interval
from roamcast.campaign.file import Campaign
from roamcast.campaign.plan import SWEEPS, column_names
from roamcast.report.pareto import BASE, limits
from roamcast.report.tables import Cell, Grid
from roamcast.report.wording import setting_value, with_interval
from roamcast.trace.measures import MEASURES

NAMES_MAX = 3


def winners_table(campaign: Campaign, plan: pd.DataFrame, runs: pd.DataFrame, measures: list[str]) -> Grid:
    """One row per place. Empty if there are no contenders to compare."""
    compared = [name for name in measures if MEASURES[name].better]
    competing = plan[~plan["protocol"].isin(limits(campaign))]
    if competing["protocol"].nunique() < 2 or not compared:
        return Grid([], [], 1)
    names = _contenders(campaign, competing)
    rows = []
    for place, title in _places(campaign, competing).items():
        here = runs[runs["point"].isin(competing.loc[competing["place"] == place, "point"])]
        rows.append([title, *(_cell(here, names, measure) for measure in compared)])
    return Grid(["", *(MEASURES[name].title for name in compared)], rows, 1)


def _cell(runs: pd.DataFrame, names: dict[int, str], measure: str) -> Cell:
    values: dict[str, Observations] = {}
    for point, mine in runs.groupby("point", sort=True):
        known = pd.to_numeric(mine.set_index("seed")[measure]).dropna()
        if len(known):
            values[names[int(str(point))]] = {int(str(seed)): float(value) for seed, value in known.items()}
    better = MEASURES[measure].better
    if not values or not better:
        return Cell("–")
    return _told(contest(values, better), values, MEASURES[measure].most)


def _told(result: Contest, values: dict[str, Observations], most: float | None) -> Cell:
    of_best = mean_interval(values[result.best].values(), most=most)
    mean = with_interval(of_best.mean, of_best.low, of_best.high)
    if result.level:
        winners = [result.best, *result.level]
        hidden = len(winners) - NAMES_MAX
        text = ", ".join(winners[:NAMES_MAX]) + (f" and {hidden} more" if hidden > 0 else "")
        if not result.behind:
            return Cell("open", "", f"nobody ruled out; best mean {mean}, {result.best}")
        return Cell(text, "", f"best mean {mean}")
    rival = result.runner_up
    if rival is None:
        return Cell(result.best, "", mean)
    margin = result.margins[rival]
    ahead = with_interval(margin.mean, margin.low, margin.high)
    return Cell(result.best, "better", f"{mean}; {ahead} ahead of {rival}")


def _contenders(campaign: Campaign, plan: pd.DataFrame) -> dict[int, str]:
    """What each point is called at its place: its label, with its own swept parameters if it has any."""
    columns = {name for path, name in column_names(campaign).items() if not path.startswith("scenario.")}
    names = {}
    for row in plan.drop_duplicates("point").to_dict("records"):
        own = [setting_value(str(name), row[name]) for name in row if name in columns and row[name] is not None]
        names[int(row["point"])] = ", ".join([str(row["protocol"]), *own])
    return names


def _places(campaign: Campaign, plan: pd.DataFrame) -> dict[int, Cell]:
    """What each place is called: what is different there from the place that all grids share, or all that is swept."""
    swept = [name for path, name in column_names(campaign).items() if path.startswith("scenario.")]
    leading = [name for name in swept if name in _leaders(campaign)]
    places = plan.drop_duplicates("place").set_index("place").sort_index()
    shared: dict[str, object] = {}
    if SWEEPS in places:
        meeting = places[places[SWEEPS].map(lambda text: len(text.split())) == len(campaign.sweeps)]
        shared = {str(name): meeting[name].iloc[0] for name in leading} if len(meeting) else {}
    titles = {}
    for place, row in places.iterrows():
        own = [setting_value(name, row[name]) for name in leading if row[name] != shared.get(name)]
        everything = ", ".join(setting_value(name, row[name]) for name in leading)
        titles[int(str(place))] = Cell(", ".join(own)) if own else Cell(BASE, note=everything)
    return titles


def _leaders(campaign: Campaign) -> set[str]:
    """The columns that name a step of an axis; tied settings follow the first of them."""
    names = column_names(campaign)
    return {names[axis.paths[0]] for axes in campaign.sweeps for axis in axes}
