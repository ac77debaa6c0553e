"""Waymark's page in the book: its goals, place by place, from what is kept of a campaign.

    docs/results/data/waymark/runs.csv       every run's settings and measures
    docs/results/data/waymark/command.txt
    docs/results/data/waymark/notes.md       why goals do not hold, as far as it is known

`keep` takes these from the directory of `campaigns/waymark.toml` (with Spark, once); `write_goals` makes the page from
them alone. Every goal is judged by differences or ratios of runs with the same seed, that is, in the same network.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import jinja2
import pandas as pd
from pyspark.sql import SparkSession

from roamcast.analysis.analyse import analyse
from roamcast.analysis.intervals import Interval, Observations, difference, interval
from roamcast.campaign.store import Store

KEPT = Path("data") / "waymark"
RIVAL = "flooding"
SUBJECT = "waymark"
LIMIT = "oracle-broadcast"
DELIVERY = "delivery_ratio"
AIRTIME = "airtime_per_delivery_ms"
SOON = "within_100ms"
UPKEEP = "maintenance_ms_per_node_s"
MEASURED = (DELIVERY, "delivery_ratio_reachable", SOON, "latency_ms_p50", AIRTIME, UPKEEP)
UNTOLD = ("area_m", "range_m", "start_s", "tail_s", "scenario_radio_signal_model", "sweeps")
"""Settings that follow from others, and are not part of a place's name."""


class JudgedGoal(NamedTuple):
    place: str
    of: str
    wanted: str
    found: str
    verdict: str


def keep(session: SparkSession, store: Store, directory: Path) -> None:
    """Keeps of a campaign what its page needs."""
    plan = store.plan().drop_columns("run").to_pandas()
    runs = analyse(session, store).runs
    kept = directory / KEPT
    kept.mkdir(parents=True, exist_ok=True)
    runs[[*plan.columns, *MEASURED]].to_csv(kept / "runs.csv", index=False, float_format="%.6g")
    (kept / "command.txt").write_text(store.manifest().command + "\n", encoding="utf-8")


def is_kept(directory: Path) -> bool:
    return (directory / KEPT / "runs.csv").exists()


def write_goals(directory: Path) -> Path:
    """The page; returns the file written."""
    kept = directory / KEPT
    runs = pd.read_csv(kept / "runs.csv", dtype=str)
    for column in ("place", "seed", *MEASURED):
        runs[column] = pd.to_numeric(runs[column])
    settings = [
        name for name in runs.columns if name not in ("run_id", "place", "point", "protocol", "seed", *MEASURED)
    ]
    usual = {name: str(runs[name].mode()[0]) for name in settings}
    goals: list[JudgedGoal] = []
    costs: list[list[str]] = []
    for _, group in runs.groupby("place"):
        here = {name: str(group[name].iloc[0]) for name in settings}
        place = _name(here, usual)
        if float(here["rate_per_s"]) > 0:
            goals += _judge(place, here, group)
        costs.append([place, *(_mean(group, protocol, UPKEEP) for protocol in (RIVAL, SUBJECT))])
    notes = kept / "notes.md"
    page = _template().render(
        command=(kept / "command.txt").read_text(encoding="utf-8").strip(),
        seeds=int(runs.groupby(["place", "protocol"])["seed"].nunique().min()),
        runs=len(runs),
        counts={verdict: sum(goal.verdict == verdict for goal in goals) for verdict in ("holds", "undecided", "fails")},
        goals=goals,
        costs=costs,
        notes=notes.read_text(encoding="utf-8").strip() if notes.exists() else "",
    )
    path = directory / "waymark.md"
    path.write_text(page.rstrip() + "\n", encoding="utf-8")
    return path


def _judge(place: str, here: Mapping[str, str], group: pd.DataFrame) -> list[JudgedGoal]:
    mine, theirs = (_observed(group, protocol) for protocol in (SUBJECT, RIVAL))
    found = [_not_below(place, "delivery", difference(mine[DELIVERY], theirs[DELIVERY]))]
    share = _share_allowed(here)
    ratios = [mine[AIRTIME][seed] / value for seed, value in theirs[AIRTIME].items() if seed in mine[AIRTIME]]
    estimate = interval(ratios)
    verdict = "holds" if estimate.high <= share else "fails" if estimate.low > share else "undecided"
    wanted = f"at most {share:g} of flooding's"
    found.append(JudgedGoal(place, "airtime per delivery", wanted, _shown(estimate, ""), verdict))
    if _is_arena(here):
        found.append(_not_below(place, "within 100 ms", difference(mine[SOON], theirs[SOON])))
    return found


def _not_below(place: str, what: str, estimate: Interval) -> JudgedGoal:
    verdict = "holds" if estimate.low >= 0 else "fails" if estimate.high < 0 else "undecided"
    return JudgedGoal(place, what, "not below flooding's", _shown(estimate, "+"), verdict)


def _is_arena(here: Mapping[str, str]) -> bool:
    """Whether this is a place of the arena, with positions or without."""
    is_harder = float(here["shadowing_db"]) or float(here["loss"]) or float(here["bias_m"])
    is_other = here["scenario_mobility_model"] == "group" or here["scenario_radio_model"] == "lora"
    return not is_harder and not is_other and int(here["nodes"]) <= 200


def _share_allowed(here: Mapping[str, str]) -> float:
    """Of flooding's airtime."""
    if not _is_arena(here) and int(here["nodes"]) <= 200:
        return 0.6
    return 0.25 if here["source"] == "exact" else 0.5


def _observed(group: pd.DataFrame, protocol: str) -> dict[str, Observations]:
    """By measure and seed."""
    rows = group[group["protocol"] == protocol]
    return {
        name: {int(seed): float(value) for seed, value in zip(rows["seed"], rows[name], strict=True)}
        for name in (DELIVERY, AIRTIME, SOON)
    }


def _name(here: Mapping[str, str], usual: Mapping[str, str]) -> str:
    told = []
    for name, value in here.items():
        if name not in UNTOLD and value not in (usual[name], "nan"):
            told.append("no positions" if (name, value) == ("source", "none") else f"{_words(name)} {value}")
    return ", ".join(told) or "base point"


def _words(name: str) -> str:
    return name.removeprefix("scenario_").removesuffix("_model").replace("_", " ")


def _mean(group: pd.DataFrame, protocol: str, measure: str) -> str:
    return f"{group.loc[group['protocol'] == protocol, measure].mean():.3f}"


def _shown(estimate: Interval, sign: str) -> str:
    return f"{estimate.mean:{sign}.4f} ({estimate.low:{sign}.4f} to {estimate.high:{sign}.4f})"


def _template() -> jinja2.Template:
    loader = jinja2.FileSystemLoader(Path(__file__).parent / "templates")
    environment = jinja2.Environment(loader=loader, trim_blocks=True, lstrip_blocks=True, autoescape=False)
    return environment.get_template("waymark.md")
