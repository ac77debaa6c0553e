"""The agenda: who does what and when, from the seed alone."""

import itertools
from collections import Counter
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roamcast.interests import Intervals, Topics
from roamcast.world.scenario import Scenario, Workload
from roamcast.world.workload import Action, Advertise, Publish, Subscribe, Unsubscribe, agenda

Pattern = Literal["constant", "poisson", "ramp", "burst"]


def drawn(seed: int = 1, nodes: int = 20, duration_s: float = 100.0, **workload: object) -> list[Action]:
    return agenda(Scenario(nodes=nodes, duration_s=duration_s, workload=Workload(**workload)), seed)  # type: ignore[arg-type]


def publications(actions: list[Action]) -> list[Publish]:
    return [action for action in actions if isinstance(action, Publish)]


def subscribed(actions: list[Action]) -> list[Subscribe]:
    return [action for action in actions if isinstance(action, Subscribe)]


def test_the_seed_decides_everything_and_another_seed_something_else() -> None:
    assert drawn(seed=3) == drawn(seed=3)
    assert drawn(seed=3) != drawn(seed=4)


def test_the_agenda_is_sorted_by_time_and_node() -> None:
    actions = drawn(resubscribe_period_s=10.0, subscriptions_per_node=3)
    assert [action[:2] for action in actions] == sorted(action[:2] for action in actions)


def test_shares_and_counts_choose_that_many_nodes() -> None:
    actions = drawn(publisher_share=0.25, subscribers=7)
    assert len({action.node for action in publications(actions)}) == 5
    assert len({action.node for action in actions if isinstance(action, Advertise)}) == 5
    assert len({action.node for action in subscribed(actions)}) == 7
    nobody = drawn(publishers=0, subscriber_share=0.0)
    assert nobody == []


def test_more_publishers_keep_the_fewer_and_do_not_touch_subscriptions() -> None:
    few, many = drawn(publishers=3), drawn(publishers=8)
    assert set(publications(few)) < set(publications(many))
    assert subscribed(few) == subscribed(many) == subscribed(drawn(rate_per_s=3.0))


def test_everybody_asks_and_advertises_in_the_first_second() -> None:
    actions = [action for action in drawn() if not isinstance(action, Publish)]
    assert all(0 <= action.t_s < 1 for action in actions)
    assert len({action.t_s for action in actions}) == len(actions)
    assert all(action.t_s < 0.5 for action in drawn(duration_s=0.5))


def test_publishers_advertise_all_they_may_publish() -> None:
    assert {a.interest for a in drawn(pool=50) if isinstance(a, Advertise)} == {Intervals.of((0, 50))}
    assert {a.interest for a in drawn(language="topics") if isinstance(a, Advertise)} == {Topics.of("**")}


@pytest.mark.parametrize("pattern", ["constant", "poisson", "ramp", "burst"])
def test_publications_keep_to_their_window_and_their_mean_rate(pattern: Pattern) -> None:
    actions = publications(drawn(pattern=pattern, publishers=20, rate_per_s=2.0, start_s=10.0, tail_s=10.0))
    assert all(10 <= action.t_s < 90 for action in actions)
    assert len(actions) == pytest.approx(20 * 2.0 * 80, rel=0.05)
    assert all(action.payload_bytes == 64 for action in actions)


def test_a_constant_rate_has_an_even_period_and_random_phases() -> None:
    actions = publications(drawn(publishers=5, rate_per_s=0.5))
    phases = set()
    for node in {action.node for action in actions}:
        times = [action.t_s for action in actions if action.node == node]
        phases.add(times[0])
        assert times[0] < 5 + 2
        assert all(later - earlier == pytest.approx(2.0) for earlier, later in itertools.pairwise(times))
    assert len(phases) == 5


def test_poisson_gaps_vary_as_much_as_they_are_long() -> None:
    actions = publications(drawn(publishers=1, pattern="poisson", rate_per_s=20.0, duration_s=110.0))
    gaps = [later.t_s - earlier.t_s for earlier, later in itertools.pairwise(actions)]
    mean = sum(gaps) / len(gaps)
    variance = sum((gap - mean) ** 2 for gap in gaps) / len(gaps)
    assert variance**0.5 / mean == pytest.approx(1.0, abs=0.1)


def test_a_ramp_grows_evenly_from_nothing_to_twice_the_mean() -> None:
    actions = publications(drawn(publishers=20, pattern="ramp", rate_per_s=5.0, start_s=0.0, tail_s=0.0))
    quarters = Counter(int(action.t_s // 25) for action in actions)
    shares = [quarters[quarter] / len(actions) for quarter in range(4)]
    assert shares == pytest.approx([1 / 16, 3 / 16, 5 / 16, 7 / 16], abs=0.01)


def test_bursts_are_where_they_should_be() -> None:
    actions = publications(drawn(pattern="burst", burst_period_s=20.0, burst_share=0.25, start_s=5.0, rate_per_s=2.0))
    assert all((action.t_s - 5.0) % 20.0 < 5.0 for action in actions)
    assert {int((action.t_s - 5.0) // 20.0) for action in actions} == {0, 1, 2, 3, 4}


def test_no_time_or_no_rate_means_no_publications() -> None:
    assert publications(drawn(rate_per_s=0.0)) == []
    assert publications(drawn(duration_s=9.0)) == []


@given(st.integers(1, 60), st.floats(0.01, 1), st.integers(0, 50))
@settings(deadline=None, derandomize=True, max_examples=60)
def test_an_interval_matches_its_share_of_the_pool_exactly(pool: int, selectivity: float, seed: int) -> None:
    for action in subscribed(drawn(seed, nodes=5, pool=pool, selectivity=selectivity, publishers=0)):
        matching = sum(action.interest.contains(value) for value in range(-pool, 2 * pool))
        assert matching == max(1, round(selectivity * pool))


@given(st.integers(1, 4), st.integers(1, 4), st.floats(0.001, 1), st.integers(0, 50))
@settings(deadline=None, derandomize=True, max_examples=60)
def test_a_topic_interest_matches_its_share_of_all_topics(
    depth: int, fanout: int, selectivity: float, seed: int
) -> None:
    names = [f"t{index}" for index in range(fanout)]
    everything = ["/".join(path) for path in itertools.product(names, repeat=depth)]
    actions = drawn(
        seed, nodes=5, language="topics", topic_depth=depth, topic_fanout=fanout, selectivity=selectivity, publishers=2
    )
    for subscription in subscribed(actions):
        matching = sum(subscription.interest.contains(topic) for topic in everything)
        assert matching == max(1, round(selectivity * len(everything)))
    assert {action.content for action in publications(actions)} <= set(everything)


def test_topic_interests_use_every_kind_of_pattern() -> None:
    actions = drawn(nodes=100, language="topics", topic_depth=4, selectivity=0.1, publishers=0)
    texts = [str(action.interest) for action in subscribed(actions)]
    patterns = [pattern for text in texts for pattern in text.split()]
    assert any("*" not in pattern for pattern in patterns)
    assert any(pattern.endswith("/**") for pattern in patterns)
    assert any("*" in pattern.split("/") for pattern in patterns)
    assert len(set(texts)) > 90


def test_events_are_spread_evenly() -> None:
    actions = publications(drawn(publishers=20, rate_per_s=5.0, pool=4))
    shares = Counter(action.content for action in actions)
    assert sorted(shares) == [0, 1, 2, 3]
    assert all(count / len(actions) == pytest.approx(0.25, abs=0.03) for count in shares.values())


def test_who_asks_for_nothing_does_not_ask() -> None:
    assert subscribed(drawn(selectivity=0.0)) == []


@pytest.mark.parametrize("language", ["intervals", "topics"])
def test_each_subscription_is_replaced_in_its_period(language: str) -> None:
    actions = drawn(language=language, resubscribe_period_s=30.0, subscriptions_per_node=2, publishers=0)
    for node in range(20):
        held: list[object] = []
        for action in (action for action in actions if action.node == node):
            if isinstance(action, Unsubscribe):
                held.remove(action.interest)
            elif isinstance(action, Subscribe):
                assert action.interest not in held
                held.append(action.interest)
        assert len(held) == 2
    assert sum(isinstance(action, Unsubscribe) for action in actions) == 20 * 2 * 3
    assert all(action.t_s < 100 for action in actions)


def test_where_all_is_wanted_already_a_second_subscription_is_left_out() -> None:
    actions = drawn(selectivity=1.0, subscriptions_per_node=3, resubscribe_period_s=40.0, publishers=0)
    assert len(subscribed(drawn(selectivity=1.0, subscriptions_per_node=3, publishers=0))) == 20
    assert {action.interest for action in subscribed(actions)} == {Intervals.of((0, 10_000))}
    assert len(subscribed(actions)) == 20 * 3
