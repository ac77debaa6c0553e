"""`roamcast advise`: which protocol, with which parameters, serves a scenario best; or that none does."""

import sys
from collections.abc import Sequence
from pathlib import Path
from time import monotonic
from typing import Annotated, Any

import typer
from rich.markup import escape

from roamcast.advise.advice import Advice, Elsewhere, Evidence, MeanEstimate, Outcome
from roamcast.advise.candidates import Candidate, candidate, candidates
from roamcast.advise.demands import measure_of, parse_demand, parse_objective, short_name
from roamcast.advise.judgement import Question, Stage
from roamcast.campaign.session import LOCAL
from roamcast.cli.output import console, print_json, print_table
from roamcast.errors import ConfigurationError
from roamcast.report.wording import with_interval
from roamcast.world.scenario_file import Tables, read_tables

INTERRUPTED = 130
SHOWN = 12

_HEADLINES: dict[Outcome, str] = {
    "certain": "Recommendation: {choice}. It meets the demands and is better than every other candidate that might and "
    "was not screened out.",
    "level": "Recommendation: {choice}. It meets the demands; others are as good, or were not told apart from it.",
    "cautious": "Recommendation: {choice}. It meets the demands; others may be better, but may miss them.",
    "unclear": "No certain recommendation: {choice} comes first, but whether it meets the demands is not certain.",
    "none": "Nothing meets the demands. Closest: {choice}.",
}


def advise(
    scenario: Annotated[Path, typer.Argument(metavar="SCENARIO", help="Scenario file, as for roamcast simulate.")],
    want: Annotated[
        list[str] | None,
        typer.Option(help="A demand: delivery>=0.95, within(250ms)>=0.9, energy<=40, capacity>=2 (per s); repeatable."),
    ] = None,
    minimise: Annotated[
        str | None, typer.Option(help="The aim, among those that meet the demands: latency, airtime, …")
    ] = None,
    maximise: Annotated[
        str | None, typer.Option(help="Or this aim: delivery, within(250ms), … [default: delivery]")
    ] = None,
    protocols: Annotated[str, typer.Option(help="Names with commas between them; all that can be deployed.")] = "",
    budget_minutes: Annotated[float | None, typer.Option(help="No stage after the first may exceed it.")] = None,
    master: Annotated[str, typer.Option(help="The Spark master.")] = LOCAL,
    out: Annotated[Path | None, typer.Option(help="Directory for runs and answer (results/advice-SCENARIO).")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Answer with one JSON object.")] = False,
) -> None:
    """Recommend a protocol and its parameters for a scenario.

    Of those whose aim differs by less than 1 %, the one that takes the least airtime is recommended.
    """
    from roamcast.advise.search import SEEDS, Search
    from roamcast.campaign.execute import CampaignStoppedError
    from roamcast.campaign.session import start_session
    from roamcast.cli.campaign_progress import showing_progress

    question = Question(tuple(map(parse_demand, want or [])), parse_objective(minimise, maximise), looks=len(SEEDS))
    if budget_minutes is not None and not 0 < budget_minutes < float("inf"):
        raise ConfigurationError(f"--budget-minutes = {budget_minutes:g}: must be above 0 and finite")
    tables = read_tables(scenario)
    field = _field(tables, [name.strip() for name in protocols.split(",") if name.strip()])
    target = Path("results") / f"advice-{scenario.stem}" if out is None else out
    search = Search(scenario_of(tables), field, question, target, source=str(scenario), master=master)
    _say(f"{len(field)} candidates, {search.runs_at_most()} runs at most; starting Spark")
    began_s = monotonic()
    session = start_session(master)
    try:
        with showing_progress() as on_progress:
            budget_s = None if budget_minutes is None else 60 * budget_minutes
            advice = search.run(session, budget_s=budget_s, on_stage=_tell_stage, on_progress=on_progress)
    except KeyboardInterrupt:
        _say("stopped; every committed run is kept; the same command continues")
        raise typer.Exit(INTERRUPTED) from None
    except CampaignStoppedError as error:
        _say(f"{error}; every committed run is kept; the same command continues")
        raise typer.Exit(1) from None
    _say(f"took {monotonic() - began_s:.0f} s")
    if as_json:
        print_json(advice)
    else:
        _tell(advice)


def _field(tables: Tables, names: list[str]) -> list[Candidate]:
    """The candidates, and what the file itself would run if it names parameters."""
    field = candidates(names)
    own: Any = tables.get("parameters")
    if isinstance(own, dict) and own:
        mine = candidate(str(tables.get("protocol", "flooding")), own)
        field += [] if any(mine.label == each.label for each in field) else [mine]
    return field


def scenario_of(tables: Tables) -> Tables:
    """The file's scenario; files that it names are found from anywhere."""
    scenario: Tables = tables.get("scenario", {})
    mobility = scenario.get("mobility") if isinstance(scenario, dict) else None
    if isinstance(mobility, dict):
        for name, value in mobility.items():
            if name.endswith("_file"):
                mobility[name] = str(Path(str(value)).resolve())
    return scenario


def _tell_stage(stage: Stage) -> None:
    _say(f"stage {stage.number}, {stage.seeds} seeds: {stage.kept} of {stage.candidates} candidates left")


def _tell(advice: Advice) -> None:
    here = console()
    here.print(_HEADLINES[advice.outcome].format(choice=escape(advice.choice or "none")), style="bold", soft_wrap=True)
    wanted = ", ".join(advice.demands) or "nothing in particular"
    extreme = "large" if measure_of(advice.objective).better == "higher" else "small"
    aim = f"{short_name(advice.objective)} as {extreme} as possible, and of equals the least airtime"
    here.print(f"wanted: {wanted}; {aim}", soft_wrap=True, markup=False)
    if advice.lead is not None:
        unit = measure_of(advice.objective).unit
        difference = f"{with_interval(advice.lead.mean, advice.lead.low, advice.lead.high)} {unit}".strip()
        name = short_name(advice.objective)
        line = f"{name} against the runner-up {advice.runner_up}: {difference}, paired over {advice.lead.n} networks"
        here.print(line, soft_wrap=True, markup=False)
    if advice.level:
        here.print(f"as good or not told apart: {', '.join(advice.level)}", soft_wrap=True, markup=False)
    if advice.open:
        here.print(f"not certain to meet the demands: {', '.join(advice.open)}", soft_wrap=True, markup=False)
    measures = list(dict.fromkeys(name for each in advice.evidence for name in each.measures))
    rows = [_row(each, measures) for each in advice.evidence[:SHOWN]]
    print_table("Evidence", ["candidate", "networks", *map(_heading, measures), "demands", "dropped"], rows)
    if len(advice.evidence) > SHOWN:
        here.print(f"… and {len(advice.evidence) - SHOWN} more; --json lists all")
    here.print(
        "Mean ± half-width of the 95 % interval. What is called certain rests on t-tests, paired by seed and corrected "
        f"for their number at every look: all of it together holds with {advice.confidence:.0%} confidence. Who was "
        "screened out had a worse mean over few networks; that is no test.",
        soft_wrap=True,
    )
    _tell_paragraph("Why", advice.reasons)
    _tell_paragraph("When it would be another", [_told_elsewhere(each, advice) for each in advice.elsewhere])
    _tell_paragraph("Beyond what was validated", advice.warnings)
    for command in advice.commands:
        here.print(command, soft_wrap=True, markup=False)


def _tell_paragraph(title: str, sentences: Sequence[str]) -> None:
    if sentences:
        console().print(title, style="bold")
        for sentence in sentences:
            console().print(f"- {sentence}", soft_wrap=True, markup=False, highlight=False)


def _told_elsewhere(found: Elsewhere, advice: Advice) -> str:
    name, unit = short_name(advice.objective), measure_of(advice.objective).unit
    if found.first == "none":
        return f"{found.what}: nothing arrives with any of those compared."
    short = "" if found.meets or not advice.demands else ", though it misses the demands"
    value = "" if found.value is None else f" ({name} {found.value:.3g} {unit})".replace(" )", ")")
    if found.is_choice:
        return f"{found.what}: still the first{short}{value}."
    if found.choice_value is None:
        own = "the choice delivers nothing or cannot run"
    else:
        own = f"the choice has {found.choice_value:.3g} {unit}".rstrip()
        own += "" if found.choice_meets else " and misses the demands"
    return f"{found.what}: {found.first}{value}{short}; {own}."


def _row(evidence: Evidence, measures: list[str]) -> list[str]:
    networks = max((each.n for each in evidence.measures.values()), default=0)
    dropped = "" if evidence.dropped is None else f"stage {evidence.dropped.stage}: {evidence.dropped.reason}"
    cells = [_estimate(evidence.measures.get(measure)) for measure in measures]
    return [evidence.label, str(networks), *cells, evidence.standing or "–", dropped]


def _estimate(found: MeanEstimate | None) -> str:
    return "–" if found is None else with_interval(found.mean, found.low, found.high)


def _heading(measure: str) -> str:
    unit = measure_of(measure).unit
    return f"{short_name(measure)}, {unit}" if unit else short_name(measure)


def _say(text: str) -> None:
    typer.echo(f"roamcast: {text}", file=sys.stderr)
