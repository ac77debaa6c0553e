"""The page of results, `docs/results/hunt.md`, and the records of hunts that it is made from.

A ledger is large and stays where it was made. What it adds up to is a record, and records are kept in a file: one for
each hunt, by its seed. So hunts on different machines and days add up. Beside the ledger's own lines, its directory may
hold `fuzz.json` (`roamcast hunt fuzz --out`), `live.jsonl` (`roamcast hunt live --out`) and `mutants.json`
(`tests/mutants/run.py --out`). What was found and mended is told by a text that people write.
"""

from pathlib import Path
from typing import Any

import msgspec

from roamcast.errors import ConfigurationError
from roamcast.hunt.fuzz import Counts
from roamcast.hunt.ledger import Ledger, LedgerTotal
from roamcast.hunt.live import LiveEntry, read_live

GOAL_NODE_HOURS = 50_000
GOAL_FAULTS = 1_000_000
GOAL_REPEATED = 5_000
GOAL_DECODED = 200_000_000
GOAL_HANDLED = 2_000_000

ALL = "all"


class HuntRecord(msgspec.Struct, frozen=True):
    """What one hunt adds up to."""

    sources: str  # digest of what was run last
    with_sources: int  # cases that were judged with these
    totals: dict[str, LedgerTotal]  # by protocol, and `all`
    fuzzed: dict[str, Counts] = {}
    mutants: list[dict[str, Any]] = []
    live: list[LiveEntry] = []


def record_of(ledger: Ledger) -> HuntRecord:
    latest = ledger.entries[-1].sources if ledger.entries else ""
    return HuntRecord(
        sources=latest,
        with_sources=sum(entry.sources == latest for entry in ledger.entries),
        totals=ledger.totals(),
        fuzzed=_stored(ledger.directory / "fuzz.json", dict[str, Counts], {}),
        mutants=_stored(ledger.directory / "mutants.json", list[dict[str, Any]], []),
        live=[entry for entry in read_live(ledger.directory / "live.jsonl") if entry.is_judged],
    )


def read_records(path: Path) -> dict[int, HuntRecord]:
    """The hunts so far, by seed."""
    records: dict[int, HuntRecord] = _stored(path, dict[int, HuntRecord], {})
    return records


def write_records(records: dict[int, HuntRecord], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.format(msgspec.json.encode(dict(sorted(records.items()))), indent=1) + b"\n")


def hunt_page(records: dict[int, HuntRecord], found: str = "") -> str:
    """The page as Markdown; `found` tells what was found and mended on the way."""
    totals = {ALL: LedgerTotal()}
    fuzzed: dict[str, Counts] = {}
    mutants: dict[str, dict[str, Any]] = {}
    for record in records.values():
        for name, total in record.totals.items():
            totals.setdefault(name, LedgerTotal()).add(total)
        for name, counts in record.fuzzed.items():
            fuzzed.setdefault(name, Counts()).add(counts)
        mutants.update({each["name"]: each for each in record.mutants})
    everything = totals.pop(ALL)
    lines = [
        "# The hunt",
        "",
        "Random networks with random faults, judged by checkers at every step and by an accountant at the end.",
        "`roamcast hunt --page docs/results/hunt.md` adds a hunt to the records and makes this page from all of them.",
        "",
        *_goals(everything, records),
        "",
        *_by_protocol(totals),
        "",
        *_faults(everything),
        "",
        *_failures(totals),
        *_live([entry for record in records.values() for entry in record.live]),
        *_fuzzed(fuzzed),
        *_mutants(list(mutants.values())),
        *(["", found.rstrip()] if found else []),
        "",
    ]
    return "\n".join(lines)


def _stored(path: Path, kind: Any, otherwise: Any) -> Any:
    if not path.exists():
        return otherwise
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except msgspec.MsgspecError as error:
        raise ConfigurationError(f"records of hunts: {path} cannot be read: {error}") from None


def _fuzzed(counts: dict[str, Counts]) -> list[str]:
    if not counts:
        return []
    rows = [f"| {name} | {each.decoded:,} | {each.messages:,} | {each.refused:,} |" for name, each in counts.items()]
    decoded = sum(each.decoded for each in counts.values())
    messages = sum(each.messages for each in counts.values())
    text = [
        f"{decoded:,} mutated datagrams were decoded in process (goal: {GOAL_DECODED:,}); nothing but a drop came out.",
        f"{messages:,} of them were messages and went through `on_message` (goal: {GOAL_HANDLED:,} for each protocol);",
        "nothing but a `PeerError` came out.",
    ]
    head = ["| protocol | decoded | messages | refused |", "|---|---:|---:|---:|"]
    return ["", "## Fuzzed datagrams", "", *text, "", *head, *rows]


def _live(entries: list[LiveEntry]) -> list[str]:
    if not entries:
        return []
    rows = []
    for protocol in sorted({entry.protocol for entry in entries}):
        own = [entry for entry in entries if entry.protocol == protocol]
        faults = sum(sum(entry.faults.values()) for entry in own)
        promised, failed = sum(entry.promised for entry in own), sum(bool(entry.failure) for entry in own)
        rows.append(f"| {protocol} | {len(own)} | {faults:,} | {promised:,} | {failed} |")
    text = [
        "Healing cases with ten real nodes in the emulator (`roamcast hunt live`). Only runs that kept real time are",
        "judged. Faults are incidents, and frames that one of them hit.",
    ]
    head = ["| protocol | cases | faults | promised pairs | failures |", "|---|" + "---:|" * 4]
    return ["", "## Real nodes", "", *text, "", *head, *rows]


def _mutants(results: list[dict[str, Any]]) -> list[str]:
    if not results:
        return []
    found = sum(bool(each["suite"] or each["hunt"]) for each in results)
    by_suite = sum(bool(each["suite"]) for each in results)
    hunted = [each for each in results if each["hunt"] is not None]
    minutes = ", ".join(f"{minutes:g}" for minutes in sorted({each["hunt_minutes"] for each in hunted}))
    words = {True: "yes", False: "no", None: "–"}
    rows = [f"| {each['what']} | {words[each['suite']]} | {words[each['hunt']]} |" for each in results]
    text = f"{len(results)} of 30 seeded bugs were tried so far, interpreted; {found} were found (goal: 25 of 30): "
    text += f"{by_suite} by the suite"
    if hunted:
        by_hunt = sum(each["hunt"] for each in hunted)
        text += f"; a hunt of {minutes} min was asked about {len(hunted)} and found {by_hunt}"
    text += "."
    head = ["| seeded bug | suite | hunt |", "|---|---|---|"]
    return ["", "## Seeded bugs", "", text, "`make mutants` does this.", "", *head, *rows]


def _goals(total: LedgerTotal, records: dict[int, HuntRecord]) -> list[str]:
    faults = sum(total.faults.values())
    latest = list(records.values())[-1].sources if records else ""
    current = sum(record.with_sources for record in records.values() if record.sources == latest)
    seeds = ", ".join(str(seed) for seed in sorted(records))
    return [
        "| | goal | so far |",
        "|---|---:|---:|",
        f"| simulated node-hours | {GOAL_NODE_HOURS:,} | {total.node_hours:,.0f} |",
        f"| faults injected | {GOAL_FAULTS:,} | {faults:,} |",
        f"| of these, other than frames lost by chance | | {faults - total.faults.get('lost frame', 0):,} |",
        f"| runs made twice, all with the same trace | {GOAL_REPEATED:,} | {total.repeated:,} |",
        f"| failures open | 0 | {total.open:,} |",
        f"| cases judged | | {total.cases:,} |",
        f"| of these, with the sources of the latest hunt | | {current:,} |",
        f"| seeds of the hunts | | {seeds} |",
        f"| pairs of event and subscriber judged by a promise to heal | | {total.promised:,} |",
    ]


def _by_protocol(totals: dict[str, LedgerTotal]) -> list[str]:
    rows = [
        f"| {name} | {total.cases:,} | {total.node_hours:,.1f} | {sum(total.faults.values()):,} | {total.promised:,} | "
        f"{sum(total.failures.values()):,} | {total.open:,} |"
        for name, total in sorted(totals.items())
    ]
    head = ["| protocol | cases | node-hours | faults | promised pairs | failures | open |", "|---|" + "---:|" * 6]
    return ["## By protocol", "", *head, *rows]


def _faults(total: LedgerTotal) -> list[str]:
    text = "Incidents, and every message and timer that one of them hit, count as one fault each."
    rows = [f"| {what} | {count:,} |" for what, count in sorted(total.faults.items())]
    return ["## Faults by kind", "", text, "", "| fault | injected |", "|---|---:|", *rows]


def _failures(totals: dict[str, LedgerTotal]) -> list[str]:
    kinds = [(name, kind, count) for name, total in sorted(totals.items()) for kind, count in total.failures.items()]
    if not kinds:
        return ["## Failures", "", "None."]
    rows = [f"| {protocol} | `{kind}` | {count:,} |" for protocol, kind, count in kinds]
    return ["## Failures by kind", "", "| protocol | kind | found |", "|---|---|---:|", *rows]
