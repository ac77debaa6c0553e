"""`roamcast bench spark`: what Spark costs over bare simulations, and how fast it measures big traces beside DuckDB."""

from typing import Annotated

import typer

from roamcast.bench import spark_measures, spark_overhead
from roamcast.cli.output import print_json, print_table


def spark(
    runs: Annotated[
        int, typer.Option(min=10, help="Runs of about 0.2 s for the comparison with a process pool.")
    ] = 200,
    deliveries: Annotated[
        list[int] | None, typer.Option(min=10_000, help="Sizes of the measured trace, repeatable (5 and 20 million).")
    ] = None,
    joins: Annotated[
        bool, typer.Option("--joins", help="Time the independent twin, which joins all rows, as well (slow).")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Answer as JSON.")] = False,
) -> None:
    """Time campaigns beside a process pool, and their measures beside DuckDB."""
    overhead = spark_overhead.measure(runs)
    measured = [spark_measures.measure(size, joins=joins) for size in deliveries or [5_000_000, 20_000_000]]
    if json:
        print_json({"overhead": overhead._asdict(), "measures": [row._asdict() for row in measured]})
        return
    print_table(
        "Campaign beside a process pool of the same width",
        ["runs", "s per run", "pool, s", "campaign, s", "ratio"],
        [
            [
                str(overhead.runs),
                f"{overhead.run_s:.3f}",
                f"{overhead.pool_s:.1f}",
                f"{overhead.spark_s:.1f}",
                f"{overhead.ratio:.2f}",
            ]
        ],
    )
    print_table(
        "Measures of raw traces beside DuckDB, two threads each; stored: a report that reads stored measures",
        ["deliveries", "Spark, s", "Spark, GiB", "joins, s", "DuckDB, s", "DuckDB, GiB", "ratio", "stored, s"],
        [
            [
                f"{row.deliveries:,}",
                f"{row.spark_s:.1f}",
                f"{row.spark_peak_gib:.1f}",
                "–" if row.joins_s is None else f"{row.joins_s:.1f}",
                f"{row.duckdb_s:.1f}",
                f"{row.duckdb_peak_gib:.1f}",
                f"{row.ratio:.1f}",
                f"{row.stored_s:.2f}",
            ]
            for row in measured
        ],
    )
