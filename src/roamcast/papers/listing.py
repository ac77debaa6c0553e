"""What is known about every figure: scale, seeds, claims with verdicts, and whether that is older than the sources."""

from pathlib import Path

import msgspec

from roamcast.papers.catalogue import FIGURES
from roamcast.papers.estimate import Verdict
from roamcast.papers.figure import Figure, Scale
from roamcast.papers.sources import changed, sources_of
from roamcast.papers.summary import Summary, kept_results, last_results

NOT_RUN = "not yet run"
CLAIMS = "claims"


class ListedClaim(msgspec.Struct, frozen=True):
    statement: str
    reported: str  # by the paper
    required: str  # where the value must lie
    value: float | None
    low: float | None
    high: float | None
    verdict: Verdict
    of_paper: bool  # false: a comparison of our own


class Listed(msgspec.Struct, frozen=True, kw_only=True):
    """A figure with one stored result, or with none."""

    figure: str
    title: str
    paper: str
    runs_of_paper: int  # at each point
    result: str  # the verdicts, in words
    scale: Scale | None = None
    at_paper_scale: bool = False
    scale_note: str = ""
    seeds: int = 0
    seeds_fewest: int = 0  # of the point with the fewest, which only decided claims need; 0: not told
    exhausted: bool = False  # whether the paper's number of runs was reached
    runs: int = 0
    holds: int = 0
    fails: int = 0
    undecided: int = 0
    claims: list[ListedClaim] = []
    older: list[str] | None = None  # what changed since: simulator, protocols, claims; or unknown
    command: str = ""
    directory: str = msgspec.field(default="", name="from")


def listed(own: Path, book: Path) -> list[Listed]:
    """All figures. Your own results come first; where there are none, those of the book."""
    mine, kept = last_results(own), kept_results(book)
    rows: list[Listed] = []
    for name, figure in FIGURES.items():
        found = [(summary, own) for summary in mine if summary.figure == name]
        found = found or [(summary, book) for summary in kept if summary.figure == name]
        rows += [_with_result(figure, summary, place) for summary, place in found]
        if not found:
            rows.append(
                Listed(
                    figure=name,
                    title=figure.title,
                    paper=figure.paper,
                    runs_of_paper=figure.runs_of_paper,
                    result=NOT_RUN,
                )
            )
    return rows


def older_parts(summary: Summary) -> tuple[str, ...]:
    """The parts of the sources, and perhaps the claims, that are not as they were when a stored result was made."""
    figure = FIGURES.get(summary.figure)
    if figure is None:
        return ()
    parts = changed(summary.sources, sources_of(figure.campaign(summary.scale)))
    same = [claim.statement for claim in summary.claims] == [claim.statement for claim in figure.claims]
    return parts if same else (*parts, CLAIMS)


def _with_result(figure: Figure, summary: Summary, place: Path) -> Listed:
    claims = [
        ListedClaim(
            statement=claim.statement,
            reported=claim.reported,
            required=claim.required,
            value=claim.estimate.value,
            low=claim.estimate.low,
            high=claim.estimate.high,
            verdict=claim.verdict,
            of_paper=claim.of_paper,
        )
        for claim in summary.claims
    ]
    return Listed(
        figure=figure.id,
        title=figure.title,
        paper=figure.paper,
        runs_of_paper=figure.runs_of_paper,
        result=summary.score,
        scale=summary.scale,
        at_paper_scale=summary.at_paper_scale,
        scale_note=summary.scale_note,
        seeds=summary.seeds,
        seeds_fewest=summary.seeds_fewest,
        exhausted=summary.seeds >= figure.runs_of_paper,
        runs=summary.runs,
        holds=summary.count("holds"),
        fails=summary.count("fails"),
        undecided=summary.count("undecided"),
        claims=claims,
        older=list(older_parts(summary)),
        command=summary.command,
        directory=str(place),
    )
