"""Chains and causal graphs on Spark equal those of the single run's summary."""

import pytest
from pyspark.sql import SparkSession

from roamcast.analysis.chains import COLUMNS, chain_measures
from roamcast.trace.chains import causal_measures
from roamcast.world.radio.models.ideal import Ideal
from roamcast.world.scenario import Causal, Faults, Mobility, Run, Scenario, Workload
from roamcast.world.simulator import simulate


def test_the_same_as_in_the_summary_of_one_run(spark: SparkSession) -> None:
    scenario = Scenario(
        nodes=60,
        area_m=(900, 900),
        duration_s=60,
        mobility=Mobility(model="waypoint"),
        radio=Ideal(loss=0.2),
        faults=Faults(crash_share=0.2),
        workload=Workload(
            publishers=3,
            subscribers=5,
            causal=Causal(dependencies="a => b => c => d; a => c; x => b", node_share=0.3, rate_per_s=0.5),
        ),
    )
    table = simulate(Run(scenario=scenario, protocol="flooding", seed=3)).recorder.table()
    expected = causal_measures(table.filter(table["kind"].to_numpy(zero_copy_only=False) == "published"))
    assert 0 < expected["causal_graph_completion_ratio"] < expected["chain_completion_ratio"] < 1
    (row,) = chain_measures(spark.createDataFrame(table.to_pandas()[list(_KEPT)])).collect()
    assert row.asDict() == {"run_id": table["run_id"][0].as_py()} | {
        name: pytest.approx(expected[name]) for name in COLUMNS
    }


_KEPT = ("run_id", "kind", "t", "node", "event_id", "cause_id", "count")
