"""Progress of a campaign on stderr: a bar on a terminal, otherwise a line every few seconds."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic

import rich.progress
from rich.console import Console

from roamcast.campaign.conduct import Progress

LINE_EVERY_S = 5.0
PACE_RUNS = 4  # that must have finished before the time left is estimated: the first ones wait for Spark


@contextmanager
def showing_progress() -> Iterator[Callable[[Progress], None]]:
    """Shows each report that it is given."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _Lines()
        return
    columns = (
        rich.progress.TextColumn("{task.fields[note]}"),
        rich.progress.BarColumn(),
        rich.progress.MofNCompleteColumn(),
        rich.progress.TimeElapsedColumn(),
    )
    with rich.progress.Progress(*columns, console=console) as bar:
        task = bar.add_task("runs", note="runs")
        clock = TimeLeft()

        def show(progress: Progress) -> None:
            finished = progress.done + progress.simulated
            bar.update(task, total=progress.planned, completed=finished, note=clock.note(progress))

        yield show


class TimeLeft:
    """Estimates the time left from the pace since the first report; runs done before that do not count."""

    def __init__(self, now: Callable[[], float] = monotonic) -> None:
        self._now = now
        self._began: tuple[float, int] | None = None

    def left_s(self, progress: Progress) -> float | None:
        finished = progress.done + progress.simulated
        if self._began is None:
            self._began = self._now(), finished
        began_s, before = self._began
        if finished - before < PACE_RUNS:
            return None
        return (self._now() - began_s) / (finished - before) * max(0, progress.planned - finished)

    def note(self, progress: Progress) -> str:
        left_s = self.left_s(progress)
        left = "" if left_s is None else f", {_duration(left_s)} left"
        finished = progress.done + progress.simulated
        return f"{finished} done, {progress.failed} failed, {progress.running} running{left}"


class _Lines:
    def __init__(self) -> None:
        self._clock = TimeLeft()
        self._last: float | None = None

    def __call__(self, progress: Progress) -> None:
        note = self._clock.note(progress)
        over = progress.done == progress.planned
        if over or self._last is None or monotonic() - self._last >= LINE_EVERY_S:
            self._last = monotonic()
            print(f"roamcast: {progress.planned} runs: {note}", file=sys.stderr, flush=True)


def _duration(seconds: float) -> str:
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
