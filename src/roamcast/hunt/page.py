"""The page of results that a ledger makes: `docs/results/hunt.md`.

Beside the ledger's own lines, its directory may hold `fuzz.json` (`roamcast hunt fuzz --out`) and `mutants.json`
(`tests/mutants/run.py --out`). What was found and mended is told by a text that people write.
"""

import json
from collections import Counter
from pathlib import Path
from typing import Any

from roamcast.hunt.ledger import Ledger, Total

GOAL_NODE_HOURS = 50_000
GOAL_FAULTS = 1_000_000
GOAL_REPEATED = 5_000
GOAL_DECODED = 200_000_000
GOAL_HANDLED = 2_000_000


def hunt_page(ledger: Ledger, found: str = "") -> str:
    """The page as Markdown; `found` tells what was found and mended on the way."""
    totals = ledger.totals()
    everything = totals.pop("all")
    lines = [
        "# The hunt",
        "",
        "Random networks with random faults, judged by checkers at every step and by an accountant at the end.",
        "`roamcast hunt --page docs/results/hunt.md` makes this page from the ledger of a hunt.",
        "",
        *_goals(everything, ledger),
        "",
        *_by_protocol(totals),
        "",
        *_faults(everything),
        "",
        *_failures(ledger),
        *_fuzzed(_stored(ledger.directory / "fuzz.json")),
        *_mutants(_stored(ledger.directory / "mutants.json")),
        *(["", found.rstrip()] if found else []),
        "",
    ]
    return "\n".join(lines)


def _stored(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def _fuzzed(counts: dict[str, dict[str, int]] | None) -> list[str]:
    if not counts:
        return []
    columns = ("decoded", "messages", "refused")
    rows = [f"| {name} | {' | '.join(f'{each[what]:,}' for what in columns)} |" for name, each in counts.items()]
    decoded, messages = (sum(each[what] for each in counts.values()) for what in ("decoded", "messages"))
    text = [
        f"{decoded:,} mutated datagrams were decoded in process (goal: {GOAL_DECODED:,}); nothing but a drop came out.",
        f"{messages:,} of them were messages and went through `on_message` (goal: {GOAL_HANDLED:,} for each protocol);",
        "nothing but a `PeerError` came out.",
    ]
    head = ["| protocol | decoded | messages | refused |", "|---|---:|---:|---:|"]
    return ["", "## Fuzzed datagrams", "", *text, "", *head, *rows]


def _mutants(results: list[dict[str, Any]] | None) -> list[str]:
    if not results:
        return []
    found = sum(bool(each["suite"] or each["hunt"]) for each in results)
    minutes = ", ".join(f"{minutes:g}" for minutes in sorted({each["hunt_minutes"] for each in results}))
    words = {True: "yes", False: "no", None: "–"}
    rows = [f"| {each['what']} | {words[each['suite']]} | {words[each['hunt']]} |" for each in results]
    tried = f"{len(results)} of 30 seeded bugs were tried so far, each with a hunt of {minutes} min, interpreted"
    text = f"{tried}; {found} of these were found (goal: 25 of 30)."
    head = ["| seeded bug | suite | hunt |", "|---|---|---|"]
    return ["", "## Seeded bugs", "", text, "`make mutants` does this.", "", *head, *rows]


def _goals(total: Total, ledger: Ledger) -> list[str]:
    faults = sum(total.faults.values())
    latest = ledger.entries[-1].sources if ledger.entries else ""
    current = sum(entry.sources == latest for entry in ledger.entries)
    return [
        "| | goal | so far |",
        "|---|---:|---:|",
        f"| simulated node-hours | {GOAL_NODE_HOURS:,} | {total.node_hours:,.0f} |",
        f"| faults injected | {GOAL_FAULTS:,} | {faults:,} |",
        f"| runs made twice, all with the same trace | {GOAL_REPEATED:,} | {total.repeated:,} |",
        f"| failures open | 0 | {total.open:,} |",
        f"| cases judged | | {total.cases:,} |",
        f"| of these, with the latest sources in the ledger | | {current:,} |",
        f"| pairs of event and subscriber judged by a promise to heal | | {total.promised:,} |",
    ]


def _by_protocol(totals: dict[str, Total]) -> list[str]:
    rows = [
        f"| {name} | {total.cases:,} | {total.node_hours:,.1f} | {sum(total.faults.values()):,} | {total.promised:,} | "
        f"{sum(total.failures.values()):,} | {total.open:,} |"
        for name, total in sorted(totals.items())
    ]
    head = ["| protocol | cases | node-hours | faults | promised pairs | failures | open |", "|---|" + "---:|" * 6]
    return ["## By protocol", "", *head, *rows]


def _faults(total: Total) -> list[str]:
    text = "Incidents, and every message and timer that one of them hit, count as one fault each."
    rows = [f"| {what} | {count:,} |" for what, count in sorted(total.faults.items())]
    return ["## Faults by kind", "", text, "", "| fault | injected |", "|---|---:|", *rows]


def _failures(ledger: Ledger) -> list[str]:
    kinds: Counter[tuple[str, str]] = Counter()
    still_open: Counter[tuple[str, str]] = Counter()
    for entry in ledger.entries:
        if entry.failure:
            kinds[entry.protocol, entry.failure] += 1
    for entry in ledger.open_failures():
        still_open[entry.protocol, entry.failure] += 1
    if not kinds:
        return ["## Failures", "", "None in this ledger."]
    rows = [
        f"| {protocol} | `{kind}` | {count:,} | {still_open[protocol, kind]:,} |"
        for (protocol, kind), count in sorted(kinds.items())
    ]
    return ["## Failures by kind", "", "| protocol | kind | found | open |", "|---|---|---:|---:|", *rows]
