"""What is kept of a reproduced figure: small, complete in itself, and enough to draw and judge it again.

The book of results is made from these files alone (`docs/results/data/<figure>.json`).
"""

from pathlib import Path
from typing import Literal

import msgspec

from roamcast.errors import ConfigurationError
from roamcast.papers.estimate import Judgement, Point, Verdict
from roamcast.papers.figure import Scale

FILE = "summary.json"


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
    points: tuple[Point, ...]
    claims: tuple[Judgement, ...]

    def count(self, verdict: Verdict) -> int:
        return sum(claim.verdict == verdict for claim in self.claims)

    @property
    def score(self) -> str:
        """In a few words, how the claims fared."""
        if not self.claims:
            return "no claims"
        told = [f"{self.count('holds')} of {len(self.claims)} claims hold"]
        told += [f"{self.count('fails')} fail"] if self.count("fails") else []
        told += [f"{self.count('undecided')} undecided"] if self.count("undecided") else []
        return ", ".join(told)


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
