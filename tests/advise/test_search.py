"""Whole searches on the tests' Spark session: a lattice of sixteen nodes, ideal radio, few seeds."""

from pathlib import Path

import msgspec
import pytest
from pyspark.sql import SparkSession

from roamcast.advise.advice import Advice
from roamcast.advise.candidates import Candidate, candidate
from roamcast.advise.demands import parse_demand
from roamcast.advise.judgement import Question, Stage
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
    assert all(progress.simulated == progress.running == 0 for progress in told)


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


def test_the_screening_keeps_the_best_by_their_means(spark: SparkSession, tmp_path: Path) -> None:
    """Nothing is certain after one network, so only the rank decides; the leader and the flood of the middle go on."""
    field = [candidate("flooding", {"jitter_s": jitter_s}) for jitter_s in (0.001, 0.2, 1.0)]
    question = Question((parse_demand("delivery>=0.5"),), "latency_ms_mean", looks=2)
    asked = Search(
        SCENARIO,
        field,
        question,
        tmp_path,
        source="net.toml",
        master="local[2]",
        seeds=(1, 2),
        keep=(2,),
        look_around=False,
    )
    assert asked.runs_at_most() == 3 + 2
    found = asked.run(spark)
    assert found.stages[0] == Stage(1, 1, 3, 2)
    slowest = next(each for each in found.evidence if each.label == "flooding jitter_s=1")
    assert slowest.dropped is not None
    assert slowest.dropped.reason == "screened out: rank 3 of 3"


def test_progress_has_one_total_that_never_grows(spark: SparkSession, tmp_path: Path) -> None:
    told: list[Progress] = []
    asked = search(tmp_path, FIELD, "delivery>=0.99", seeds=(2, 3))
    asked.run(spark, on_progress=told.append)
    totals = [progress.planned for progress in told]
    assert totals[0] == asked.runs_at_most()
    assert totals == sorted(totals, reverse=True)
    assert told[-1].done == told[-1].planned


def test_a_demand_on_capacity_is_one_on_delivery_at_that_rate(spark: SparkSession, tmp_path: Path) -> None:
    found = search(tmp_path, FIELD[:2], "capacity>=3", seeds=(3, 4)).run(spark)
    assert found.demands == ("capacity >= 3 per s",)
    assert found.choice == "flooding"
    assert found.evidence[0].measures["delivery_ratio@3"].mean > 0.95
    assert found.evidence[1].standing == "misses"
    assert (tmp_path / "stage-1-rate-3.toml").is_file()


def test_it_says_why_and_when_it_would_be_another(found: Advice) -> None:
    assert found.reasons[0] == "flooding: every node repeats every event once."
    assert "delivery 1" in found.reasons[1]
    assert found.reasons[2].startswith("It is ahead of gossip")
    assert [each.what for each in found.elsewhere] == ["twice the rate", "no positions"]
    assert all(each.is_choice for each in found.elsewhere)
    assert found.warnings == ("The ideal radio has no collisions: real networks lose more and take longer.",)
