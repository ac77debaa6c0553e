"""What a user wants: demands such as `delivery>=0.95`, and a measure to minimise, by short names."""

import re
from typing import Literal

import msgspec

from roamcast.errors import ConfigurationError
from roamcast.trace.measures import MEASURES

SHORT_NAMES = {
    "delivery": "delivery_ratio",
    "delivery_reachable": "delivery_ratio_reachable",
    "latency": "latency_ms_mean",
    "latency_p50": "latency_ms_p50",
    "latency_p95": "latency_ms_p95",
    "latency_p99": "latency_ms_p99",
    "airtime": "airtime_per_delivery_ms",
    "frames": "frames_per_delivery",
    "bytes": "bytes_per_delivery",
    "maintenance": "maintenance_ms_per_node_s",
    "fairness": "load_fairness",
    "hops": "hops_mean",
    "stretch": "stretch_mean",
    "chains": "chain_completion_ratio",
    "chain_time": "chain_time_ms_mean",
}
"""Short name -> measure; the measures' own names are understood as well."""

_DEMAND = re.compile(r"\s*(\w+)\s*(>=|<=)\s*(\S+)\s*")


class Demand(msgspec.Struct, frozen=True):
    """A bound on the mean of a measure, in its unit; the bound itself is allowed."""

    measure: str
    relation: Literal[">=", "<="]
    bound: float

    def margin(self, value: float) -> float:
        """How far inside the bound a value is; negative outside."""
        return value - self.bound if self.relation == ">=" else self.bound - value

    def __str__(self) -> str:
        return f"{short_name(self.measure)} {self.relation} {self.bound:g}{_unit(self.measure)}"


def parse_demand(text: str) -> Demand:
    found = _DEMAND.fullmatch(text)
    if found is None:
        raise ConfigurationError(f"--want: {text!r} is not a demand; write it as in delivery>=0.95 or latency_p95<=200")
    name, relation, number = found.groups()
    measure = _measure("--want", name)
    try:
        bound = float(number)
    except ValueError:
        raise ConfigurationError(f"--want: {number!r} in {text!r} is not a number") from None
    if not abs(bound) < float("inf"):
        raise ConfigurationError(f"--want: {number!r} in {text!r} must be finite")
    return Demand(measure, ">=" if relation == ">=" else "<=", bound)


def parse_objective(name: str) -> str:
    """The measure to minimise."""
    measure = _measure("--minimise", name)
    if MEASURES[measure].better != "lower":
        allowed = ", ".join(short for short, full in SHORT_NAMES.items() if MEASURES[full].better == "lower")
        raise ConfigurationError(f"--minimise: {name!r} is no cost; allowed: {allowed}")
    return measure


def short_name(measure: str) -> str:
    return next((short for short, full in SHORT_NAMES.items() if full == measure), measure)


def _measure(option: str, name: str) -> str:
    measure = SHORT_NAMES.get(name, name)
    if measure not in MEASURES:
        raise ConfigurationError(f"{option}: {name!r} is not a measure; allowed: {', '.join(SHORT_NAMES)}")
    return measure


def _unit(measure: str) -> str:
    unit = MEASURES[measure].unit
    return f" {unit}" if unit else ""
