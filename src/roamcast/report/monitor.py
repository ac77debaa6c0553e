"""What a live network does, window by window, while its traces grow.

A `TraceWatch` reads the files that nodes have written since the last look and keeps their rows. All its answers follow
from these rows by the same relations and measures as everywhere else. So when all nodes have ended, its totals are
those of the finished traces.

A *window* holds the publications of some seconds. Nodes write their traces from time to time, so a window is incomplete
for a while. The *watermark* is the time up to which rows are believed to be there: the latest row of any node less
`patience_s`, as Spark has it, so that a silent node does not hold up the others. When all nodes have ended, no more
rows will come. A window that ends before the watermark is *settled*: an expected pair that has not arrived by then is a
*broken expectation*; before that it is only pending. Rows that come later still count.
"""

from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jinja2
import msgspec
import numpy as np
import pyarrow as pa

from roamcast.analysis.stream import trace_rows
from roamcast.trace.arrow import SCHEMA
from roamcast.trace.evaluation import Evaluator, percentile
from roamcast.trace.measures import RUN_MEASURES
from roamcast.trace.relations import TraceRelations
from roamcast.trace.tail import START, Position, files_between, latest

WINDOW_S = 10.0
PATIENCE_S = 10.0
DEADLINE_S = 0.25
_IGNORED = ("position", "contact", "structure", "fault", "run", "measure")
_TEMPLATES = Path(__file__).with_name("templates")


class Window(msgspec.Struct, frozen=True):
    start_s: float  # on the traces' own clock
    settled: bool
    publications: int
    expected: int
    delivered: int
    delivery_ratio: float | None
    within_250ms: float | None
    latency_ms_p50: float | None
    latency_ms_p95: float | None
    latency_ms_p99: float | None
    frames: int  # sent in these seconds
    dropped: int  # events dropped by protocols in these seconds
    broken: int  # expected, settled, not arrived
    pending: int  # expected, not settled, not arrived yet


class Snapshot(msgspec.Struct, frozen=True):
    """What is known at one look."""

    nodes: int  # that have written anything
    ended: int
    rows: int
    watermark_s: float | None
    windows: tuple[Window, ...]
    totals: dict[str, float | None]  # every measure of `trace.measures`, over all rows so far

    @property
    def is_over(self) -> bool:
        return 0 < self.nodes == self.ended


class TraceWatch:
    """Follows the traces below some places."""

    def __init__(self, places: Iterable[Path], *, window_s: float = WINDOW_S, patience_s: float = PATIENCE_S) -> None:
        self._places = list(places)
        self._window_s = window_s
        self._patience_s = patience_s
        self._position: Position = START
        self._tables: list[pa.Table] = []
        self._latest_s: float = -np.inf  # of all rows
        self._traces: set[str] = set()
        self._ended: set[str] = set()

    def look(self) -> Snapshot:
        """Reads what is new, and says how things stand."""
        end = latest(self._places)
        for kind, path in files_between(self._position, end):
            rows = trace_rows(kind, str(path))
            trace = str(path.parent.parent)
            self._traces.add(trace)
            self._latest_s = max(self._latest_s, float(np.max(rows["t"].to_numpy(), initial=-np.inf)))
            if kind == "end":
                self._ended.add(trace)
            if kind not in _IGNORED:
                self._tables.append(rows)
        self._position = end
        return self._state()

    def _state(self) -> Snapshot:
        table = pa.concat_tables([SCHEMA.empty_table(), *self._tables])
        self._tables = [table]
        relations = TraceRelations.of_trace(table)
        evaluator = Evaluator(relations)
        watermark_s = self._watermark_s()
        return Snapshot(
            nodes=len(self._traces),
            ended=len(self._ended),
            rows=len(table),
            watermark_s=watermark_s if np.isfinite(watermark_s) else None,
            windows=tuple(self._windows(relations, watermark_s)),
            totals={name: evaluator.value(measure.value) for name, measure in RUN_MEASURES.items()},
        )

    def _watermark_s(self) -> float:
        """Infinite once all nodes have ended."""
        is_over = 0 < len(self._traces) == len(self._ended)
        return np.inf if is_over else self._latest_s - self._patience_s

    def _windows(self, relations: TraceRelations, watermark_s: float) -> list[Window]:
        pairs = relations("pairs")
        pairs = pairs.taken(np.flatnonzero(pairs.numbers("expected")))
        of_pair = self._numbers_of(pairs.numbers("published_s"))
        of_event, of_frame, of_drop = (
            self._numbers_of(relations(kind).numbers("t")) for kind in ("published", "frame", "dropped")
        )
        frames = relations("frame").numbers("count")
        arrived = pairs.numbers("arrivals") > 0
        latency_s = pairs.numbers("latency_s")
        found = []
        for number in np.unique(np.concatenate((of_pair, of_event, of_frame, of_drop))).tolist():
            mine = of_pair == number
            met = np.sort(1000 * latency_s[mine & arrived])
            expected, delivered = int(mine.sum()), len(met)
            start_s = number * self._window_s
            settled = start_s + self._window_s <= watermark_s
            found.append(
                Window(
                    start_s=start_s,
                    settled=settled,
                    publications=int((of_event == number).sum()),
                    expected=expected,
                    delivered=delivered,
                    delivery_ratio=delivered / expected if expected else None,
                    within_250ms=int((met <= 1000 * DEADLINE_S).sum()) / expected if expected else None,
                    latency_ms_p50=percentile(met, 50),
                    latency_ms_p95=percentile(met, 95),
                    latency_ms_p99=percentile(met, 99),
                    frames=int(frames[of_frame == number].sum()),
                    dropped=int((of_drop == number).sum()),
                    broken=expected - delivered if settled else 0,
                    pending=0 if settled else expected - delivered,
                )
            )
        return found

    def _numbers_of(self, times_s: Any) -> Any:
        return np.floor(times_s / self._window_s)


def page(state: Snapshot, now: datetime | None = None, *, refresh_s: float | None = None) -> str:
    """One HTML page that needs no network. While the network lives, a browser loads it again by itself."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"clock": clock, "short": short}
    return environment.get_template("monitor.html").render(
        state=state,
        style=(_TEMPLATES / "campaign.css").read_text(encoding="utf-8"),
        now=(now or datetime.now(UTC)).strftime("%Y-%m-%d %H:%M:%S UTC"),
        refresh_s=None if state.is_over else refresh_s,
        measures=[(RUN_MEASURES[name], value) for name, value in state.totals.items() if value is not None],
    )


def clock(t_s: float) -> str:
    """A time of a live trace as the time of day, one of a simulated trace in seconds."""
    return datetime.fromtimestamp(t_s, UTC).strftime("%H:%M:%S") if t_s > 1e8 else f"{t_s:g} s"


def short(value: float | None) -> str:
    return "–" if value is None else f"{value:,.4g}" if abs(value) < 10_000 else f"{value:,.0f}"
