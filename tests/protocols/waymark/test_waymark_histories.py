"""Waymark through random histories: its invariants hold at every instant, whatever happens and whatever nodes believe.

`ROAMCAST_HISTORIES=1000-1099` lives through more of them.
"""

import os
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roamcast.checkers import OwnWords, Watch, check_bounds, check_deliveries, check_no_circles
from roamcast.interests import Intervals
from roamcast.protocols.waymark.messages import Where
from roamcast.testing import TinyNet
from roamcast.world.scenario import Faults, Mobility, Partition, Positioning, Run, Scenario, Workload

ALL = Intervals.of((0, 100))
TRIES_MAX = 3


def histories() -> list[int]:
    first, _, last = os.environ.get("ROAMCAST_HISTORIES", "1-3").partition("-")
    return list(range(int(first), int(last or first) + 1))


def faulty(seed: int) -> Scenario:
    """A small world in which everything goes wrong; which things most depends on the seed."""
    return Scenario(
        nodes=14,
        area_m=(550.0, 550.0),
        duration_s=30.0,
        mobility=Mobility(speed_min_mps=1.0, speed_max_mps=(5.0, 15.0, 30.0)[seed % 3]),
        positioning=Positioning(source="none" if seed % 2 else "exact", bias_m=15.0 if seed % 4 == 0 else 0.0),
        workload=Workload(publishers=4, rate_per_s=1.0, selectivity=0.3, resubscribe_period_s=8.0, tail_s=5.0),
        faults=Faults(
            return_share=0.2,
            return_after_s=4.0,
            leave_share=0.1,
            join_share=0.1,
            partitions=(Partition(from_s=8.0, until_s=16.0, west_m=0.0, south_m=0.0, east_m=275.0, north_m=550.0),),
        ),
    )


@pytest.mark.parametrize("seed", histories())
def test_invariants_hold_through_faults(seed: int) -> None:
    run = Run(scenario=faulty(seed), protocol="waymark", parameters={"custody_bytes": 2000}, seed=seed)
    watch = Watch(run, OwnWords(), check_no_circles, check_bounds, step_s=0.25)
    watch.run_until(run.scenario.duration_s)
    watch.simulation.finish()
    check_deliveries(watch.simulation.recorder.table())


@st.composite
def believers(draw: st.DrawFn) -> tuple[int, list[tuple[int, int]], dict[int, list[tuple[int, ...]]], int]:
    """A connected network, and what each node is made to believe about the links of all: anything at all."""
    nodes = draw(st.integers(4, 7))
    links = {(draw(st.integers(0, node - 1)), node) for node in range(1, nodes)}
    links |= draw(
        st.sets(st.tuples(st.integers(0, nodes - 2), st.integers(1, nodes - 1)).filter(lambda p: p[0] < p[1]))
    )
    neighbours = st.lists(st.integers(0, nodes - 1), max_size=4, unique=True).map(lambda found: tuple(sorted(found)))
    beliefs = {node: draw(st.lists(neighbours, min_size=nodes, max_size=nodes)) for node in range(nodes)}
    return nodes, sorted(links), beliefs, draw(st.integers(0, 5))


@settings(max_examples=40, deadline=None)
@given(believers())
def test_no_belief_about_links_makes_an_event_go_round_for_ever(case: Any) -> None:
    nodes, links, beliefs, losses = case
    parameters = {"custody_s": 0.0, "tries_max": TRIES_MAX, "patience_s": 0.03}
    net: TinyNet[Any] = TinyNet(links, "waymark", parameters, nodes=nodes)
    for node in range(1, nodes):
        net.subscribe(node, ALL)
    net.run(25.0)
    for node, lists in beliefs.items():
        for other, neighbours in enumerate(lists):
            if other != node:
                number = net.node(other).records.own.where_number
                lie = Where(other, number + 1, None, tuple(n for n in neighbours if n != other), ())
                net.node(node).records.learn_where(lie, True)
    net.drop("Carry", count=losses)
    event = net.publish(0, 42)
    start_s = net.now_s
    net.run(4.0)
    name = f"event {event.publisher}/{event.number}"
    sent = Counter(
        record.node
        for record in net.records
        if record.time_s >= start_s and record.kind == "broadcast" and "Carry" in record.text and name in record.text
    )
    assert all(count <= TRIES_MAX * nodes for count in sent.values()), sent
    last_s = max((r.time_s for r in net.records if "Carry" in r.text and name in r.text), default=start_s)
    assert last_s < start_s + 2.0
    assert all(net.receivers(event).count(node) <= 1 for node in range(nodes))
