"""`roamcast campaign`: many runs on Spark, from one file to a report.

Exit codes: 0 if every run succeeded, 1 if some failed (the others count, and the report says which), 2 for a mistake in
the file or the options, 130 after Ctrl-C.
"""

import sys
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.table import Table

from roamcast.campaign.store import Store
from roamcast.cli.output import console, print_json
from roamcast.errors import ConfigurationError

SOME_FAILED = 1
INTERRUPTED = 130
LISTED_FAILURES = 10

app = typer.Typer(add_completion=False, no_args_is_help=True, rich_markup_mode=None)

Directory = Annotated[Path, typer.Argument(metavar="DIR", help="The campaign's directory.")]
Master = Annotated[
    str, typer.Option(help="Spark master: local[N], spark://host:port, yarn, k8s://… DIR must be shared with it.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Answer with one JSON object.")]


@app.callback()
def _campaign() -> None:
    """Simulate many networks and compare protocols with confidence."""


@app.command()
def run(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The campaign file (TOML).")],
    out: Annotated[Path, typer.Option(help="Directory for traces and report; an earlier one is continued.")],
    master: Master = "local[*]",
    report: Annotated[bool, typer.Option(help="Write DIR/report.html at the end.")] = True,
    as_json: AsJson = False,
) -> None:
    """Simulate whatever of the campaign is not there yet, and write the report."""
    from roamcast.analysis.analyse import Precision, analyse
    from roamcast.campaign.conduct import Conductor
    from roamcast.campaign.execute import CampaignStoppedError
    from roamcast.campaign.session import spark_session
    from roamcast.cli.campaign_progress import showing_progress
    from roamcast.report.campaign_page import write_report

    conductor = Conductor(file, out, master=master)
    store = conductor.store
    page: Path | None = None
    try:
        _say("starting Spark")
        with spark_session(master, trace_bytes=store.trace_bytes()) as session:
            with showing_progress() as on_progress:
                ending = conductor.conduct(session, precise=Precision(session, store), on_progress=on_progress)
            if report and len(ending.failed) < ending.planned:
                _say("measuring and writing the report")
                page = write_report(store, analyse(session, store))
    except KeyboardInterrupt:
        _say(f"stopped; every committed run is kept. To go on:\n  {conductor.command}")
        raise typer.Exit(INTERRUPTED) from None
    except CampaignStoppedError as error:
        _say(f"{error}\nevery committed run is kept. To go on:\n  {conductor.command}")
        raise typer.Exit(SOME_FAILED) from None
    failed = [_failure(store, outcome.run_id, outcome.detail) for outcome in ending.failed]
    if as_json:
        answer = {"runs": ending.planned, "already_there": ending.skipped, "failed": failed}
        print_json(answer | {"directory": str(out), "report": None if page is None else str(page)})
    else:
        _tell_ending(ending.planned, ending.skipped, failed, page)
    if failed:
        raise typer.Exit(SOME_FAILED)


@app.command()
def status(directory: Directory, as_json: AsJson = False) -> None:
    """Tell how far a campaign is, without Spark."""
    store = Store(directory)
    manifest = store.manifest()
    plan, outcomes = store.plan(), store.outcomes()
    protocols: dict[str, dict[str, int]] = {}
    for name, label in zip(plan["run_id"].to_pylist(), plan["protocol"].to_pylist(), strict=True):
        row = protocols.setdefault(str(label), {"planned": 0, "done": 0, "failed": 0})
        row["planned"] += 1
        row["done"] += name in outcomes
        row["failed"] += name in outcomes and outcomes[name].failed
    planned = dict.fromkeys(map(str, plan["run_id"].to_pylist()))
    failed = [
        _failure(store, name, outcomes[name].detail) for name in planned if name in outcomes and outcomes[name].failed
    ]
    answer: dict[str, Any] = {
        "title": manifest.campaign.title,
        "planned": len(planned),
        "done": sum(name in outcomes for name in planned),
        "failed": failed,
        "protocols": protocols,
        "simulated_s": sum(outcomes[name].wall_s for name in planned if name in outcomes),
        "report": str(store.report) if store.report.exists() else None,
        "resume": manifest.command,
    }
    if as_json:
        print_json(answer)
        return
    table = Table("protocol", "planned", "done", "failed", title=str(answer["title"]), title_justify="left", box=None)
    for label, row in protocols.items():
        table.add_row(label, *(str(value) for value in row.values()))
    console().print(table)
    _tell_failures(failed)
    if answer["done"] < answer["planned"]:
        console().print(f"to go on: {manifest.command}", soft_wrap=True)
    elif answer["report"]:
        console().print(f"report: {answer['report']}", soft_wrap=True)


@app.command()
def report(directory: Directory, master: Master = "local[*]", as_json: AsJson = False) -> None:
    """Measure what is there and write DIR/report.html."""
    from roamcast.report.campaign_page import write_report

    page = write_report(Store(directory), _analysed(directory, master))
    if as_json:
        print_json({"report": str(page)})
    else:
        console().print(f"report: {page}", soft_wrap=True)


@app.command()
def export(
    directory: Directory,
    file_format: Annotated[Literal["csv", "parquet"], typer.Option("--format", help="Of the tables.")] = "csv",
    out: Annotated[Path | None, typer.Option(help="Directory for the tables (DIR/export).")] = None,
    master: Master = "local[*]",
    as_json: AsJson = False,
) -> None:
    """Write every table of the analysis: runs, points, differences, normalised, timeline, breakdowns."""
    analysis = _analysed(directory, master)
    target = directory / "export" if out is None else out
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigurationError(f"out: {str(target)!r} cannot be made: {error.strerror}") from None
    written = []
    for name, table in analysis._asdict().items():
        path = target / f"{name}.{file_format}"
        if file_format == "csv":
            table.to_csv(path, index=False)
        else:
            table.to_parquet(path, index=False)
        written.append(str(path))
    if as_json:
        print_json({"written": written})
    else:
        for line in written:
            console().print(line, soft_wrap=True)


@app.command()
def replay(
    directory: Directory,
    run_id: Annotated[str, typer.Argument(help="As in the list of failed runs or in the export.")],
    trace: Annotated[Path | None, typer.Option(help="Keep the trace as Parquet in this new directory.")] = None,
    as_json: AsJson = False,
) -> None:
    """Simulate one run of a campaign again, here and now; if it fails, its error is shown in full."""
    from roamcast.campaign.plan import decode_run
    from roamcast.trace.files import require_writable, write_trace
    from roamcast.trace.summary import summarise
    from roamcast.world.simulator import simulate

    store = Store(directory)
    plan = store.plan()
    runs = dict(zip(plan["run_id"].to_pylist(), plan["run"].to_pylist(), strict=True))
    if run_id not in runs:
        raise ConfigurationError(f"run_id: {run_id!r} is not in the plan of {str(directory)!r}; see campaign export")
    if trace is not None:
        require_writable(trace)
    result = simulate(decode_run(str(runs[run_id])))
    if trace is not None:
        write_trace(trace, result.recorder.batches())
    recorded = store.outcomes().get(run_id)
    answer = {
        "run_id": run_id,
        "trace_hash": result.recorder.trace_hash(),
        "same_trace": None if recorded is None or recorded.failed else recorded.detail == result.recorder.trace_hash(),
        **summarise(result.recorder.table()),
    }
    if as_json:
        print_json(answer)
        return
    for name, value in answer.items():
        console().print(f"{name}: {value}", soft_wrap=True)


def _analysed(directory: Path, master: str) -> Any:
    from pyspark.sql import SparkSession

    from roamcast.analysis.analyse import analyse
    from roamcast.campaign.session import spark_session

    store = Store(directory)
    store.manifest()  # refuses a directory that holds no campaign
    with ExitStack() as stack:

        @cache
        def spark() -> SparkSession:
            """Started only if something is not measured yet."""
            return stack.enter_context(spark_session(master, trace_bytes=store.trace_bytes()))

        return analyse(spark, store)


def _failure(store: Store, run_id: str, error: str) -> dict[str, str]:
    return {"run_id": run_id, "error": error, "replay": store.replay_command(run_id)}


def _tell_ending(planned: int, skipped: int, failed: list[dict[str, str]], page: Path | None) -> None:
    there = f", {skipped:,} of them were there already" if skipped else ""
    console().print(f"{planned:,} runs{there}; {len(failed):,} failed")
    _tell_failures(failed)
    if page is not None:
        console().print(f"report: {page}", soft_wrap=True)


def _tell_failures(failed: list[dict[str, str]]) -> None:
    for failure in failed[:LISTED_FAILURES]:
        console().print(f"failed: {failure['error']}\n  {failure['replay']}", soft_wrap=True, markup=False)
    if len(failed) > LISTED_FAILURES:
        console().print(f"… and {len(failed) - LISTED_FAILURES:,} more; roamcast campaign status --json lists all")


def _say(text: str) -> None:
    typer.echo(f"roamcast: {text}", file=sys.stderr)
