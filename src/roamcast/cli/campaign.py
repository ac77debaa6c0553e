"""`roamcast campaign`: many runs on Spark, from one file to a report.

Exit codes: 0 if every run succeeded, 1 if some failed or stored files are damaged (the others count, and the report
says which), 2 for a mistake in the file or the options, 130 after Ctrl-C, 143 after SIGTERM.
"""

import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.table import Table

from roamcast.campaign.commits import all_commits, outcomes_of
from roamcast.campaign.store import Store
from roamcast.campaign.verify import Damage, glance
from roamcast.campaign.verify import verify as find_damages
from roamcast.cli.output import console, print_json, print_table
from roamcast.errors import ConfigurationError

SOME_FAILED = 1
INTERRUPTED, TERMINATED = 130, 143
LISTED_FAILURES = 10
RUN_BYTES = 40_000  # what a run may leave, to guess how much a new campaign will hold

app = typer.Typer(add_completion=False, no_args_is_help=True, rich_markup_mode=None)

Directory = Annotated[str, typer.Argument(metavar="DIR", help="The campaign's directory or URI.")]
Master = Annotated[
    str, typer.Option(help="Spark master: local[N], spark://host:port, yarn, k8s://… It must reach DIR, too.")
]
Conf = Annotated[
    list[str] | None,
    typer.Option(metavar="KEY=VALUE", help="A setting of Spark's, such as spark.ui.enabled=true; repeatable."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Answer with one JSON object.")]


@app.callback()
def _campaign() -> None:
    """Simulate many networks and compare protocols with confidence."""


@app.command()
def run(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The campaign file (TOML).")],
    out: Annotated[
        str,
        typer.Option(help="Directory or URI (s3://…) for traces and report; an earlier campaign there is continued."),
    ],
    master: Master = "local[*]",
    conf: Conf = None,
    on: Annotated[
        Literal["simulator", "emulator"], typer.Option(help="Simulate, or run real nodes in real time, one by one.")
    ] = "simulator",
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Simulate failed runs again.")] = False,
    report: Annotated[bool, typer.Option(help="Write DIR/report.html at the end.")] = True,
    as_json: AsJson = False,
) -> None:
    """Simulate whatever of the campaign is not there yet, and write the report."""
    from roamcast.analysis.analyse import Precision, analyse
    from roamcast.campaign.conduct import Conductor
    from roamcast.campaign.emulated import emulating
    from roamcast.campaign.execute import CampaignStoppedError
    from roamcast.campaign.session import parsed_settings, spark_session
    from roamcast.campaign.worker import simulate_runs
    from roamcast.cli.campaign_progress import showing_progress
    from roamcast.emulator.emulation import USUAL
    from roamcast.report.campaign_page import write_report

    settings = parsed_settings(conf or [])
    conductor = Conductor(file, out, master=master)
    store = conductor.store
    store.require_writable()
    conductor.refuse_another_campaign()
    page: str | None = None
    expected_bytes = max(store.trace_bytes(), RUN_BYTES * conductor.runs_planned_first())
    try:
        _say("starting Spark")
        with _terminable(), spark_session(master, trace_bytes=expected_bytes, settings=settings) as session:
            if session.sparkContext.uiWebUrl:
                _say(f"Spark's pages: {session.sparkContext.uiWebUrl}")
            with showing_progress() as on_progress:
                ending = conductor.conduct(
                    session,
                    precise=Precision(session, store),
                    on_progress=on_progress,
                    on_damage=_tell_damages,
                    tell=_say,
                    worker=simulate_runs if on == "simulator" else emulating(USUAL),
                    retry_failed=retry_failed,
                )
            if report and len(ending.failed) < ending.planned:
                _say("measuring and writing the report")
                page = write_report(store, analyse(session, store))
    except (KeyboardInterrupt, _TerminatedError) as stopped:
        _say(f"stopped; every run that was shown as done is kept. To continue:\n  {conductor.command}")
        raise typer.Exit(TERMINATED if isinstance(stopped, _TerminatedError) else INTERRUPTED) from None
    except CampaignStoppedError as error:
        _say(f"{error}\nevery committed run is kept. To continue:\n  {conductor.command}")
        raise typer.Exit(SOME_FAILED) from None
    failed = [_failure(store, outcome.run_id, outcome.detail) for outcome in ending.failed]
    if as_json:
        answer = {"runs": ending.planned, "already_there": ending.skipped, "failed": failed}
        print_json(answer | {"directory": out, "report": page, "damaged": [each.path for each in ending.damages]})
    else:
        _tell_ending(ending.planned, ending.skipped, failed, page)
    if failed:
        raise typer.Exit(SOME_FAILED)


@app.command()
def status(directory: Directory, as_json: AsJson = False) -> None:
    """Tell how far a campaign is, without Spark. Runs whose files are lost do not count; verify finds altered ones."""
    store = Store(directory)
    manifest = store.manifest()
    whole, damages = glance(store.directory)
    plan, outcomes = store.plan(), outcomes_of(whole)
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
        "report": store.report if store.has_report() else None,
        "resume": manifest.command,
        "damaged": [each.path for each in damages],
    }
    for damage in damages[:LISTED_FAILURES]:
        _say(f"damaged: {damage.path} {damage.what}; {_batch(damage)} does not count")
    if as_json:
        print_json(answer)
        if damages:
            raise typer.Exit(SOME_FAILED)
        return
    table = Table("protocol", "planned", "done", "failed", title=str(answer["title"]), title_justify="left", box=None)
    for label, row in protocols.items():
        table.add_row(label, *(str(value) for value in row.values()))
    console().print(table)
    _tell_failures(failed)
    if answer["done"] < answer["planned"]:
        console().print(f"to continue: {manifest.command}", soft_wrap=True)
    elif answer["report"]:
        console().print(f"report: {answer['report']}", soft_wrap=True)
    if damages:
        raise typer.Exit(SOME_FAILED)


@app.command()
def report(directory: Directory, master: Master = "local[*]", conf: Conf = None, as_json: AsJson = False) -> None:
    """Verify what is there, measure it and write DIR/report.html."""
    from roamcast.report.campaign_page import write_report

    damages = _verified(directory)
    page = write_report(Store(directory), _analysed(directory, master, conf))
    if as_json:
        print_json({"report": page, "damaged": [each.path for each in damages]})
    else:
        console().print(f"report: {page}", soft_wrap=True)
    if damages:
        raise typer.Exit(SOME_FAILED)


@app.command()
def verify(directory: Directory, as_json: AsJson = False) -> None:
    """Read every stored file and compare it with its digest; damaged batches are set aside in DIR/quarantine."""
    damages = _verified(directory)
    store = Store(directory)
    commits, planned = store.commits(), set(store.plan()["run_id"].to_pylist())
    files, over = sum(len(commit.files) for commit in commits), outcomes_of(commits)
    missing = len(planned - over.keys())
    unnamed = store.unnamed_files(all_commits(store.directory))
    if unnamed:
        _say(
            f"{len(unnamed):,} trace files do not count, because no commit names them (the first: trace/{unnamed[0]}): "
            "a run was killed or is under way, or a commit is lost"
        )
    if as_json:
        damaged = [each._asdict() for each in damages]
        answer = {"files": files, "runs": len(over), "missing": missing, "damaged": damaged}
        print_json(answer | {"uncommitted": len(unnamed)})
    else:
        console().print(f"{files:,} files with {len(over):,} runs are whole", soft_wrap=True)
        if missing and not damages:
            console().print(
                f"{missing:,} of {len(planned):,} planned runs are missing. To go on: {store.manifest().command}",
                soft_wrap=True,
            )
    if damages:
        raise typer.Exit(SOME_FAILED)


@app.command()
def compact(directory: Directory, as_json: AsJson = False) -> None:
    """Put many small trace files together into few large ones; the old ones stay until vacuum."""
    from roamcast.campaign import compact as storage

    _held_together(directory)
    change = storage.compact(Store(directory))
    if as_json:
        print_json(change._asdict())
    else:
        console().print(f"{change.files_before:,} files became {change.files_after:,}")


@app.command()
def vacuum(directory: Directory, as_json: AsJson = False) -> None:
    """Remove runs that the plan no longer has, replaced and quarantined files, and leftovers."""
    from roamcast.campaign import compact as storage

    _held_together(directory)
    change = storage.vacuum(Store(directory))
    if as_json:
        print_json(change._asdict())
    else:
        console().print(f"{change.runs_removed:,} runs and {change.objects_removed:,} files were removed")


@app.command()
def delta(directory: Directory, as_json: AsJson = False) -> None:
    """Make the trace files a Delta table at DIR/trace without copying them; run, compact and vacuum keep it current."""
    from roamcast.campaign.delta import register

    _held_together(directory)
    store = Store(directory)
    table = register(store)
    if as_json:
        print_json(table._asdict() | {"table": str(store.trace)})
    else:
        console().print(
            f"Delta table {store.trace}, version {table.version}: {table.files:,} files, {table.rows:,} rows",
            soft_wrap=True,
        )


@app.command()
def decide(
    directory: Directory,
    markdown: Annotated[bool, typer.Option("--markdown", help="As a Markdown table.")] = False,
    counts: Annotated[
        Literal["delivery", "speed", "airtime"], typer.Option(help="What counts, in a table where axes cross.")
    ] = "airtime",
    ends: Annotated[bool, typer.Option("--ends", help="Only the ends of the sweeps and where they meet.")] = False,
    into: Annotated[
        Path | None, typer.Option(help="Replace the table between the marks <!-- decisions --> of this Markdown file.")
    ] = None,
    master: Master = "local[*]",
    conf: Conf = None,
    as_json: AsJson = False,
) -> None:
    """Recommend a protocol for each place, from a campaign's runs.

    Where the axes of a grid cross, one row per combination and one column per value of its first axis; otherwise one
    row per place and one column for each thing that may count.
    """
    from roamcast.report.decisions import AIRTIME, DELIVERY, SPEED, crossed_table, decision_table
    from roamcast.report.markdown import markdown_table, put_between_marks

    _verified(directory)
    store = Store(directory)
    plan = store.plan().drop_columns("run").to_pandas()
    analysis = _analysed(directory, master, conf)
    measured = plan[plan["run_id"].isin(analysis.runs["run_id"])]
    campaign = store.manifest().campaign
    table = crossed_table(
        campaign, measured, analysis.runs, {"delivery": DELIVERY, "speed": SPEED, "airtime": AIRTIME}[counts]
    )
    if not table.rows:
        table = decision_table(campaign, measured, analysis.runs, ends_only=ends)
    if not table.rows:
        raise ConfigurationError(f"{directory}: nothing to compare; the campaign needs two deployable protocols")
    if into is not None:
        put_between_marks(into, "decisions", markdown_table(table))
    if as_json:
        print_json([dict(zip(table.columns, (cell.text for cell in row), strict=True)) for row in table.rows])
    elif markdown or into is not None:
        typer.echo(markdown_table(table))
    else:
        print_table(campaign.title, table.columns, [[cell.text for cell in row] for row in table.rows])


@app.command()
def export(
    directory: Directory,
    file_format: Annotated[Literal["csv", "parquet"], typer.Option("--format", help="Of the tables.")] = "csv",
    out: Annotated[Path | None, typer.Option(help="Local directory for the tables (DIR/export).")] = None,
    master: Master = "local[*]",
    conf: Conf = None,
    as_json: AsJson = False,
) -> None:
    """Write every table of the analysis: runs, points, differences, normalised, timeline, breakdowns."""
    target = Path(Store(directory).directory) / "export" if out is None else out
    damages = _verified(directory)
    analysis = _analysed(directory, master, conf)
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
    if damages:
        raise typer.Exit(SOME_FAILED)


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
        raise ConfigurationError(f"run_id: {run_id!r} is not in the plan of {directory!r}; see campaign export")
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


def _analysed(directory: str, master: str, conf: list[str] | None) -> Any:
    from pyspark.sql import SparkSession

    from roamcast.analysis.analyse import analyse
    from roamcast.campaign.session import parsed_settings, spark_session

    store = Store(directory)
    settings = parsed_settings(conf or [])
    with ExitStack() as stack:

        @cache
        def spark() -> SparkSession:
            """Started only if something is not measured yet."""
            return stack.enter_context(spark_session(master, trace_bytes=store.trace_bytes(), settings=settings))

        return analyse(spark, store)


def _verified(directory: str) -> list[Damage]:
    """What is damaged; tells the user how to mend it."""
    store = Store(directory)
    store.require_campaign()
    damages = [*find_damages(store.directory), *store.damaged_books()]
    _tell_damages(damages)
    manifest = store.manifest()
    if any(not damage.is_book for damage in damages):
        _say(f"the runs of damaged batches are missing now. To simulate them again:\n  {manifest.command}")
    elif damages:
        _say(f"no run is lost. To mend it:\n  {manifest.command}")
    return damages


def _held_together(directory: str) -> None:
    """Refuses to rearrange damaged files."""
    if any(not damage.is_book for damage in _verified(directory)):
        raise typer.Exit(SOME_FAILED)


def _batch(damage: Damage) -> str:
    """A commit that cannot be read does not say how many runs it had."""
    return f"its batch of {damage.runs:,} runs" if damage.runs else "its batch"


def _tell_damages(damages: list[Damage]) -> None:
    for damage in damages[:LISTED_FAILURES]:
        aside = "" if damage.is_book else f"; {_batch(damage)} is set aside in quarantine"
        _say(f"damaged: {damage.path} {damage.what}{aside}")
    if len(damages) > LISTED_FAILURES:
        _say(f"… and {len(damages) - LISTED_FAILURES:,} more damaged files")


class _TerminatedError(BaseException):
    """SIGTERM, which ends a campaign as quietly as Ctrl-C."""


@contextmanager
def _terminable() -> Iterator[None]:
    def end(number: int, frame: Any) -> None:
        raise _TerminatedError

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _failure(store: Store, run_id: str, error: str) -> dict[str, str]:
    return {"run_id": run_id, "error": error, "replay": store.replay_command(run_id)}


def _tell_ending(planned: int, skipped: int, failed: list[dict[str, str]], page: str | None) -> None:
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
