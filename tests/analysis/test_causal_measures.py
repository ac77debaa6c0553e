"""Chains and causal graphs on Spark equal those of the single run's summary."""

import pytest
from pyspark.sql import SparkSession

from roamcast.analysis.chains import causal_graphs
from roamcast.trace import chains
from roamcast.trace.columns import rows_of_packed
from roamcast.world.radio.models.ideal import Ideal
from roamcast.world.scenario import Causal, Faults, Mobility, Run, Scenario, Workload
from roamcast.world.simulator import simulate


@pytest.mark.parametrize("dependencies", ["a => b => c => d; a => c; x => b", "a => b [2s] => c [0.5] => d [1s]"])
def test_the_same_as_in_the_summary_of_one_run(dependencies: str, spark: SparkSession) -> None:
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
            causal=Causal(dependencies=dependencies, node_share=0.3, rate_per_s=0.5),
        ),
    )
    recorder = simulate(Run(scenario=scenario, protocol="flooding", seed=3)).recorder
    table = recorder.table()
    published, waited = (rows_of_packed(recorder.packed(), (kind,)) for kind in ("published", "waited"))
    assert bool(len(waited)) == ("[" in dependencies)
    graphs = chains.causal_graphs(published, waited)
    names = ("root_id", "expected", "complete", "times_s", "last_s")
    columns = (graphs[name].to_list() for name in names)
    expected = [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
    assert any(graph["complete"] < graph["expected"] for graph in expected)
    assert any(graph["complete"] == graph["expected"] for graph in expected)
    rows = causal_graphs(spark.createDataFrame(table.to_pandas()[list(_KEPT)])).drop("run_id").collect()
    assert {row.root_id: row.asDict() for row in rows} == {
        graph["root_id"]: graph | {name: pytest.approx(graph[name]) for name in ("times_s", "last_s")}
        for graph in expected
    }


_KEPT = ("run_id", "kind", "t", "node", "event_id", "cause_id", "count", "value")
