"""The golf forum's workload meets the shares it is asked for, and the analysis in Spark sees what the summary sees."""

import pytest
from pyspark.sql import SparkSession

from roamcast.analysis.expected import expected_pairs
from roamcast.seeds import Random
from roamcast.trace.summary import summarise
from roamcast.world.golf import golf_event, golf_interest, golf_taste
from roamcast.world.radio.models.ideal import Ideal
from roamcast.world.scenario import Mobility, Run, Scenario, Workload
from roamcast.world.simulator import simulate


@pytest.mark.parametrize("selectivity", [0.02, 0.3, 0.6])
def test_subscriptions_match_the_share_that_was_asked_for(selectivity: float) -> None:
    random = Random(7)
    events = [golf_event(random) for _ in range(300)]
    interests = [golf_interest(selectivity, random) for _ in range(60)]
    matches = sum(interest.contains(event) for interest in interests for event in events)
    assert matches / 18_000 == pytest.approx(selectivity, rel=0.15)
    assert len(set(interests)) > 50


def test_everything_is_asked_for_in_one_way() -> None:
    assert {str(golf_interest(1.0, Random(seed))) for seed in range(20)} == {"/PGMFORUM"}


def test_a_divided_audience_wants_all_or_nothing() -> None:
    random = Random(3)
    events = [golf_event(random, for_audience=True) for _ in range(50)]
    tastes = [golf_taste(0.6, random) for _ in range(200)]
    counts = [sum(taste.contains(event) for event in events) for taste in tastes]
    assert set(counts) == {0, 50}
    assert 0.5 < counts.count(50) / 200 < 0.7


def test_spark_expects_the_same_pairs_as_the_summary(spark: SparkSession) -> None:
    scenario = Scenario(
        nodes=15,
        area_m=(400.0, 400.0),
        duration_s=15.0,
        mobility=Mobility(model="static"),
        radio=Ideal(),
        workload=Workload(language="content", selectivity=0.3, resubscribe_period_s=4.0),
    )
    table = simulate(Run(scenario=scenario)).recorder.table()
    summary = summarise(table)
    assert summary["delivered"] == summary["expected"] > 20
    assert expected_pairs(spark.createDataFrame(table)).count() == summary["expected"]
