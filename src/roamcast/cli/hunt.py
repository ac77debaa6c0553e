"""`roamcast hunt`: random networks with faults, judged by checkers; failures are shrunk and kept."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from time import monotonic
from typing import Annotated

import typer

from roamcast.cli.output import print_json, print_table
from roamcast.errors import ConfigurationError
from roamcast.hunt.adversity import adversity_page, endure
from roamcast.hunt.case import read_case
from roamcast.hunt.draw import HUNTED, checked_protocol
from roamcast.hunt.fuzz import Corpus, Counts, Fuzzer, add_counts
from roamcast.hunt.hunter import Limit, hunt_on_cores, hunt_on_spark, retry_open
from roamcast.hunt.judge import judge
from roamcast.hunt.ledger import Ledger, LedgerEntry
from roamcast.hunt.page import hunt_page, read_records, record_of, write_records

HELP = {"help_option_names": ["-h", "--help"]}
app = typer.Typer(add_completion=False, invoke_without_command=True, context_settings=HELP)
RESULTS = Path("results/hunt")
FOUND = Path("docs/results/data/hunt-found.md")
KEPT = Path("docs/results/data/hunts.json")
CORPUS = Path("tests/hunt/corpus")
FIRED = 1000  # datagrams between two looks at the clock
PROGRESS_S = 10.0
RUNS = 100  # if nothing is asked for
LONGEST_MIN, SHORTEST_MAX = 0.1, 20.0  # node-hours; looking for cases that are hardly ever drawn has no end


@app.callback()
def hunt(
    context: typer.Context,
    protocol: Annotated[list[str] | None, typer.Option(help="Only this one; may be repeated.")] = None,
    runs: Annotated[int | None, typer.Option(help="Judge this many cases more.", show_default=False)] = None,
    hours: Annotated[float | None, typer.Option(help="Hunt for this long.", show_default=False)] = None,
    shortest: Annotated[float, typer.Option(help="Leave out cases of fewer node-hours.", show_default=False)] = 0.0,
    longest: Annotated[
        float | None, typer.Option(help="Leave out cases of more node-hours.", show_default=False)
    ] = None,
    seed: Annotated[int, typer.Option(help="Decides all cases.")] = 1,
    jobs: Annotated[int, typer.Option(help="Processes; 0: one per core.")] = 0,
    master: Annotated[str | None, typer.Option(help="Hunt on this Spark master instead.", show_default=False)] = None,
    out: Annotated[Path, typer.Option(help="Ledger and failures are kept here; an earlier hunt goes on.")] = RESULTS,
    page: Annotated[Path | None, typer.Option(help="Write the page of results to this file.")] = None,
    found: Annotated[Path, typer.Option(help="With --page: what was found so far, in words.")] = FOUND,
    records: Annotated[
        Path, typer.Option(help="With --page: sums of hunts, by seed; this one is added.")
    ] = KEPT,
    as_json: Annotated[bool, typer.Option("--json", help="Answer with one JSON object.")] = False,
) -> None:
    """Hunt for failures: random networks with faults, judged by checkers."""
    if context.invoked_subcommand is not None:
        return
    _require_least("runs", runs, 0)
    _require_least("jobs", jobs, 0)
    if hours is not None and hours <= 0:
        raise ConfigurationError(f"hours = {hours:g}: must be above 0")
    if longest is not None and longest < max(LONGEST_MIN, 2 * shortest):
        least = max(LONGEST_MIN, 2 * shortest)
        raise ConfigurationError(f"longest = {longest:g}: must be at least {least:g}")
    if shortest > SHORTEST_MAX:
        raise ConfigurationError(f"shortest = {shortest:g}: must be at most {SHORTEST_MAX:g}")
    protocols = tuple(checked_protocol(name) for name in protocol) if protocol else HUNTED
    ledger = Ledger(out, seed)
    for entry in retry_open(ledger):
        typer.echo(f"roamcast: mended: {entry.file} ({entry.failure})", err=True)
    runs = RUNS if runs is None and hours is None else runs
    limit = Limit(runs, None if hours is None else monotonic() + 3600 * hours, shortest, longest)
    if master is None:
        entries = hunt_on_cores(ledger, protocols, limit, jobs or os.cpu_count() or 1)
    else:
        from roamcast.campaign.session import start_session

        entries = hunt_on_spark(ledger, protocols, limit, start_session(master))
    _follow(entries, ledger, out)
    if page is not None:
        told = found.read_text(encoding="utf-8") if found.exists() else ""
        kept = {each: record for each, record in read_records(records).items() if each != seed}
        kept[seed] = record_of(ledger)  # the latest comes last
        write_records(kept, records)
        page.write_text(hunt_page(kept, told), encoding="utf-8")
    _answer(ledger, as_json)
    if ledger.open_failures():
        raise typer.Exit(1)


@app.command()
def replay(
    file: Annotated[Path, typer.Argument(help="A case that a hunt kept.")],
    as_json: Annotated[bool, typer.Option("--json", help="Answer with one JSON object.")] = False,
) -> None:
    """Judge one kept case again."""
    verdict = judge(read_case(file), again=True)
    if as_json:
        print_json(verdict)
    elif verdict.failure is None:
        typer.echo(f"passed: {verdict.paid} of {verdict.owed} pairs delivered, {verdict.promised} promised")
    else:
        typer.echo(f"failed: {verdict.failure.kind}: {verdict.failure.detail}")
    if verdict.failure is not None:
        raise typer.Exit(1)


@app.command()
def fuzz(
    protocol: Annotated[list[str] | None, typer.Option(help="Only this one; may be repeated.")] = None,
    hours: Annotated[float, typer.Option(help="How long, for all protocols together.")] = 1.0,
    datagrams: Annotated[
        int | None, typer.Option(help="This many for each protocol instead.", show_default=False)
    ] = None,
    seed: Annotated[int, typer.Option(help="Decides all datagrams.")] = 1,
    corpus: Annotated[Path, typer.Option(help="The messages to begin with, a file per protocol.")] = CORPUS,
    out: Annotated[Path | None, typer.Option(help="Add the counts to fuzz.json here, for the page.")] = None,
    keep: Annotated[bool, typer.Option("--keep", help="Add messages of new shapes to the corpus.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Answer with one JSON object.")] = False,
) -> None:
    """Send mutated datagrams to every protocol; only refusals may come out."""
    names = [checked_protocol(name) for name in protocol] if protocol else list(HUNTED)
    _require_least("datagrams", datagrams, 1)
    if hours <= 0:
        raise ConfigurationError(f"hours = {hours:g}: must be above 0")
    counts: dict[str, Counts] = {}
    for name in names:
        path = corpus / f"{name}.txt"
        fuzzer = Fuzzer(name, Corpus.read(path), seed)
        until_s = monotonic() + 3600 * hours / len(names)
        while fuzzer.counts.decoded < datagrams if datagrams is not None else monotonic() < until_s:
            fuzzer.fire(FIRED)
        counts[name] = fuzzer.counts
        if out is not None:
            add_counts({name: fuzzer.counts}, out / "fuzz.json")
        typer.echo(f"roamcast: {name}: {fuzzer.counts.decoded:,} datagrams", err=True)
        if keep:
            fuzzer.corpus.write(path)
    if as_json:
        print_json(counts)
        return
    rows = [
        [name, *(f"{count:,}" for count in (each.decoded, each.messages, each.refused, each.learned))]
        for name, each in counts.items()
    ]
    print_table("Fuzzed datagrams", ["protocol", "decoded", "were messages", "refused", "new shapes"], rows)


@app.command()
def live(
    protocol: Annotated[list[str] | None, typer.Option(help="Only this one; may be repeated.")] = None,
    runs: Annotated[int, typer.Option(help="Cases of each protocol.")] = 1,
    seed: Annotated[int, typer.Option(help="Decides all cases.")] = 1,
    out: Annotated[Path, typer.Option(help="Outcomes are added to live.jsonl here, for the page.")] = RESULTS,
    as_json: Annotated[bool, typer.Option("--json", help="Answer with one JSON object.")] = False,
) -> None:
    """Hunt with ten real nodes in the emulator, in real time (a minute or two per case)."""
    from roamcast.emulator.machines import enter_own_network
    from roamcast.hunt.live import BEHIND_S_MAX, add_live, judge_live, live_case, read_live

    _require_least("runs", runs, 1)
    names = [checked_protocol(name) for name in protocol] if protocol else list(HUNTED)
    enter_own_network()
    path = out / "live.jsonl"
    done = {(entry.protocol, entry.seed, entry.number) for entry in read_live(path) if entry.is_judged}
    failed = False
    entries = []
    for number in range(runs):
        for name in names:
            case = live_case(seed, number, name)
            if case is None or (name, seed, number) in done:
                continue
            entry = judge_live(case, seed, number)
            add_live(entry, path)
            entries.append(entry)
            failed = failed or bool(entry.failure)
            if as_json:
                continue
            outcome = f"{entry.failure}: {entry.detail}" if entry.failure else "passed"
            if not entry.is_judged:
                outcome = f"not judged: {entry.behind_s:.1f} s behind real time; {BEHIND_S_MAX:g} s are allowed"
            typer.echo(f"{name} {number}: {entry.paid} of {entry.owed} pairs, {entry.promised} promised: {outcome}")
    if as_json:
        print_json(entries)
    if failed:
        raise typer.Exit(1)


@app.command()
def adversaries(
    protocol: Annotated[list[str] | None, typer.Option(help="Only this one; may be repeated.")] = None,
    seeds: Annotated[int, typer.Option(help="Runs of each kind.")] = 3,
    jobs: Annotated[int, typer.Option(help="Processes; 0: one per core.")] = 0,
    page: Annotated[Path | None, typer.Option(help="Write the page of results to this file.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Answer with one JSON object.")] = False,
) -> None:
    """Measure what adversaries do to each protocol."""
    _require_least("seeds", seeds, 1)
    _require_least("jobs", jobs, 0)
    names = tuple(checked_protocol(name) for name in protocol) if protocol else HUNTED
    outcomes = []
    for outcome in endure(names, jobs or os.cpu_count() or 1, tuple(range(1, seeds + 1))):
        outcomes.append(outcome)
        if len(outcomes) % 50 == 0:
            typer.echo(f"roamcast: {len(outcomes)} runs, now {outcome.ordeal.protocol}", err=True)
    text = adversity_page(outcomes)
    if page is not None:
        page.write_text(text, encoding="utf-8")
    if as_json:
        print_json(outcomes)
    elif page is None:
        typer.echo(text)


def _require_least(name: str, value: int | None, least: int) -> None:
    if value is not None and value < least:
        raise ConfigurationError(f"{name} = {value}: must be at least {least}")


def _follow(entries: Iterator[LedgerEntry], ledger: Ledger, out: Path) -> None:
    """Progress and failures, as they come."""
    told_s = monotonic()
    for judged, entry in enumerate(entries, start=1):
        if entry.failure:
            typer.echo(f"roamcast: {entry.failure}: {entry.detail}", err=True)
            typer.echo(f"  roamcast hunt replay {out / entry.file}", err=True)
        if monotonic() - told_s >= PROGRESS_S:
            told_s = monotonic()
            total = ledger.totals()["all"]
            line = f"{judged:,} cases now, {total.node_hours:,.0f} node-hours in all, {total.open} failures open"
            typer.echo(f"roamcast: {line}", err=True)
            sys.stderr.flush()


def _answer(ledger: Ledger, as_json: bool) -> None:
    totals = ledger.totals()
    if as_json:
        failures = [
            {"protocol": entry.protocol, "kind": entry.failure, "detail": entry.detail, "file": entry.file}
            for entry in ledger.open_failures()
        ]
        print_json({"totals": totals, "open": failures})
        return
    rows = [
        [
            name,
            f"{total.cases:,}",
            f"{total.node_hours:,.1f}",
            f"{sum(total.faults.values()):,}",
            f"{total.promised:,}",
            f"{total.repeated:,}",
            f"{sum(total.failures.values()):,}",
            f"{total.open:,}",
        ]
        for name, total in sorted(totals.items(), key=lambda item: item[0] == "all")
    ]
    columns = ["protocol", "cases", "node-hours", "faults", "promised pairs", "run twice", "failures", "open"]
    print_table("The hunt so far", columns, rows)
