"""One stage of a search: a campaign that is run, and what its runs measured."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pandas as pd
from pyspark.sql import SparkSession

from roamcast.analysis.analyse import Precision, measured_runs
from roamcast.analysis.intervals import Observations
from roamcast.campaign.conduct import Conductor, Progress
from roamcast.campaign.store import Store
from roamcast.campaign.text import campaign_text
from roamcast.world.scenario_file import Tables


class MeasuredRuns(NamedTuple):
    store: Store
    found: dict[str, dict[str, Observations]]  # candidate -> measure -> seed -> value; at the first place
    failed: dict[str, str]  # candidates with runs that failed, and how to replay one
    places: dict[int, dict[str, dict[str, Observations]]]  # the same as `found` for each place of the campaign


def run_stage(
    session: SparkSession,
    tables: Tables,
    file: Path,
    out: Path,
    *,
    master: str,
    measures: list[str],
    on_progress: Callable[[Progress], None],
) -> MeasuredRuns:
    """Writes the campaign to `file`, simulates what `out` does not hold yet, and measures all its runs."""
    file.write_text(campaign_text(tables), encoding="utf-8")
    conductor = Conductor(file, out, master=master)
    conductor.conduct(session, precise=Precision(session, conductor.store), on_progress=on_progress)
    store = conductor.store
    runs = measured_runs(session, store)[["place", "protocol", "seed", *measures]]
    places = {int(str(place)): _found(rows, measures) for place, rows in runs.groupby("place")}
    return MeasuredRuns(store, places.get(0, {}), _failed(store), places)


def run_s(store: Store, names: list[str]) -> float:
    """How long a run of these candidates takes, on the mean."""
    outcomes = store.outcomes()
    rows = store.plan().select(["protocol", "run_id"]).to_pylist()
    spent = [outcomes[row["run_id"]].wall_s for row in rows if row["protocol"] in names]
    return sum(spent) / len(spent) if spent else 0.0


def _failed(store: Store) -> dict[str, str]:
    outcomes = store.outcomes()
    errors: dict[str, list[str]] = {}
    for row in store.plan().select(["protocol", "run_id"]).to_pylist():
        if outcomes[row["run_id"]].failed:
            errors.setdefault(row["protocol"], []).append(store.replay_command(row["run_id"]))
    return {name: f"{len(commands)} runs failed; replay: {commands[0]}" for name, commands in errors.items()}


def _found(rows: pd.DataFrame, measures: list[str]) -> dict[str, dict[str, Observations]]:
    return {str(name): _observations(mine, measures) for name, mine in rows.groupby("protocol")}


def _observations(rows: pd.DataFrame, measures: list[str]) -> dict[str, Observations]:
    by_seed = rows.set_index("seed")
    return {
        measure: {int(str(seed)): float(value) for seed, value in pd.to_numeric(by_seed[measure]).dropna().items()}
        for measure in measures
    }
