"""What a user wants: demands such as `delivery>=0.95`, `within(250ms)>=0.9`, `energy<=40` or `capacity>=2`, and a
measure to minimise or to maximise.

A *capacity* of 2 means that 95 % arrive when every publisher publishes twice per second. So the demand is one on
delivery, in the same network at that rate.

Measures may be called by their short names (`trace.measures`) or in full. A demand that no run could ever meet, or that
every run meets, is probably a typing error (delivery is a share, not a percentage) and is refused.
"""

import re
from typing import Final, Literal

import msgspec

from roamcast.errors import ConfigurationError
from roamcast.trace.measures import RUN_MEASURES, Measure

SHORT_NAMES = {measure.short: name for name, measure in RUN_MEASURES.items() if measure.short}
"""Short name -> measure; the measures' own names are understood as well."""

_DEMAND = re.compile(r"\s*(\w+(?:\s*\(\s*\w+\s*\))?)\s*(>=|<=)\s*(\S+)\s*")


CAPACITY: Final = "capacity"
CAPACITY_DELIVERY: Final = 0.95
"""What must arrive at a rate for a protocol to have that capacity."""


DEFAULT_OBJECTIVE: Final = "delivery"


class Demand(msgspec.Struct, frozen=True):
    """A bound on the mean of a measure, in its unit; the bound itself is allowed."""

    measure: str
    relation: Literal[">=", "<="]
    bound: float
    rate_per_s: float | None = None  # of each publisher, where it is not the scenario's own

    @property
    def key(self) -> str:
        """What the observations of this measure are filed under."""
        return self.measure if self.rate_per_s is None else f"{self.measure}@{self.rate_per_s:g}"

    def margin(self, value: float) -> float:
        """How far inside the bound a value is; negative outside."""
        return value - self.bound if self.relation == ">=" else self.bound - value

    def __str__(self) -> str:
        if self.rate_per_s is not None:
            return f"{CAPACITY} >= {self.rate_per_s:g} per s"
        return f"{short_name(self.measure)} {self.relation} {self.bound:g}{_unit(self.measure)}"


def parse_demand(text: str) -> Demand:
    found = _DEMAND.fullmatch(text)
    if found is None:
        raise ConfigurationError(
            f"--want: {text!r} is not a demand; write it as in delivery>=0.95, within(250ms)>=0.9 or latency_p95<=200"
        )
    name, relation, number = found.groups()
    measure = "delivery_ratio" if name == CAPACITY else _measure("--want", name)
    try:
        bound = float(number)
    except ValueError:
        raise ConfigurationError(f"--want: {number!r} in {text!r} is not a number") from None
    if not abs(bound) < float("inf"):
        raise ConfigurationError(f"--want: {number!r} in {text!r} must be finite")
    if name == CAPACITY:
        if relation != ">=" or bound <= 0:
            raise ConfigurationError(f"--want: {text!r} makes no sense; write capacity>=2 for two events per second")
        return Demand(measure, ">=", CAPACITY_DELIVERY, bound)
    _require_possible(text, name, measure, bound)
    return Demand(measure, ">=" if relation == ">=" else "<=", bound)


def parse_objective(minimise: str | None, maximise: str | None) -> str:
    """The measure to minimise or to maximise; only one of them may be given."""
    if minimise is not None and maximise is not None:
        raise ConfigurationError("--minimise, --maximise: only one can be the aim; make a demand (--want) of the other")
    if minimise is not None:
        return _objective("--minimise", minimise, "lower")
    return _objective("--maximise", maximise or DEFAULT_OBJECTIVE, "higher")


def _objective(option: str, name: str, better: str) -> str:
    measure = _measure(option, name)
    if RUN_MEASURES[measure].better != better:
        allowed = ", ".join(short for short, full in SHORT_NAMES.items() if RUN_MEASURES[full].better == better)
        raise ConfigurationError(f"{option}: {name!r} is not a measure of which {better} is better; allowed: {allowed}")
    return measure


def short_name(measure: str) -> str:
    """Of a measure or of a demand's key."""
    name, _, rate = measure.partition("@")
    short = RUN_MEASURES[name].short or name
    return f"{short} at {rate} per s" if rate else short


def measure_of(key: str) -> Measure:
    """What a demand's key is about."""
    return RUN_MEASURES[key.partition("@")[0]]


def _measure(option: str, name: str) -> str:
    name = "".join(name.split())
    measure = SHORT_NAMES.get(name, name)
    if measure not in RUN_MEASURES:
        also = f", {CAPACITY}" if option == "--want" else ""
        raise ConfigurationError(f"{option}: {name!r} is not a measure; allowed: {', '.join(SHORT_NAMES)}{also}")
    return measure


def _require_possible(text: str, name: str, measure: str, bound: float) -> None:
    most = RUN_MEASURES[measure].most
    if most is None:
        if bound < 0:
            raise ConfigurationError(f"--want: {text!r} asks for {bound:g}, but {name} is never below 0")
    elif not 0 <= bound <= most:
        hint = f"; write {bound / 100:g} for {bound:g} %" if most == 1 < bound <= 100 else ""
        raise ConfigurationError(f"--want: {text!r} asks for {bound:g}, but {name} is a share from 0 to {most:g}{hint}")


def _unit(measure: str) -> str:
    unit = RUN_MEASURES[measure].unit
    return f" {unit}" if unit else ""
