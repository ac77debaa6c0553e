"""Which protocol wins where: for every place and measure, the contenders that may be the best.

If a single one is left after the others were ruled out (see `analysis.comparisons`), it has won; otherwise those that
are left share the place. Limits do not compete.
"""

import pandas as pd

from roamcast.analysis.comparisons import Contest, contest
from roamcast.analysis.intervals import Observations, mean_interval
from roamcast.campaign.file import Campaign
from roamcast.report.contenders import limits
from roamcast.report.places import contender_names, place_titles
from roamcast.report.tables import Cell, Grid, heading, named
from roamcast.report.wording import with_interval
from roamcast.trace.measures import MEASURES


def winners_table(
    campaign: Campaign, plan: pd.DataFrame, runs: pd.DataFrame, measures: list[str], *, units: bool = False
) -> Grid:
    """One row per place. Empty if there are no contenders to compare. With `units`, its headings have them."""
    compared = [name for name in measures if MEASURES[name].better]
    competing = plan[~plan["protocol"].isin(limits(campaign))]
    if competing["protocol"].nunique() < 2 or not compared:
        return Grid([], [], 1)
    names = contender_names(campaign, competing)
    rows = []
    for place, title in place_titles(campaign, competing).items():
        here = runs[runs["point"].isin(competing.loc[competing["place"] == place, "point"])]
        rows.append([title, *(_cell(here, names, measure) for measure in compared)])
    return Grid(["", *(heading(name) if units else MEASURES[name].title for name in compared)], rows, 1)


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
        if not result.behind:
            return Cell("open", "", f"none ruled out; best mean {mean}, {result.best}")
        return named(winners, f"best mean {mean}")
    rival = result.runner_up
    if rival is None:
        return Cell(result.best, "", mean)
    margin = result.margins[rival]
    ahead = with_interval(margin.mean, margin.low, margin.high)
    return Cell(result.best, "better", f"{mean}; {ahead} ahead of {rival}")
