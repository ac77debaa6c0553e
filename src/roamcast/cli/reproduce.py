"""`roamcast reproduce`: a paper's figure, simulated again, with a verdict on each of the paper's claims."""

import sys
from pathlib import Path
from typing import Annotated

import typer
from pyspark.sql import SparkSession
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from roamcast.campaign.conduct import Progress as Standing
from roamcast.campaign.session import LOCAL, start_session
from roamcast.cli.output import print_json, print_table
from roamcast.errors import ConfigurationError
from roamcast.papers.catalogue import FIGURES, figure_named
from roamcast.papers.figure import Scale
from roamcast.papers.page import interval
from roamcast.papers.reproduce import Reproduction
from roamcast.papers.summary import Summary, last_results, write_summary

RESULTS = Path("results")


def reproduce(
    figure: Annotated[str | None, typer.Argument(help="A figure's name, as in the list.", show_default=False)] = None,
    scale: Annotated[Scale, typer.Option(help="A trustworthy trend in minutes, or the paper's own scale.")] = "quick",
    out: Annotated[Path, typer.Option(help="Results go to a directory of their own in here.")] = RESULTS,
    store: Annotated[Path | None, typer.Option(help="Also keep the summary as FIGURE.json in this directory.")] = None,
    master: Annotated[str, typer.Option(help="The Spark master.")] = LOCAL,
    show_list: Annotated[bool, typer.Option("--list", help="List all figures and their last results.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Answer with one JSON object.")] = False,
) -> None:
    """Reproduce a paper's figure and judge its claims."""
    if show_list:
        _list(out, as_json)
        return
    if figure is None:
        raise ConfigurationError(f"figure: is missing; allowed: {', '.join(FIGURES)}")
    reproduction = Reproduction(figure_named(figure), scale, out, master=master)
    session = start_session(master)
    summary = _watched(reproduction, session) if sys.stderr.isatty() and not as_json else reproduction.run(session)
    if store is not None:
        write_summary(summary, store / f"{figure}.json")
    if as_json:
        print_json(summary)
    else:
        _tell(summary, reproduction.directory)


def _watched(reproduction: Reproduction, session: SparkSession) -> Summary:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, transient=True) as bar:
        task = bar.add_task(reproduction.figure.id, total=None)

        def show(standing: Standing) -> None:
            bar.update(task, total=standing.planned, completed=standing.done + standing.simulated)

        return reproduction.run(session, show)


def _list(out: Path, as_json: bool) -> None:
    results = last_results(out)
    rows = []
    for name, figure in FIGURES.items():
        for scale in ("quick", "paper"):
            found = results.get((name, scale))
            if found is not None or scale == "quick":
                rows.append((name, figure.title, scale if found else "", found.score if found else "not yet run"))
    if as_json:
        print_json([dict(zip(("figure", "title", "scale", "result"), row, strict=True)) for row in rows])
    else:
        print_table("Figures", ["figure", "title", "scale", "last result"], [list(row) for row in rows])


def _tell(summary: Summary, directory: Path) -> None:
    title = f"{summary.figure}, {summary.scale}: {summary.title} ({summary.runs} runs, {summary.seeds} seeds)"
    rows = [
        [claim.statement, claim.reported, interval(claim.estimate), claim.required, claim.verdict]
        for claim in summary.claims
    ]
    print_table(title, ["claim", "paper", "here", "needed", "verdict"], rows)
    if summary.failed:
        typer.echo(f"{len(summary.failed)} of {summary.runs} runs failed; replay the first: {summary.failed[0]}")
    typer.echo(f"{summary.score}; see {directory / 'index.html'}")
