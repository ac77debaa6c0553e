"""`roamcast reproduce`: a paper's figure, simulated again, with a verdict on each of the paper's claims."""

from pathlib import Path
from typing import Annotated

import typer

from roamcast.campaign.session import LOCAL, start_session
from roamcast.cli.campaign_progress import showing_progress
from roamcast.cli.output import print_json, print_table
from roamcast.errors import ConfigurationError
from roamcast.papers.catalogue import FIGURES, figures_named
from roamcast.papers.figure import Scale
from roamcast.papers.page import interval
from roamcast.papers.reproduce import Reproduction
from roamcast.papers.summary import Summary, kept_results, last_results, write_summary

RESULTS = Path("results")
BOOK = Path("docs/results/data")


def reproduce(
    figures: Annotated[
        list[str] | None, typer.Argument(help="Figures as in the list, a paper's name, or all.", show_default=False)
    ] = None,
    scale: Annotated[Scale, typer.Option(help="A trustworthy trend in minutes, or the paper's own scale.")] = "quick",
    out: Annotated[Path, typer.Option(help="Each figure's results go to a directory of their own in here.")] = RESULTS,
    store: Annotated[Path | None, typer.Option(help="Also keep each summary as FIGURE.json in this directory.")] = None,
    master: Annotated[str, typer.Option(help="The Spark master.")] = LOCAL,
    show_list: Annotated[bool, typer.Option("--list", help="List all figures and their last results.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Answer with JSON.")] = False,
) -> None:
    """Reproduce a paper's figure and judge its claims."""
    if show_list:
        _list(out, as_json)
        return
    chosen = [figure for name in figures or [] for figure in figures_named(name)]
    if not chosen:
        raise ConfigurationError("figure: is missing; roamcast reproduce --list shows all")
    reproductions = [Reproduction(figure, scale, out, master=master) for figure in chosen]
    session = start_session(master)
    summaries = []
    for reproduction in reproductions:
        typer.echo(f"roamcast: {reproduction.figure.id}, {reproduction.figure.title}", err=True)
        with showing_progress() as show:
            summary = reproduction.run(session, show)
        summaries.append(summary)
        if store is not None:
            write_summary(summary, store / f"{summary.figure}.json")
        if not as_json:
            _tell(summary, reproduction.directory)
    if as_json:
        print_json(summaries[0] if len(summaries) == 1 else summaries)


def _list(out: Path, as_json: bool) -> None:
    """Results of one's own first; where there are none, those of the book, if this is a copy of the sources."""
    own, book = last_results(out), kept_results(BOOK)
    rows: list[tuple[str, ...]] = []
    for name, figure in FIGURES.items():
        found = [(summary, out) for summary in own if summary.figure == name]
        found = found or [(summary, BOOK) for summary in book if summary.figure == name]
        rows += [(name, figure.title, summary.scale, summary.score, str(place)) for summary, place in found]
        if not found:
            rows.append((name, figure.title, "", "not yet run", ""))
    if as_json:
        print_json([dict(zip(("figure", "title", "scale", "result", "from"), row, strict=True)) for row in rows])
    else:
        print_table("Figures", ["figure", "title", "scale", "last result", "from"], [list(row) for row in rows])


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
