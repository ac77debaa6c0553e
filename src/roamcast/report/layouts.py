"""How the grids of a campaign are laid out in figures: what goes along x, and what makes panels."""

from typing import Any

import pandas as pd

from roamcast.campaign.file import Campaign
from roamcast.campaign.grid import Axis
from roamcast.campaign.plan import SWEEPS, column_names
from roamcast.report.contenders import colours
from roamcast.report.wording import setting_title, setting_value

TICKS_MAX = 12


class Layout:
    """How the axes of a grid are shown: one along x, the others as panels beside each other."""

    def __init__(self, campaign: Campaign, plan: pd.DataFrame, axes: tuple[Axis, ...]) -> None:
        names = column_names(campaign)
        leaders = [names[axis.paths[0]] for axis in axes]  # tied settings follow the first of them
        swept = [name for name in leaders if plan[name].nunique() > 1]
        self.x = max(swept, key=lambda name: (_is_numeric(plan[name]), plan[name].nunique()), default=None)
        self.panels = [name for name in swept if name != self.x]
        self.is_numeric = self.x is not None and _is_numeric(plan[self.x])
        self._points = plan.drop_duplicates("point").set_index("point")
        self.colours = colours(campaign)
        self.protocols = list(self.colours)

    @property
    def ticks(self) -> list[float]:
        """The values along a numeric x, as far as there is room for them."""
        return [] if self.x is None else sorted(set(pd.to_numeric(self._points[self.x].dropna()).tolist()))[:TICKS_MAX]

    @property
    def x_title(self) -> str:
        return "" if self.x is None else setting_title(self.x)

    def placed(self, table: pd.DataFrame) -> pd.DataFrame:
        """`table` with the columns `protocol`, `x` and `panel`, in the order of the campaign file."""
        placed = table.merge(self._points.reset_index(), on="point").sort_values("point", kind="stable")
        placed["x"] = "" if self.x is None else placed[self.x]
        placed["panel"] = [self._panel(row) for row in placed[self.panels].to_dict("records")] if self.panels else ""
        order = {label: place for place, label in enumerate(self.protocols)}
        placed = placed.sort_values("protocol", key=lambda labels: labels.map(order), kind="stable")
        return self._spread(placed)

    def _panel(self, row: dict[Any, Any]) -> str:
        return ", ".join(setting_value(name, value) for name, value in row.items() if value is not None)

    def last(self, placed: pd.DataFrame) -> pd.DataFrame:
        """The rows at the last value along x."""
        return placed if self.x is None else placed[placed["x"] == self._last(placed["x"])]

    @property
    def last_title(self) -> str:
        return "" if self.x is None else setting_value(self.x, self._points[self.x].dropna().iloc[-1])

    def _last(self, values: "pd.Series[Any]") -> Any:
        return values.max() if self.is_numeric else values.iloc[-1]

    def _spread(self, placed: pd.DataFrame) -> pd.DataFrame:
        """A contender without the swept parameter is the same all along x."""
        if self.x is None or not placed["x"].isna().any():
            everywhere = placed
        else:
            values = placed["x"].dropna().unique()
            constant = placed[placed["x"].isna()].drop(columns="x").merge(pd.DataFrame({"x": values}), how="cross")
            everywhere = pd.concat([placed[placed["x"].notna()], constant])
        return everywhere.assign(x=pd.to_numeric(everywhere["x"])) if self.is_numeric else everywhere


def layouts_of(campaign: Campaign, plan: pd.DataFrame) -> list[Layout]:
    """One per grid."""
    if SWEEPS not in plan:
        return [Layout(campaign, plan, campaign.sweeps[0])]
    return [Layout(campaign, plan[_in_sweep(plan, at)], axes) for at, axes in enumerate(campaign.sweeps)]


def common_layout(campaign: Campaign, plan: pd.DataFrame) -> Layout:
    """What stands for the whole where one grid is enough: the points that all grids share, or the first grid."""
    if SWEEPS in plan:
        memberships = [_in_sweep(plan, at) for at in range(len(campaign.sweeps))]
        shared = plan[[all(words) for words in zip(*memberships, strict=True)]]
        if not shared.empty:
            return Layout(campaign, shared, ())
    return layouts_of(campaign, plan)[0]


def _in_sweep(plan: pd.DataFrame, number: int) -> "pd.Series[bool]":
    return plan[SWEEPS].map(lambda text: str(number) in text.split())


def _is_numeric(values: "pd.Series[Any]") -> bool:
    return bool(pd.to_numeric(values.dropna(), errors="coerce").notna().all())
