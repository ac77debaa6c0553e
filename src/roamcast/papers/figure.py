"""What a figure of a paper is made of. See the package's text for how to declare one."""

from collections.abc import Callable, Mapping
from math import inf
from typing import Any, Literal

import msgspec
import pandas as pd
from pyspark.sql import SparkSession

from roamcast.campaign.store import Store
from roamcast.emulator.emulation import EmulationSettings

Scale = Literal["quick", "sparse", "paper"]
"""Smaller networks and shorter runs; the paper's networks and durations at fewer points of the axis; all of it."""

Platform = Literal["simulator", "emulator"]
Tables = dict[str, Any]
"""A campaign as a campaign file has it."""

X = float | str
"""A place on the horizontal axis: a number, or a name where a figure compares things."""

Values = dict[str, dict[X, float]]
"""Curves by label: x -> value."""

PAPER_NOTE = "The paper's own sizes, durations and settings."
EMULATED = "-emulated"
"""What the names of figures on the emulator end with."""

Statistic = Callable[[Values], float]
Places = Callable[[Values], Mapping[Any, float]]
"""Several values of the same kind, each computed from means: a lead at every x, say."""

Shape = Callable[[Values], Values]
Rows = Callable[[SparkSession, Store], pd.DataFrame]
"""Columns `curve`, `x`, `seed`, `value` and perhaps `weight`; values of the same curve, x and seed are averaged."""


class Curve(msgspec.Struct, frozen=True):
    """Raw values: a measure of one contender over x."""

    label: str
    contender: str  # its label in the campaign
    measure: str  # of `roamcast.trace.measures`
    where: dict[str, str] = {}  # swept setting -> the value it must have, as the plan writes it
    weight: tuple[str, ...] = ()  # measures whose product says how much a run counts; else all count the same


class Bounds(msgspec.Struct, frozen=True):
    """Where a statistic must lie, bounds included."""

    low: float = -inf
    high: float = inf

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high

    def __str__(self) -> str:
        if self.low == -inf:
            return f"at most {self.high:.4g}"
        return f"at least {self.low:.4g}" if self.high == inf else f"{self.low:.4g} to {self.high:.4g}"


class Extreme:
    """A statistic that is the least or the largest of several values, as "at every x" or "at some x" ask for.

    Chance makes the least of several estimates too low and the largest too high. Its interval allows for that
    (`estimate`), which a plain function that takes the minimum cannot say.
    """

    def __init__(self, which: Literal["least", "largest"], places: Places) -> None:
        self.of = min if which == "least" else max
        self.which = which
        self.places = places

    def __call__(self, values: Values) -> float:
        return float(self.of(self.places(values).values()))


def least(places: Places) -> Extreme:
    return Extreme("least", places)


def largest(places: Places) -> Extreme:
    return Extreme("largest", places)


def at_least(low: float) -> Bounds:
    return Bounds(low=low)


def at_most(high: float) -> Bounds:
    return Bounds(high=high)


def between(low: float, high: float) -> Bounds:
    return Bounds(low, high)


class Claim(msgspec.Struct, frozen=True):
    """Something that the paper says, as a number that can be computed and where it must lie."""

    statement: str  # in our own words
    reported: str  # the paper's value, as it gives it
    statistic: Statistic
    region: Bounds
    finding: str = ""  # what was found about why it fails or stays undecided
    of_paper: bool = True  # false: a comparison of our own, shown beside the paper's claims, and not counted


def as_measured(values: Values) -> Values:
    """Raw values shown as they are."""
    return values


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """One figure of a paper, or of the arena."""

    id: str  # as users type it: somer-6.5
    title: str
    paper: str  # name of the paper's module
    section: str  # where the paper shows it
    setting: str  # what is compared under which conditions, in our own words; deviations from the paper included
    quick: Tables
    paper_scale: Tables
    quick_note: str  # what `quick` leaves out of networks, durations and settings
    sparse: Tables | None = None  # where all points of the axis take long
    sparse_note: str = ""  # what `sparse` leaves out
    runs_of: str = ""  # the figure whose runs these are, if another one has the same campaign
    curves: tuple[Curve, ...] = ()
    x: str = ""  # column of the plan; empty if it comes from elsewhere
    rows: Rows | None = None  # instead of `curves`
    shown: Shape = as_measured
    x_title: str
    y_title: str
    x_format: str = ""  # as Vega knows them: "%" shows 0.09 as 9%
    y_format: str = ""
    mark: Literal["line", "bar"] = "line"
    claims: tuple[Claim, ...] = ()
    emulation: EmulationSettings | None = None  # None: it is simulated

    @property
    def command(self) -> list[str]:
        """What a user types to reproduce it, but for the scale."""
        if self.emulation is None:
            return ["roamcast", "reproduce", self.id]
        return ["roamcast", "reproduce", self.id.removesuffix(EMULATED), "--on", "emulator"]

    def nearest(self, scale: Scale) -> Scale:
        """The scale itself, or the paper's for figures without a sparse one."""
        return "paper" if scale == "sparse" and self.sparse is None else scale

    def campaign(self, scale: Scale) -> Tables:
        """The campaign with as many seeds as the paper has runs, whatever the scale: the most that are simulated."""
        by_scale = {"quick": self.quick, "sparse": self.sparse or self.paper_scale, "paper": self.paper_scale}
        title = f"{self.runs_of or self.id} ({scale})"
        return {"title": title} | by_scale[scale] | {"seeds": _seeds(self.paper_scale)}

    def scale_note(self, scale: Scale) -> str:
        """What a scale leaves out."""
        notes = {"quick": self.quick_note, "sparse": self.sparse_note, "paper": PAPER_NOTE}
        return notes[scale]

    @property
    def runs_of_paper(self) -> int:
        """How many runs the paper made at each point."""
        return len(_seeds(self.paper_scale))


def _seeds(tables: Tables) -> list[int]:
    seeds: int | list[int] = tables["seeds"]
    return list(range(1, seeds + 1)) if isinstance(seeds, int) else seeds
