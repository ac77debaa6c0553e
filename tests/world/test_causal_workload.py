"""Causal events: who plays what, who reacts, and that a trace shows whole chains."""

from collections import Counter
from typing import Any

import msgspec
import pytest

from roamcast.causal import causal_graphs
from roamcast.errors import ConfigurationError
from roamcast.events import NO_EVENT, Event, event_id
from roamcast.interests import Intervals, Topics
from roamcast.trace.summary import summarise
from roamcast.world.causal_workload import CausalWorkload, causal_nodes, causal_specification, example
from roamcast.world.radio.models.ideal import Ideal
from roamcast.world.scenario import Causal, Faults, Mobility, Run, Scenario, Workload
from roamcast.world.simulator import simulate
from roamcast.world.workload import Advertise, Publish, Subscribe

THESIS = "a => b; a => c; a => d; b => e; c => e"


def scenario(nodes: int = 50, **causal: Any) -> Scenario:
    return Scenario(
        nodes=nodes,
        area_m=(400, 400),
        duration_s=30,
        mobility=Mobility(model="static"),
        radio=Ideal(range_m=250),
        workload=Workload(publishers=0, subscribers=0, causal=Causal(**({"dependencies": THESIS} | causal))),
    )


def published(run: Run) -> list[dict[str, Any]]:
    table = simulate(run).recorder.table()
    return [row for row in table.to_pylist() if row["kind"] == "published"]


def test_a_tenth_of_the_nodes_fills_disjoint_copies() -> None:
    assert len(causal_specification(scenario(nodes=50)).types) == 5
    assert len(causal_specification(scenario(nodes=250)).types) == 25
    assert len(causal_specification(scenario(nodes=250, graphs=1)).types) == 5
    workload = CausalWorkload(scenario(nodes=250), seed=1)
    assert [len(players) for players in workload.players] == [1] * 25
    assert sorted(node for players in workload.players for node in players) == sorted(causal_nodes(scenario(250), 1))


def test_types_lie_outside_the_pool_of_other_events() -> None:
    specification = causal_specification(scenario())
    pool = Intervals.of((0, Workload().pool))
    assert not any(event_type.interest.overlaps(pool) for event_type in specification.types)


def test_fewer_nodes_than_types_play_several() -> None:
    workload = CausalWorkload(scenario(nodes=20), seed=1)  # two nodes, five types
    played = Counter(node for players in workload.players for node in players)
    assert sorted(played.values()) == [2, 3]


def test_who_plays_a_type_advertises_it_and_subscribes_to_its_causes() -> None:
    workload = CausalWorkload(scenario(), seed=5)
    actions = workload.actions(seed=5)
    types = workload.specification.types
    for number, players in enumerate(workload.players):
        (node,) = players
        advertised = [action.interest for action in actions if isinstance(action, Advertise) and action.node == node]
        asked = {str(action.interest) for action in actions if isinstance(action, Subscribe) and action.node == node}
        assert advertised == [types[number].interest]
        assert asked == {str(types[cause].interest) for cause in workload.specification.causes(number)}
    initiators = {action.node for action in actions if isinstance(action, Publish)}
    assert initiators == set(workload.players[0])


def test_a_node_reacts_once_per_event_and_dependency() -> None:
    workload = CausalWorkload(scenario(), seed=5)
    (initiator,), (reacting,) = workload.players[:2]
    event = Event(event_id(initiator, 1), 0.0, Workload().pool)
    (reaction,) = workload.reactions(reacting, event)
    assert (reaction.publish.node, reaction.publish.content, reaction.publish.cause) == (
        reacting,
        Workload().pool + 1,
        event.id,
    )
    assert 0 <= reaction.delay_s <= 0.01
    assert workload.reactions(reacting, event) == []
    assert workload.reactions(initiator, event) == []
    assert workload.reactions(reacting, Event(event_id(9, 9), 0.0, 17)) == []


def test_chains_that_should_go_on_are_ways_to_the_ends() -> None:
    workload = CausalWorkload(scenario(nodes=90, graphs=1), seed=5)  # nine nodes: two each for a to d, one for e
    assert [len(players) for players in workload.players] == [2, 2, 2, 2, 1]
    pool = Workload().pool
    first = [players[0] for players in workload.players]
    of = [workload.published(Event(event_id(node, 1), 0.0, pool + at)) for at, node in enumerate(first)]
    assert of == [2 * 1 + 2 * 1 + 2, 1, 1, 0, 0]  # through b, through c, and to d
    assert workload.published(Event(event_id(first[0], 2), 0.0, 3)) is None


UNSURE = "a => b [0.5]; b => c [0.5]"


def fated(protocol: str, seed: int = 3, **causal: Any) -> tuple[list[dict[str, Any]], Any]:
    run = Run(scenario=scenario(nodes=60, **causal), protocol=protocol, seed=seed)
    table = simulate(run).recorder.table()
    return [row for row in table.to_pylist() if row["kind"] == "published"], table


def test_probabilistic_links_meet_the_same_fate_under_every_protocol() -> None:
    rows, table = fated("flooding", dependencies=UNSURE, rate_per_s=1.0)
    begun = [row["count"] for row in rows if row["cause_id"] is None]
    assert 0.3 < sum(count == 0 for count in begun) / len(begun) < 0.7  # half of the initiations cause nothing
    other, _ = fated("gossip", dependencies=UNSURE, rate_per_s=1.0)
    key = [(row["node"], row["t"], row["count"]) for row in rows if row["cause_id"] is None]
    assert key == [(row["node"], row["t"], row["count"]) for row in other if row["cause_id"] is None]
    summary = summarise(table)
    assert summary["chains"] == sum(begun)
    assert summary["chain_completion_ratio"] == 1.0  # what fate does not allow is not missed


def test_delay_tolerant_links_take_their_time_and_are_not_charged() -> None:
    prompt = summarise(fated("flooding", dependencies="a => b => c")[1])
    rows, table = fated("flooding", dependencies="a => b [4s] => c")
    waited = {row["event_id"]: row["value"] for row in table.to_pylist() if row["kind"] == "waited"}
    of_b = [row for row in rows if row["cause_id"] is not None and row["value"] == Workload().pool + 1]
    assert of_b
    times = {row["event_id"]: row["t"] for row in rows}
    for row in of_b:
        assert 0 < waited[row["event_id"]] <= 4
        assert row["t"] - times[row["cause_id"]] >= waited[row["event_id"]]
    ends = [row for row in rows if row["value"] == Workload().pool + 2]
    assert all(waited[row["event_id"]] == waited[row["cause_id"]] for row in ends)  # of the whole chain so far
    assert summarise(table)["chain_time_ms_mean"] == pytest.approx(prompt["chain_time_ms_mean"], rel=0.5)


def test_a_trace_shows_whole_chains() -> None:
    rows = published(Run(scenario=scenario(), protocol="flooding", seed=2))
    events = {row["event_id"]: row for row in rows}
    roots = [row for row in rows if row["cause_id"] is None]
    assert roots
    assert all(row["count"] == 3 for row in roots)
    pool = Workload().pool
    for row in rows:
        if row["cause_id"] is not None:
            step = (events[row["cause_id"]]["value"] - pool, row["value"] - pool)
            assert step in {(0, 1), (0, 2), (0, 3), (1, 4), (2, 4)}
            assert events[row["cause_id"]]["t"] < row["t"] < events[row["cause_id"]]["t"] + 0.1
    kinds = Counter(row["value"] - pool for row in rows)
    assert kinds == {number: len(roots) * times for number, times in enumerate((1, 1, 1, 1, 2))}


def test_in_a_connected_network_every_causal_graph_completes() -> None:
    run = Run(scenario=scenario(nodes=100), protocol="oracle", seed=4)
    summary = summarise(simulate(run).recorder.table())
    assert summary["causal_graphs"] > 0
    assert summary["chains"] == 3 * summary["causal_graphs"]
    assert summary["chain_completion_ratio"] == summary["causal_graph_completion_ratio"] == 1
    assert 0 < summary["chain_time_ms_mean"] < summary["causal_graph_time_ms_mean"] < 100


def test_crashes_break_chains() -> None:
    struck = msgspec.structs.replace(scenario(nodes=100, rate_per_s=1.0), faults=Faults(crash_share=0.5))
    summary = summarise(simulate(Run(scenario=struck, protocol="oracle", seed=4)).recorder.table())
    assert 0 < summary["causal_graph_completion_ratio"] < summary["chain_completion_ratio"] < 1


def test_roles_give_the_causal_graph_that_was_dealt_out() -> None:
    workload = CausalWorkload(scenario(), seed=5)
    actions = workload.actions(seed=5)
    roles = {}
    for node in {action.node for action in actions}:
        mine = [action for action in actions if action.node == node]
        roles[node] = workload.specification.role(
            [action.interest for action in mine if isinstance(action, Advertise)],
            [action.interest for action in mine if isinstance(action, Subscribe)],
        )
    graphs = causal_graphs(workload.specification, roles)
    assert [graphs.levels(players[0]) for players in workload.players] == [(0,), (1,), (1,), (1,), (2,)]


def test_the_same_seed_reacts_the_same() -> None:
    run = Run(scenario=scenario(), protocol="flooding", seed=2)
    assert simulate(run).recorder.trace_hash() == simulate(run).recorder.trace_hash()


def test_examples_match_their_interest() -> None:
    for interest in (Intervals.of((5, 7), (9, 12)), Topics.of("fire/**"), Topics.of("*/north/*"), Topics.of("a/b")):
        assert interest.matches(Event(event_id(1, 1), 0.0, example(interest)))


def test_topics_carry_chains_too() -> None:
    workload = Workload(publishers=0, subscribers=0, language="topics", causal=Causal(dependencies="ask => answer"))
    still = Scenario(
        nodes=20,
        area_m=(200, 200),
        duration_s=30,
        mobility=Mobility(model="static"),
        radio=Ideal(),
        workload=workload,
    )
    summary = summarise(simulate(Run(scenario=still, protocol="flooding", seed=1)).recorder.table())
    assert (summary["chain_completion_ratio"], summary["chains"]) == (1, summary["causal_graphs"])


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"causal": Causal(dependencies="a => a")}, "never ends"),
        ({"causal": Causal(dependencies="a: 0..1; a => b", graphs=2)}, "copies = 2"),
        ({"language": "content", "causal": Causal(dependencies="a => b")}, "language = 'content'"),
    ],
)
def test_refuses_nonsense(settings: dict[str, Any], says: str) -> None:
    with pytest.raises((ConfigurationError, ValueError), match=says):
        Workload(**settings)


def test_refuses_a_share_of_less_than_two_nodes() -> None:
    with pytest.raises(ValueError, match=r"workload\.causal\.node_share = 0.1: must be two of 10 nodes"):
        scenario(nodes=10)


def test_events_without_a_cause_say_so() -> None:
    assert Publish(0.0, 1, 5, 64).cause == NO_EVENT
