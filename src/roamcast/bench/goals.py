"""What was asked of the simulator's speed, and whether the measurements hold it."""

from typing import NamedTuple

from roamcast.bench.forms import Forms
from roamcast.bench.peers import COMPILED, INTERPRETED, LIMIT, Comparison, flood_title

NODES = 250
SMALLEST, LARGEST = 50, 1000
GIGABYTE_MIB = 1e9 / 2**20


class BenchGoal(NamedTuple):
    what: str
    required: float
    measured: float | None  # None: it was not measured
    at_least: bool = False  # otherwise at most
    unit: str = ""

    @property
    def verdict(self) -> str:
        if self.measured is None:
            return "not measured"
        held = self.measured >= self.required if self.at_least else self.measured <= self.required
        return "held" if held else "not held"

    @property
    def requirement(self) -> str:
        return f"{'at least' if self.at_least else 'at most'} {self.required:.4g}{self.unit}"

    @property
    def figure(self) -> str:
        return "–" if self.measured is None else f"{self.measured:.4g}{self.unit}"


def goals(comparison: Comparison | None, forms: Forms | None) -> list[BenchGoal]:
    return [
        BenchGoal(f"compiled against ns-3, {NODES} nodes", 100, _faster(comparison, COMPILED), True, " times"),
        BenchGoal("compiled against ns-3, unicasts", 60, _faster_unicasts(comparison), True, " times"),
        BenchGoal("compiled against the C++ limit, µs per transmission", 4, _above_limit(comparison), unit=" times"),
        BenchGoal(f"interpreted against ns-3, {NODES} nodes", 12, _faster(comparison, INTERPRETED), True, " times"),
        *(
            BenchGoal(f"{name}: µs per transmission, {LARGEST} nodes against {SMALLEST}", 2, growth(comparison, name))
            for name in (COMPILED, INTERPRETED)
        ),
        *(
            BenchGoal(f"compiled against interpreted, {pair.protocol}", 3, pair.ratio, True, " times")
            for pair in (forms.pairs if forms else ())
        ),
        BenchGoal(
            "SOMER, 250 nodes, 1000 s, compiled", 6, forms.long.wall_s if forms and forms.long else None, unit=" s"
        ),
        BenchGoal("memory of a run with 1000 nodes", GIGABYTE_MIB, _peak_mib(comparison, forms), unit=" MiB"),
    ]


def growth(comparison: Comparison | None, simulator: str) -> float | None:
    """How much more a transmission costs in the largest network than in the smallest."""
    if comparison is None:
        return None
    small = comparison.find(flood_title(SMALLEST), simulator)
    large = comparison.find(flood_title(LARGEST), simulator)
    return large.us_per_transmission / small.us_per_transmission if small and large else None


def _faster(comparison: Comparison | None, simulator: str) -> float | None:
    measurement = comparison and comparison.find(flood_title(NODES), simulator)
    return comparison.times_faster(measurement) if comparison and measurement else None


def _faster_unicasts(comparison: Comparison | None) -> float | None:
    """Than ns-3, under the load where we are least ahead."""
    rows = comparison.measurements if comparison else ()
    unicasts = [row for row in rows if row.simulator == COMPILED and row.data_frames_per_packet is not None]
    ratios = [comparison.times_faster(row) for row in unicasts] if comparison else []
    return min((ratio for ratio in ratios if ratio is not None), default=None)


def _above_limit(comparison: Comparison | None) -> float | None:
    """How much more a transmission costs than in plain C++, under the load where it is most."""
    rows = comparison.measurements if comparison else ()
    limits = {row.load: row.us_per_transmission for row in rows if row.simulator == LIMIT}
    compiled = [row for row in rows if row.simulator == COMPILED and row.load in limits]
    return max((row.us_per_transmission / limits[row.load] for row in compiled), default=None)


def _peak_mib(comparison: Comparison | None, forms: Forms | None) -> float | None:
    """The highest of all runs of that size, whichever the protocol and form."""
    peaks = [forms.large.peak_mib] if forms and forms.large else []
    for measurement in comparison.measurements if comparison else ():
        if measurement.nodes == LARGEST and measurement.peak_mib is not None:
            peaks.append(measurement.peak_mib)
    return max(peaks, default=None)
