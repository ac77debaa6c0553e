"""The page of what Spark costs, made from stored measurements alone.

docs/results/data/speed/spark.json      what `roamcast bench spark --store docs/results` measured
docs/results/spark.md
"""

from pathlib import Path

import jinja2
import msgspec

from roamcast.bench.goals import BenchGoal
from roamcast.bench.processes import Machine
from roamcast.bench.spark_cluster import Utilisation
from roamcast.bench.spark_measures import SparkMeasurement
from roamcast.bench.spark_overhead import Overhead

PAGE = "spark.md"
DATA = Path("data") / "speed" / "spark.json"
SLOTS = 32  # of the cluster for which a utilisation was asked
DUCKDB_SIZES = (5, 20)  # million deliveries
GROWTH_MAX = 1.25  # time per delivery; 1 is linear
REPORT_S_MAX = 5.0


class SparkBench(msgspec.Struct, frozen=True):
    machine: Machine
    form: str  # of the simulator
    overhead: Overhead
    cluster: Utilisation | None
    measures: tuple[SparkMeasurement, ...]


def goals(measured: SparkBench) -> list[BenchGoal]:
    cluster, rows = measured.cluster, sorted(measured.measures, key=lambda row: row.deliveries)
    ratios = {round(row.deliveries / 1e6): row.ratio for row in rows}
    busy = cluster.utilisation if cluster is not None and cluster.slots == SLOTS else None
    growth = None
    between = "largest against smallest trace"
    if len(rows) > 1:
        growth = (rows[-1].spark_s / rows[-1].deliveries) / (rows[0].spark_s / rows[0].deliveries)
        between = f"{rows[-1].deliveries / 1e6:.0f} M against {rows[0].deliveries / 1e6:.0f} M"
    return [
        BenchGoal("campaign beside a bare pool, runs of 0.2 s", 1.1, measured.overhead.ratio, unit=" times"),
        BenchGoal(f"utilisation of {SLOTS} slots, runs of 1 s", 0.9, busy, at_least=True),
        *(
            BenchGoal(f"measuring raw traces beside DuckDB, {size} M deliveries", 3, ratios.get(size), unit=" times")
            for size in DUCKDB_SIZES
        ),
        BenchGoal(f"time per delivery, {between}", GROWTH_MAX, growth, unit=" times"),
        BenchGoal(
            "a report on stored measures", REPORT_S_MAX, max((row.stored_s for row in rows), default=None), unit=" s"
        ),
    ]


def store(directory: Path, measured: SparkBench) -> Path:
    """Keeps the measurements in `directory` and makes its page again; returns the page."""
    data = directory / DATA
    data.parent.mkdir(parents=True, exist_ok=True)
    data.write_bytes(msgspec.json.format(msgspec.json.encode(measured), indent=1) + b"\n")
    page = directory / PAGE
    page.write_text(render(measured), encoding="utf-8")
    return page


def render(measured: SparkBench) -> str:
    loader = jinja2.FileSystemLoader(Path(__file__).parent / "templates")
    environment = jinja2.Environment(loader=loader, trim_blocks=True, lstrip_blocks=True, autoescape=False)
    text = environment.get_template(PAGE).render(
        machine=measured.machine,
        form=measured.form,
        overhead=measured.overhead,
        cluster=measured.cluster,
        rows=measured.measures,
        goals=goals(measured),
    )
    return text.rstrip() + "\n"
