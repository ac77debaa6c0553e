"""What is kept of a reproduced figure: small, complete in itself, and enough to draw and judge it again.

The book of results is made from these files alone (`docs/results/data/<figure>.json`).
"""

from pathlib import Path
from typing import Literal

import msgspec

from roamcast.analysis.student import CONFIDENCE
from roamcast.errors import ConfigurationError
from roamcast.papers.estimate import CurvePoint, JudgedClaim, Verdict
from roamcast.papers.figure import Scale

FILE = "summary.json"


class Witness(msgspec.Struct, frozen=True, kw_only=True):
    """A run that tells whether the sources still do the same (`witness`)."""

    contender: str
    run: str  # as JSON
    trace_hash: str


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """A figure's result at one scale."""

    figure: str
    title: str
    paper: str
    section: str
    setting: str
    scale: Scale
    scale_note: str
    x_title: str
    y_title: str
    x_format: str
    y_format: str
    mark: Literal["line", "bar"]
    seeds: int
    runs: int
    failed: tuple[str, ...]  # how to replay each run that failed
    simulated_s: float  # time that the simulations took, over all cores
    command: str
    environment: dict[str, str]
    points: tuple[CurvePoint, ...]
    claims: tuple[JudgedClaim, ...]
    runs_of_paper: int = 0  # at each point; 0: not told, in summaries of older versions
    seeds_fewest: int = 0  # of the point with the fewest, which only decided claims need; 0: not told
    looks: tuple[int, ...] = ()  # seeds after which the claims were judged (`sequential`)
    confidence: float = CONFIDENCE  # of the interval at each look
    sources: dict[str, str] = {}  # part of the sources that can decide the runs -> its digest (`sources`)
    witnesses: tuple[Witness, ...] = ()  # one run of each contender

    @property
    def at_paper_scale(self) -> bool:
        """Whether networks, durations and settings are the paper's. Seeds may be fewer, if they decided all claims."""
        return self.scale == "paper"

    @property
    def exhausted(self) -> bool:
        """Whether as many runs were made as the paper has."""
        return 0 < self.runs_of_paper <= self.seeds

    @property
    def seeds_text(self) -> str:
        """How many seeds the points have."""
        return f"{self.seeds_fewest} to {self.seeds}" if 0 < self.seeds_fewest < self.seeds else f"{self.seeds}"

    @property
    def of_paper(self) -> tuple[JudgedClaim, ...]:
        """The paper's own claims."""
        return tuple(claim for claim in self.claims if claim.of_paper)

    def count(self, verdict: Verdict) -> int:
        """How many of the paper's claims have this verdict."""
        return sum(claim.verdict == verdict for claim in self.of_paper)

    @property
    def open(self) -> int:
        """How many claims are undecided; comparisons of our own count only where the paper claims nothing."""
        return sum(claim.verdict == "undecided" for claim in self.of_paper or self.claims)

    @property
    def score(self) -> str:
        """The verdicts on the paper's claims, in a few words."""
        if not self.of_paper:
            return "no claims of the paper"
        told = [f"{self.count('holds')} of {len(self.of_paper)} claims hold"]
        told += [f"{self.count('fails')} fail"] if self.count("fails") else []
        told += [f"{self.count('undecided')} undecided"] if self.count("undecided") else []
        return ", ".join(told)

    @property
    def findings(self) -> list[str]:
        """What was found about claims that do not hold, each finding once."""
        return list(dict.fromkeys(claim.finding for claim in self.claims if claim.verdict != "holds" and claim.finding))


def write_summary(summary: Summary, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.format(msgspec.json.encode(summary), indent=1) + b"\n")


def read_summary(path: Path) -> Summary:
    try:
        return msgspec.json.decode(path.read_bytes(), type=Summary)
    except OSError as error:
        raise ConfigurationError(f"summary: {str(path)!r} cannot be read: {error.strerror}") from None
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise ConfigurationError(f"summary: {str(path)!r} is not a figure's summary: {error}") from None


def last_results(directory: Path) -> list[Summary]:
    """The results of all figures that were reproduced into a directory."""
    return [read_summary(path) for path in sorted(directory.glob(f"*/{FILE}"))]


def kept_results(directory: Path) -> list[Summary]:
    """The results that a directory keeps, one file each."""
    return [read_summary(path) for path in sorted(directory.glob("*-*.json"))]
