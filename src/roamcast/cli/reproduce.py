"""`roamcast reproduce`: a paper's figure, simulated again, with a verdict on each of the paper's claims."""

from pathlib import Path
from typing import Annotated

import typer

from roamcast.campaign.session import LOCAL, start_session
from roamcast.cli.campaign_progress import showing_progress
from roamcast.cli.output import print_json, print_table
from roamcast.errors import ConfigurationError
from roamcast.papers.catalogue import figures_named
from roamcast.papers.figure import Platform, Scale
from roamcast.papers.listing import Listed, listed, older_parts
from roamcast.papers.page import interval
from roamcast.papers.reproduce import Reproduction
from roamcast.papers.summary import Summary, kept_results, write_summary
from roamcast.papers.witness import renewed

RESULTS = Path("results")
BOOK = Path("docs/results/data")


def reproduce(
    figures: Annotated[
        list[str] | None, typer.Argument(help="Figures as in the list, a paper's name, or all.", show_default=False)
    ] = None,
    scale: Annotated[
        Scale,
        typer.Option(
            help="Smaller networks and shorter runs; the paper's at fewer points of the axis; or all of the paper's. "
            "Seeds as needed in each."
        ),
    ] = "quick",
    on: Annotated[
        Platform, typer.Option(help="Simulated, or with real nodes in real time, for the figures that can be.")
    ] = "simulator",
    most: Annotated[
        int | None, typer.Option(help="At most this many seeds, also if claims stay undecided.", show_default=False)
    ] = None,
    out: Annotated[Path, typer.Option(help="Each figure's results go to a directory of their own in here.")] = RESULTS,
    store: Annotated[Path | None, typer.Option(help="Also keep each summary as FIGURE.json in this directory.")] = None,
    master: Annotated[str, typer.Option(help="The Spark master.")] = LOCAL,
    show_list: Annotated[bool, typer.Option("--list", help="List all figures and their last results.")] = False,
    verify: Annotated[
        bool,
        typer.Option(
            "--verify",
            help="Simulate one run of each contender again, for results in --store that are older than the sources. "
            "Where all give the same traces as before, the results count as current.",
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Answer with JSON.")] = False,
) -> None:
    """Reproduce a paper's figure and judge its claims.

    Seeds are simulated in rounds until every claim is decided or there are as many runs as the paper has. Interrupted,
    the same command continues.
    """
    if show_list:
        _list(out, as_json)
        return
    if verify:
        _verify(store or BOOK, as_json)
        return
    chosen = [figure for name in figures or [] for figure in figures_named(name, on)]
    if not chosen:
        raise ConfigurationError("figure: is missing; roamcast reproduce --list shows all")
    reproductions = [Reproduction(figure, scale, out, master=master, most=most) for figure in chosen]
    session = start_session(master)
    summaries = []
    for reproduction in reproductions:
        typer.echo(f"roamcast: {reproduction.figure.id}, {reproduction.figure.title}", err=True)
        with showing_progress() as show:
            summary = reproduction.run(session, show, _tell_look)
        summaries.append(summary)
        if store is not None:
            write_summary(summary, store / f"{summary.figure}.json")
        if not as_json:
            _tell(summary, reproduction.directory)
    if as_json:
        print_json(summaries[0] if len(summaries) == 1 else summaries)


def _list(out: Path, as_json: bool) -> None:
    """Your own results first; where there are none, those of the book, if this is a copy of the sources."""
    rows = listed(out, BOOK)
    if as_json:
        print_json(rows)
        return
    header = ["figure", "title", "scale", "seeds", "last result", "older than", "from"]
    print_table("Figures", header, [_row(row) for row in rows])


def _verify(directory: Path, as_json: bool) -> None:
    """Renews the digests of stored results whose witnesses give the same traces as before."""
    answers = []
    for summary in kept_results(directory):
        fresh = renewed(summary)
        if fresh is not None:
            write_summary(fresh, directory / f"{summary.figure}.json")
        older = list(older_parts(fresh or summary))
        answers.append({"figure": summary.figure, "renewed": fresh is not None, "older": older})
        if not as_json:
            state = f"older than {', '.join(older)}" if older else "same traces" if fresh is not None else "current"
            typer.echo(f"{summary.figure}: {state}")
    if as_json:
        print_json(answers)


def _row(row: Listed) -> list[str]:
    seeds = f"{row.seeds} of {row.runs_of_paper}" if row.seeds else ""
    return [row.figure, row.title, row.scale or "", seeds, row.result, ", ".join(row.older or []), row.directory]


def _tell_look(summary: Summary) -> None:
    typer.echo(f"roamcast: {summary.figure} after {summary.seeds} seeds: {summary.score}", err=True)


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
