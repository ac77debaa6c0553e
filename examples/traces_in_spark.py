"""Your own questions to a campaign, in Spark: a worked example.

Run it as a script, or cell by cell in a notebook (`# %%` starts a cell). First make a campaign:

    roamcast campaign run campaigns/quickstart.toml --out results/quickstart
    python examples/traces_in_spark.py results/quickstart

`read_traces` reads the trace of one run (`roamcast simulate --trace DIR`) and of a live node in the same way.
"""

# %% A session, and the traces as one table
import sys

from pyspark.sql import functions as f

from roamcast.analysis.source import read_traces
from roamcast.campaign.session import start_session
from roamcast.campaign.store import Store

directory = sys.argv[1] if len(sys.argv) > 1 else "results/quickstart"
spark = start_session()
trace = read_traces(spark, directory)
trace.printSchema()

# %% What is in it? One row is one observable thing; `kind` says which. A condition on it opens only the files it needs.
kinds = trace.groupBy("kind").count().orderBy("kind")
kinds.show()

# %% The plan says what each run was: join it to compare protocols
plan = spark.createDataFrame(Store(directory).plan().drop_columns("run"))
deliveries = trace.where(f.col("kind") == "delivered").join(plan, "run_id")
latencies = (
    deliveries.groupBy("protocol", "nodes")
    .agg(
        f.count("*").alias("deliveries"),
        f.round(f.avg("value") * 1000, 2).alias("latency_ms"),
        f.round(f.percentile("value", 0.99) * 1000, 2).alias("latency_ms_p99"),
    )
    .orderBy(f.col("nodes").cast("int"), "protocol")
)
latencies.show()

# %% A question that no report asks: how does latency grow with every hop?
by_hops = (
    deliveries.groupBy("protocol", "hops")
    .agg(f.count("*").alias("deliveries"), f.round(f.avg("value") * 1000, 2).alias("latency_ms"))
    .where("deliveries > 20")
    .orderBy("protocol", "hops")
)
by_hops.show(40)

# %% Or in SQL: which nodes carry the load? `load` rows are a node's sums over the run
trace.createOrReplaceTempView("trace")
plan.createOrReplaceTempView("plan")
loads = spark.sql("""
    select protocol, node, round(avg(value), 3) as airtime_s
    from trace join plan using (run_id)
    where kind = 'load'
    group by protocol, node
    order by airtime_s desc, protocol, node
    limit 10
""")
loads.show()

# %% Every measure of the report is a step from table to table, and can be taken alone
from roamcast.analysis.measures import measure_runs  # noqa: E402 - a cell of its own

measured = measure_runs(trace).join(plan, "run_id")
ratios = measured.groupBy("protocol").avg("delivery_ratio", "stretch_mean").orderBy("protocol")
ratios.show()
