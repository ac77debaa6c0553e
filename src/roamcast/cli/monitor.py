"""`roamcast monitor`: live or emulated nodes, watched through the traces that they write."""

import time
from pathlib import Path
from typing import Annotated

import typer
from rich.live import Live
from rich.table import Table

from roamcast.cli.output import console, print_json
from roamcast.report.monitor import PATIENCE_S, WINDOW_S, Snapshot, TraceWatch, clock, page, short
from roamcast.trace.tail import require_places

SHOWN = 15
_COLUMNS = (
    *("from", "events", "expected", "delivered", "within 250 ms", "p50, ms", "p95, ms", "p99, ms"),
    *("frames", "dropped", "broken", "pending"),
)


def monitor(
    directories: Annotated[
        list[Path], typer.Argument(metavar="DIR...", help="Trace directories of nodes, or directories with such below.")
    ],
    window: Annotated[float, typer.Option(min=0.1, help="Seconds of publications in one window.")] = WINDOW_S,
    patience: Annotated[float, typer.Option(min=0.0, help="Seconds after which late rows are not waited for.")] = (
        PATIENCE_S
    ),
    every: Annotated[float, typer.Option(min=0.1, help="Seconds between looks.")] = 2.0,
    html: Annotated[Path | None, typer.Option("--page", help="Keep this HTML page up to date, too.")] = None,
    once: Annotated[bool, typer.Option("--once", help="Look once instead of until all nodes have ended.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Answer with one JSON object per look.")] = False,
) -> None:
    """Watch delivery, latency, frames and broken expectations of nodes while they run.

    Ends when every node has ended; Ctrl-C ends it earlier.
    """
    watch = TraceWatch(require_places(directories), window_s=window, patience_s=patience)
    here = console()
    with Live(console=here, auto_refresh=False) if here.is_terminal and not as_json else _Lines(as_json) as shown:
        while True:
            state = watch.look()
            if html is not None:
                _write(html, page(state, refresh_s=every))
            if isinstance(shown, _Lines):
                shown.tell(state)
            else:
                shown.update(_table(state), refresh=True)
            if once or state.is_over:
                break
            time.sleep(every)


class _Lines:
    """Without a terminal: one object or a few lines per look."""

    def __init__(self, as_json: bool) -> None:
        self._as_json = as_json

    def __enter__(self) -> "_Lines":
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def tell(self, state: Snapshot) -> None:
        if self._as_json:
            print_json(state)
        else:
            console().print(_table(state))


def _table(state: Snapshot) -> Table:
    settled = "" if state.watermark_s is None else f"; settled up to {clock(state.watermark_s)}"
    total = f"delivery {short(state.totals['delivery_ratio'])}, p95 {short(state.totals['latency_ms_p95'])} ms"
    title = f"{state.nodes} nodes, {state.ended} ended; {state.rows:,} rows; {total}{settled}"
    table = Table(*_COLUMNS, title=title, title_justify="left")
    for window in state.windows[-SHOWN:]:
        cells = (window.delivery_ratio, window.within_250ms, window.latency_ms_p50, window.latency_ms_p95)
        counts = (window.frames, window.dropped, window.broken, window.pending)
        table.add_row(
            clock(window.start_s),
            str(window.publications),
            str(window.expected),
            *map(short, (*cells, window.latency_ms_p99)),
            *map(str, counts),
            style="" if window.settled else "dim",
        )
    return table


def _write(path: Path, text: str) -> None:
    """Whole or not at all: a browser may load it at any time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}")
    fresh.write_text(text, encoding="utf-8")
    fresh.replace(path)
