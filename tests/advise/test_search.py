"""Whole searches on the tests' Spark session: a lattice of sixteen nodes, ideal radio, few seeds."""

from pathlib import Path

import msgspec
import pytest
from pyspark.sql import SparkSession

from roamcast.advise.advice import Advice, Stage
from roamcast.advise.candidates import Candidate, candidate
from roamcast.advise.demands import parse_demand
from roamcast.advise.judgement import Question
from roamcast.advise.search import Search
from roamcast.campaign.conduct import Progress

SCENARIO = {
    "nodes": 16,
    "area_m": 400,
    "duration_s": 12,
    "mobility": {"model": "grid", "spacing_m": 100},
    "radio": {"model": "ideal", "range_m": 110},
    "workload": {"publishers": 4, "selectivity": 0.5, "start_s": 2, "tail_s": 2},
}
FIELD = [
    candidate("flooding", {}),
    candidate("gossip", {"probability": 0.0, "certain_hops": 0}),  # reaches neighbours only
    candidate("flooding", {"jitter_s": 1.0}),
]


def search(out: Path, field: list[Candidate], want: str, seeds: tuple[int, ...] = (5, 6)) -> Search:
    question = Question((parse_demand(want),), "latency_ms_mean", looks=len(seeds))
    return Search(SCENARIO, field, question, out, source="net.toml", master="local[2]", seeds=seeds)


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("advice")


@pytest.fixture(scope="module")
def found(spark: SparkSession, directory: Path) -> Advice:
    return search(directory, FIELD, "delivery>=0.99").run(spark)


def test_the_patient_flood_is_dropped_and_the_quick_one_recommended(found: Advice) -> None:
    assert found.choice == "flooding"
    assert found.outcome == "certain"
    by_label = {each.label: each for each in found.evidence}
    patient = by_label["flooding jitter_s=1"]
    assert patient.standing == "meets"
    assert patient.measures["latency_ms_mean"].mean > 10 * by_label["flooding"].measures["latency_ms_mean"].mean
    assert patient.dropped is not None
    assert "worse than flooding" in patient.dropped.reason


def test_the_answer_is_kept_beside_the_stages(found: Advice, directory: Path) -> None:
    stored = msgspec.json.decode((directory / "advice.json").read_bytes(), type=Advice)
    assert stored == found
    assert (directory / "stage-1.toml").is_file()
    assert found.stages == (Stage(1, 5, 3, 1),)


def test_the_same_question_again_simulates_nothing(spark: SparkSession, found: Advice, directory: Path) -> None:
    told: list[Progress] = []
    again = search(directory, FIELD, "delivery>=0.99").run(spark, on_progress=told.append)
    assert again == found
    assert all(progress.done == progress.planned for progress in told)


def test_nothing_meets_an_impossible_demand(spark: SparkSession, directory: Path) -> None:
    answer = search(directory, FIELD, "latency<=0.001").run(spark)
    assert (answer.outcome, answer.choice) == ("none", "gossip probability=0 certain_hops=0")
    assert all(each.dropped is not None for each in answer.evidence)


def test_a_used_up_budget_ends_the_search_after_the_screening(spark: SparkSession, directory: Path) -> None:
    """What is left after the screening is not settled, and there is no time to go on."""
    close = [candidate("flooding", {}), candidate("gossip", {"probability": 0.9})]
    answer = search(directory, close, "delivery>=0.5").run(spark, budget_s=1e-9)
    assert answer.stages == (Stage(1, 5, 2, 2),)
    assert answer.outcome == "level"
