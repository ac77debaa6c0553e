"""The ledger: one line of JSON per case, appended as soon as it was judged, and what they add up to.

A failure is kept as a file of its own, shrunk. It is open until the case in that file passes, which every hunt that
uses the ledger tries first.
"""

from collections import Counter
from pathlib import Path
from typing import Any

import msgspec

from roamcast.errors import ConfigurationError
from roamcast.hunt.case import Case, write_case


class LedgerEntry(msgspec.Struct, frozen=True):
    """A line of the ledger."""

    number: int
    protocol: str
    seed: int  # of the hunt
    sources: str  # digest of what was run
    node_hours: float
    faults: dict[str, int]
    trace_hash: str
    owed: int
    paid: int
    promised: int
    repeated: bool  # the run was made twice, and the traces were equal
    wall_s: float
    failure: str = ""  # kind
    detail: str = ""
    file: str = ""  # the shrunk case


class LedgerTotal(msgspec.Struct):
    """Sums over a protocol, or over all."""

    cases: int = 0
    node_hours: float = 0.0
    faults: dict[str, int] = {}
    failures: dict[str, int] = {}
    open: int = 0
    repeated: int = 0
    owed: int = 0
    paid: int = 0
    promised: int = 0
    wall_s: float = 0.0

    def add(self, other: "LedgerTotal") -> None:
        for name in ("cases", "node_hours", "open", "repeated", "owed", "paid", "promised", "wall_s"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.faults = dict(Counter(self.faults) + Counter(other.faults))
        self.failures = dict(Counter(self.failures) + Counter(other.failures))


class Ledger:
    """What has been judged so far, in a directory."""

    def __init__(self, directory: Path, seed: int) -> None:
        self.directory = directory
        self.seed = seed
        self._path = directory / "ledger.jsonl"
        self._mended_path = directory / "mended.jsonl"
        self.entries = _lines(self._path, LedgerEntry)
        self._mended: set[str] = set(_lines(self._mended_path, str))
        seeds = {entry.seed for entry in self.entries}
        if seeds - {seed}:
            raise ConfigurationError(f"seed = {seed}: the ledger in {directory} has seed {min(seeds)}")

    def done(self) -> set[tuple[str, int]]:
        return {(entry.protocol, entry.number) for entry in self.entries}

    def add(self, entry: LedgerEntry, shrunk: Case | None) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        if shrunk is not None:
            write_case(shrunk, self.directory / entry.file)
        self.entries.append(entry)
        with self._path.open("ab") as file:
            file.write(msgspec.json.encode(entry) + b"\n")

    def open_failures(self) -> list[LedgerEntry]:
        return [entry for entry in self.entries if entry.failure and entry.file not in self._mended]

    def mend(self, entry: LedgerEntry) -> None:
        """The failure does not happen any more."""
        self._mended.add(entry.file)
        with self._mended_path.open("ab") as file:
            file.write(msgspec.json.encode(entry.file) + b"\n")

    def totals(self) -> dict[str, LedgerTotal]:
        """By protocol, and `all`."""
        totals: dict[str, LedgerTotal] = {"all": LedgerTotal()}
        still_open = {entry.file for entry in self.open_failures()}
        for entry in self.entries:
            for name in (entry.protocol, "all"):
                totals.setdefault(name, LedgerTotal()).add(_total(entry, entry.file in still_open))
        return totals


def _total(entry: LedgerEntry, is_open: bool) -> LedgerTotal:
    return LedgerTotal(
        cases=1,
        node_hours=entry.node_hours,
        faults=entry.faults,
        failures={entry.failure: 1} if entry.failure else {},
        open=int(is_open and bool(entry.failure)),
        repeated=int(entry.repeated),
        owed=entry.owed,
        paid=entry.paid,
        promised=entry.promised,
        wall_s=entry.wall_s,
    )


def _lines(path: Path, kind: Any) -> list[Any]:
    """The lines of a file; a last one that was cut short is dropped."""
    if not path.exists():
        return []
    text = path.read_bytes()
    whole = text[: text.rfind(b"\n") + 1]
    if len(whole) < len(text):
        path.write_bytes(whole)
    try:
        return [msgspec.json.decode(line, type=kind) for line in whole.splitlines()]
    except msgspec.MsgspecError as error:
        raise ConfigurationError(f"ledger: {path} cannot be read: {error}") from None
