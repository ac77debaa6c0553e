"""Going on from a campaign in Spark: a worked example of the data source `roamcast`.

Run it as a script, or cell by cell in a notebook (`# %%` starts a cell). First make a campaign:

    roamcast campaign run campaigns/quickstart.toml --out out/quickstart
    python examples/traces_in_spark.py out/quickstart

The same format reads the trace of one run (`roamcast simulate --trace DIR`) and of a live node.
"""

# %% A session, and the traces as one table
import sys

from pyspark.sql import functions as f

from roamcast.analysis.source import register
from roamcast.campaign.session import start_session

directory = sys.argv[1] if len(sys.argv) > 1 else "out/quickstart"
spark = start_session()
register(spark)
trace = spark.read.format("roamcast").load(directory)
trace.printSchema()

# %% What is in it? One row is one observable thing; `kind` says which. Conditions on it open only the files they need.
trace.groupBy("kind").count().orderBy("kind").show()

# %% The plan says what each run was: join it to compare protocols
plan = spark.read.parquet(f"{directory}/plan.parquet").drop("run")
deliveries = trace.where(f.col("kind") == "delivered").join(plan, "run_id")
(
    deliveries.groupBy("protocol", "nodes")
    .agg(
        f.count("*").alias("deliveries"),
        f.round(f.avg("value") * 1000, 2).alias("latency_ms"),
        f.round(f.percentile_approx("value", 0.99) * 1000, 2).alias("latency_ms_p99"),
    )
    .orderBy(f.col("nodes").cast("int"), "protocol")
    .show()
)

# %% A question that no report asks: how does latency grow with every hop?
(
    deliveries.groupBy("protocol", "hops")
    .agg(f.count("*").alias("deliveries"), f.round(f.avg("value") * 1000, 2).alias("latency_ms"))
    .where("deliveries > 20")
    .orderBy("protocol", "hops")
    .show(40)
)

# %% Or in SQL: who carries the load? `load` rows are a node's sums over the run
trace.createOrReplaceTempView("trace")
plan.createOrReplaceTempView("plan")
spark.sql("""
    select protocol, node, round(avg(value), 3) as airtime_s
    from trace join plan using (run_id)
    where kind = 'load'
    group by protocol, node
    order by airtime_s desc
    limit 10
""").show()

# %% Every measure of the report is a step from table to table, and can be taken alone
from roamcast.analysis.measures import measure_runs  # noqa: E402 - a cell of its own

measure_runs(trace).join(plan, "run_id").groupBy("protocol").avg("delivery_ratio", "stretch_mean").show()
