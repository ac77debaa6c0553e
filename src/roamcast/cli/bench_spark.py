"""`roamcast bench spark`: what Spark costs over bare simulations, how busy it keeps a cluster, and how fast it measures
big traces beside DuckDB."""

from pathlib import Path
from typing import Annotated

import typer

import roamcast
from roamcast.bench import spark_cluster, spark_measures, spark_overhead
from roamcast.bench.processes import this_machine
from roamcast.bench.spark_page import SparkBench, goals, store
from roamcast.cli.output import print_json, print_table

RUNS_PER_SLOT = 30
SIZES = (2_000_000, 5_000_000, 20_000_000, 40_000_000)


def spark(
    runs: Annotated[
        int, typer.Option(min=10, help="Runs of about 0.2 s for the comparison with a process pool.")
    ] = 200,
    deliveries: Annotated[
        list[int] | None,
        typer.Option(min=10_000, help="Sizes of the measured trace, repeatable (2, 5, 20 and 40 million)."),
    ] = None,
    slots: Annotated[
        int, typer.Option(min=0, help="Slots of a standalone cluster whose runs sleep for 1 s; 0 leaves it out.")
    ] = 32,
    joins: Annotated[
        bool, typer.Option("--joins", help="Also time the independent implementation, which joins all rows (slow).")
    ] = False,
    directory: Annotated[
        Path | None,
        typer.Option("--store", help="Store the measurements here and make the page of Spark's cost again."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Answer as JSON.")] = False,
) -> None:
    """Time campaigns beside a process pool and on a cluster, and their measures beside DuckDB."""
    machine = this_machine()
    overhead = spark_overhead.measure(runs)
    cluster = spark_cluster.measure(RUNS_PER_SLOT * slots, slots) if slots else None
    measured = [spark_measures.measure(size, joins=joins) for size in deliveries or SIZES]
    whole = SparkBench(machine, roamcast.FORM, overhead, cluster, tuple(measured))
    if directory is not None:
        store(directory, whole)
    if json:
        busy = cluster._asdict() if cluster else None
        judged = [{"what": goal.what, "measured": goal.measured, "verdict": goal.verdict} for goal in goals(whole)]
        rows = [row._asdict() for row in measured]
        print_json({"overhead": overhead._asdict(), "cluster": busy, "measures": rows, "goals": judged})
        return
    print_table(
        "Campaign beside a process pool of the same width",
        ["runs", "s per run", "pool, s", "campaign, s", "ratio", "CPU time, ratio"],
        [
            [
                str(overhead.runs),
                f"{overhead.run_s:.3f}",
                f"{overhead.pool_s:.1f}",
                f"{overhead.spark_s:.1f}",
                f"{overhead.ratio:.2f}",
                f"{overhead.cpu_ratio:.2f}",
            ]
        ],
    )
    if cluster:
        print_table(
            "A standalone cluster on this machine, runs that sleep; utilisation is that of the runs alone",
            ["slots", "runs", "s per run", "start, s", "warm-up, s", "runs, s", "utilisation"],
            [
                [
                    str(cluster.slots),
                    str(cluster.runs),
                    f"{cluster.run_s:.1f}",
                    f"{cluster.start_s:.1f}",
                    f"{cluster.warm_up_s:.1f}",
                    f"{cluster.wall_s:.1f}",
                    f"{cluster.utilisation:.2f}",
                ]
            ],
        )
    print_table(
        "Measures of raw traces beside DuckDB, two threads each; stored: a report that reads stored measures",
        ["deliveries", "Spark, s", "Spark, GiB", "joins, s", "DuckDB, s", "DuckDB, GiB", "ratio", "CPU", "stored, s"],
        [
            [
                f"{row.deliveries:,}",
                f"{row.spark_s:.1f}",
                f"{row.spark_peak_gib:.1f}",
                "–" if row.joins_s is None else f"{row.joins_s:.1f}",
                f"{row.duckdb_s:.1f}",
                f"{row.duckdb_peak_gib:.1f}",
                f"{row.ratio:.1f}",
                f"{row.cpu_ratio:.1f}",
                f"{row.stored_s:.2f}",
            ]
            for row in measured
        ],
    )
    judged_rows = [[goal.what, goal.requirement, goal.figure, goal.verdict] for goal in goals(whole)]
    print_table("Goals", ["goal", "required", "measured", ""], judged_rows)
