"""What contenders and places are called in reports."""

import pandas as pd

from roamcast.campaign.file import Campaign
from roamcast.campaign.plan import SWEEPS, column_names
from roamcast.report.pareto import BASE
from roamcast.report.tables import Cell
from roamcast.report.wording import setting_value


def contender_names(campaign: Campaign, plan: pd.DataFrame) -> dict[int, str]:
    """What each point is called at its place: its label, with its own swept parameters if it has any."""
    columns = {name for path, name in column_names(campaign).items() if not path.startswith("scenario.")}
    names = {}
    for row in plan.drop_duplicates("point").to_dict("records"):
        own = [setting_value(str(name), row[name]) for name in row if name in columns and row[name] is not None]
        names[int(row["point"])] = ", ".join([str(row["protocol"]), *own])
    return names


def place_titles(campaign: Campaign, plan: pd.DataFrame) -> dict[int, Cell]:
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
