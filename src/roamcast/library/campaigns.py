"""A campaign from Python: the same file, place and results as `roamcast campaign run`."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from roamcast.analysis.analyse import Precision, analyse
from roamcast.campaign.conduct import Conductor, Progress
from roamcast.campaign.session import LOCAL, spark_session
from roamcast.report.campaign_page import write_report


class FailedRun(NamedTuple):
    run_id: str
    error: str
    replay: str  # the command that simulates it again


class CampaignResult(NamedTuple):
    """What a campaign measured. Intervals are those of `docs/statistics.md`."""

    runs: pd.DataFrame  # one row per run: its protocol, seed, swept settings and every measure
    points: pd.DataFrame  # per point of the grid and measure: number of runs, mean, interval
    differences: pd.DataFrame  # the same of the paired differences to the baseline
    failed: list[FailedRun]
    report: str | None  # where the page is


def run_campaign(
    file: str | Path,
    out: str | Path,
    *,
    master: str = LOCAL,
    spark_settings: dict[str, str] | None = None,
    retry_failed: bool = False,
    report: bool = True,
    on_progress: Callable[[Progress], None] = lambda progress: None,
) -> CampaignResult:
    """Simulates whatever of the campaign in `file` is not in `out` yet, and analyses all of it.

    `out` is a directory or a URI. A Spark session that runs already is used and stays; else one is started for the
    time being. Interrupting loses nothing that `on_progress` reported as done: call it again to go on.
    """
    conductor = Conductor(Path(file), out, master=master)
    store = conductor.store
    store.require_writable()
    conductor.refuse_another_campaign()
    with spark_session(master, trace_bytes=store.trace_bytes(), settings=spark_settings) as session:
        ending = conductor.conduct(
            session, precise=Precision(session, store), on_progress=on_progress, retry_failed=retry_failed
        )
        analysis = analyse(session, store)
        page = write_report(store, analysis) if report else None
    failed = [FailedRun(each.run_id, each.detail, store.replay_command(each.run_id)) for each in ending.failed]
    return CampaignResult(analysis.runs, analysis.points, analysis.differences, failed, page)
