"""From judgements to an answer, with made-up measures."""

from roamcast.advise.advice import Advice, give_advice
from roamcast.advise.candidates import Candidate, candidate
from roamcast.advise.demands import parse_demand
from roamcast.advise.judgement import Elimination, Findings, Question, Scores, Stage, judge
from roamcast.analysis.intervals import Observations
from roamcast.world.scenario import Scenario

QUESTION = Question((parse_demand("delivery>=0.9"),), "latency_ms_mean", looks=4)
FIELD: dict[str, Candidate] = {
    each.label: each
    for each in (candidate("flooding", {}), candidate("gossip", {"probability": 0.5}), candidate("somer", {}))
}


def observations(delivery: float, latency: float) -> dict[str, dict[int, float]]:
    wobble = {seed: 0.01 * (seed % 3 - 1) for seed in range(1, 10)}
    return {
        "delivery_ratio": {seed: delivery + by for seed, by in wobble.items()},
        "latency_ms_mean": {seed: latency * (1 + by) + seed for seed, by in wobble.items()},
    }


def advice(**deliveries_and_latencies: tuple[float, float]) -> Advice:
    names = dict(zip(("flooding", "gossip", "somer"), FIELD, strict=True))
    scores: Scores = {names[name]: observations(*each) for name, each in deliveries_and_latencies.items()}
    judgement = judge(QUESTION, scores)
    dropped = {name: Elimination(1, why) for name, why in judgement.dropped.items()}
    lacking = {label: Elimination(1, "1 runs failed; replay: x") for label in FIELD if label not in scores}
    findings = Findings(
        {name: dict(measured) for name, measured in scores.items()},
        judgement.standings,
        dropped | lacking,
        [Stage(1, 9, len(scores), len(judgement.kept))],
    )
    return give_advice(QUESTION, judgement, findings, FIELD, "net.toml", Scenario())


def test_a_certain_recommendation_with_its_lead_over_the_runner_up() -> None:
    found = advice(flooding=(0.97, 8.0), gossip=(0.97, 30.0), somer=(0.5, 2.0))
    assert (found.outcome, found.choice, found.runner_up) == ("certain", "flooding", "gossip probability=0.5")
    assert found.level == ()
    assert found.lead is not None
    assert found.lead.mean < -20
    assert found.lead.n == 9
    assert [each.label for each in found.evidence] == ["flooding", "gossip probability=0.5", "somer"]
    assert [each.standing for each in found.evidence] == ["meets", "meets", "misses"]
    assert found.evidence[0].dropped is None
    assert found.commands[0] == "roamcast simulate --scenario net.toml --protocol flooding"
    assert found.commands[1] == "roamcast key new network.key"
    assert found.commands[2] == "roamcast key certify network.authority node-1.node"
    assert found.commands[3].startswith("roamcast node --protocol flooding --language ")
    assert found.commands[3].endswith("--site 1000x1000 --range 200 --key network.key --identity node-1.node")


def test_level_candidates_are_named() -> None:
    found = advice(flooding=(0.97, 8.0), gossip=(0.97, 8.0))
    assert (found.outcome, found.choice, found.level) == ("level", "flooding", ("gossip probability=0.5",))
    assert found.evidence[-1].label == "somer"
    assert found.evidence[-1].standing is None
    assert found.evidence[-1].measures == {}


def test_a_better_one_that_may_miss_the_demand_is_left_open() -> None:
    found = advice(flooding=(0.97, 8.0), gossip=(0.9, 2.0), somer=(0.97, 30.0))
    assert (found.outcome, found.choice, found.open) == ("cautious", "flooding", ("gossip probability=0.5",))
    assert found.runner_up == "somer"
    assert found.level == ()


def test_the_cheaper_of_equals_is_recommended() -> None:
    delivery = observations(0.97, 8.0)["delivery_ratio"]
    prices = dict(zip(FIELD, (7.0, 2.0, 5.0), strict=True))
    scores: dict[str, dict[str, Observations]] = {
        name: {"delivery_ratio": delivery, "airtime_per_delivery_ms": dict.fromkeys(delivery, price)}
        for name, price in prices.items()
    }
    question = Question((), "delivery_ratio", looks=4)
    judgement = judge(question, scores)
    findings = Findings(scores, judgement.standings, {}, [Stage(1, 9, 3, 3)])
    found = give_advice(question, judgement, findings, FIELD, "net.toml", Scenario())
    assert [each.label for each in found.evidence] == ["gossip probability=0.5", "somer", "flooding"]
    assert (found.outcome, found.choice, found.runner_up) == ("level", "gossip probability=0.5", "somer")
    assert found.level == ("flooding", "somer")


def test_parameters_are_part_of_the_commands() -> None:
    found = advice(flooding=(0.97, 30.0), gossip=(0.97, 8.0))
    assert found.choice == "gossip probability=0.5"
    assert all("--protocol gossip --set probability=0.5" in found.commands[at] for at in (0, 3))


def test_nothing_meets_the_demand_and_what_comes_closest() -> None:
    found = advice(flooding=(0.8, 30.0), gossip=(0.4, 8.0), somer=(0.7, 1.0))
    assert (found.outcome, found.choice, found.runner_up, found.lead) == ("none", "flooding", None, None)
    assert [each.label for each in found.evidence] == ["flooding", "somer", "gossip probability=0.5"]


def test_what_may_meet_the_demand_is_called_uncertain() -> None:
    found = advice(flooding=(0.9, 30.0), gossip=(0.4, 8.0))
    assert (found.outcome, found.choice) == ("unclear", "flooding")


def test_if_every_run_failed_there_is_no_choice() -> None:
    found = advice()
    assert (found.outcome, found.choice, found.commands) == ("none", None, ())
    assert len(found.evidence) == len(FIELD)
