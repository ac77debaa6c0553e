"""The simulator as a whole: determinism, faults, and what it writes down."""

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import msgspec
import pytest

from roamcast.events import Event, event_id
from roamcast.interests import Intervals
from roamcast.protocols.flooding.messages import Flood
from roamcast.protocols.routing.messages import Hello, Routed
from roamcast.trace.arrow import SCHEMA
from roamcast.trace.recorder import Recorder
from roamcast.world.radio.models.ideal import Ideal
from roamcast.world.radio.models.wifi_b import Wifi80211b
from roamcast.world.scenario import Faults, Mobility, Partition, Run, Scenario, Workload, run_id
from roamcast.world.simulator import Result, carried_event, simulate
from roamcast.world.workload import Action, Publish, Subscribe

SOURCE = Path(__file__).parent.parent.parent / "src"
LINE = tuple((100.0 * node, 50.0) for node in range(6))
IDEAL = Ideal(range_m=120.0)


def line(**changes: object) -> Run:
    fields = {
        "nodes": 6,
        "area_m": (600.0, 100.0),
        "duration_s": 20.0,
        "mobility": Mobility(model="static", positions_m=LINE),
        "radio": IDEAL,
    }
    return Run(scenario=Scenario(**(fields | changes)), protocol="flooding")  # type: ignore[arg-type]


def everybody_wants(times: Iterable[float], publisher: int = 0) -> list[Action]:
    subscribe: list[Action] = [Subscribe(0.0, node, Intervals.of((0, 10))) for node in range(6)]
    return subscribe + [Publish(t, publisher, 5, 10) for t in times]


def rows(recorder: Recorder, kind: str) -> list[dict[str, object]]:
    return [row for row in recorder.table().to_pylist() if row["kind"] == kind]


def deliveries(result: Result) -> Counter[object]:
    return Counter(row["node"] for row in rows(result.recorder, "delivered"))


def test_a_line_of_nodes_delivers_hop_by_hop() -> None:
    result = simulate(line(), actions=everybody_wants([1.0]))
    delivered = rows(result.recorder, "delivered")
    assert [(row["node"], row["hops"]) for row in delivered] == [(node, node) for node in range(1, 6)]
    assert all(row["value"] > (row["hops"] - 0.01) * IDEAL.delay_s for row in delivered)  # type: ignore[operator]
    published = rows(result.recorder, "published")
    assert [row["shortest_hops"] for row in published] == [[0, 1, 2, 3, 4, 5]]
    assert rows(result.recorder, "end")[-1]["count"] == 6
    assert result.recorder.table().schema == SCHEMA


def test_frames_are_summed_per_second_and_per_node_alike_and_as_raw_rows() -> None:
    actions = everybody_wants([1.0, 1.2, 3.5])
    summed, raw = simulate(line(), actions=actions), simulate(line(), actions=actions, raw_frames=True)
    per_second = {row["t"]: row["count"] for row in rows(summed.recorder, "frame")}
    assert per_second == {1.0: 12, 3.0: 6}
    assert sum(row["count"] for row in rows(summed.recorder, "load")) == 18  # type: ignore[misc]
    assert [row["detail"] for row in rows(raw.recorder, "frame")] == ["Flood"] * 18
    assert {row["node"] for row in rows(raw.recorder, "frame")} == set(range(6))


def test_raw_frames_name_the_event_they_carry_also_inside_an_envelope() -> None:
    raw = simulate(line(), actions=everybody_wants([1.0, 3.5]), raw_frames=True)
    published = [row["event_id"] for row in rows(raw.recorder, "published")]
    assert [row["event_id"] for row in rows(raw.recorder, "frame")] == [published[0]] * 6 + [published[1]] * 6
    event = Event(event_id(3, 7), 0.0, 5)
    assert carried_event(Routed(0, 1, 1, 0, Flood(1, event))) == event.id
    assert carried_event(Routed(0, 1, 1, 0, Hello(1, 1))) is None
    assert carried_event(None) is None


def test_the_trace_tells_every_corner_until_the_end_and_where_the_node_is_then() -> None:
    paths = (((0.0, 0.0, 0.0), (4.0, 40.0, 0.0), (8.0, 40.0, 40.0)), ((0.0, 5.0, 5.0),))
    scenario = Scenario(nodes=2, duration_s=6.0, mobility=Mobility(model="movements", paths=paths), radio=IDEAL)
    recorder = simulate(Run(scenario=scenario)).recorder
    told = [(row["node"], row["t"], row["x_m"], row["y_m"]) for row in rows(recorder, "position")]
    assert told == [(0, 0.0, 0.0, 0.0), (0, 4.0, 40.0, 0.0), (0, 6.0, 40.0, 20.0), (1, 0.0, 5.0, 5.0)]


def test_a_crashed_node_neither_hears_nor_relays_and_returns_with_its_subscriptions() -> None:
    run = line(faults=Faults(return_share=0.17, return_after_s=3.0))
    crash, back = (row for row in rows(simulate(run, actions=[]).recorder, "fault"))
    assert (crash["detail"], back["detail"]) == ("crash", "return")
    node, down, up = crash["node"], crash["t"], back["t"]
    assert isinstance(node, int)
    assert isinstance(down, float)
    assert isinstance(up, float)
    publisher = 0 if node else 5
    result = simulate(run, actions=everybody_wants([down - 0.5, down + 1, up + 1], publisher))
    received = [row["event_id"] for row in rows(result.recorder, "delivered") if row["node"] == node]
    numbers = [identity & 0xFFFFFFFF for identity in received]  # type: ignore[operator]
    assert numbers == [1, 3]
    behind = [other for other in range(6) if (other > node) == (publisher == 0) and other != node]
    assert all(deliveries(result)[other] == 2 for other in behind)
    assert len(rows(result.recorder, "subscribed")) == 6  # coming back is not a new subscription


def test_a_late_node_subscribes_when_it_joins() -> None:
    run = line(faults=Faults(join_share=0.17))
    (join,) = rows(simulate(run, actions=[]).recorder, "fault")
    result = simulate(run, actions=everybody_wants([0.01, 19.5], publisher=5 if join["node"] != 5 else 0))
    times = {row["node"]: row["t"] for row in rows(result.recorder, "subscribed")}
    assert times.pop(join["node"]) == join["t"]
    assert set(times.values()) == {0.0}
    assert deliveries(result)[join["node"]] == 1


def test_a_node_that_left_is_silent_and_does_not_publish() -> None:
    run = line(faults=Faults(leave_share=0.17))
    (leave,) = rows(simulate(run, actions=[]).recorder, "fault")
    node, t = leave["node"], leave["t"]
    assert isinstance(node, int)
    assert isinstance(t, float)
    result = simulate(run, actions=everybody_wants([t + 1], publisher=node))
    assert rows(result.recorder, "published") == []
    assert [row["detail"] for row in rows(result.recorder, "dropped")] == ["publisher-down"]


def test_a_partition_separates_an_area_for_its_time() -> None:
    partition = Partition(from_s=5, until_s=10, west_m=250, south_m=0, east_m=700, north_m=100)
    result = simulate(line(faults=Faults(partitions=(partition,))), actions=everybody_wants([2.0, 7.0, 12.0]))
    assert dict(deliveries(result)) == {1: 3, 2: 3, 3: 2, 4: 2, 5: 2}
    reachable = [row["shortest_hops"] for row in rows(result.recorder, "published")]
    assert reachable[1] == [0, 1, 2, -1, -1, -1]


def test_random_loss_is_counted() -> None:
    result = simulate(line(radio=Ideal(range_m=120.0, loss=0.3)), actions=everybody_wants([1.0, 2.0]))
    lost = {row["detail"]: row["count"] for row in rows(result.recorder, "lost")}
    assert lost == {"loss": result.medium.receptions_possible - result.medium.receptions}
    assert result.medium.receptions_possible > result.medium.receptions


def test_every_contact_of_moving_nodes_is_in_the_trace() -> None:
    scenario = Scenario(nodes=12, area_m=(400.0, 400.0), duration_s=60.0, radio=IDEAL)
    state: dict[tuple[object, object], object] = {}
    for row in rows(simulate(Run(scenario=scenario)).recorder, "contact"):
        pair = (row["node"], row["peer"])
        assert state.get(pair, 0.0) != row["value"]
        state[pair] = row["value"]
    assert len(state) > 10


MOVING = Run(
    scenario=Scenario(
        nodes=30,
        area_m=(600.0, 600.0),
        duration_s=15.0,
        radio=Wifi80211b(loss=0.05),
        workload=Workload(rate_per_s=1.0),
        faults=Faults(crash_share=0.1, return_share=0.1, return_after_s=3.0, join_share=0.1),
    ),
    protocol="gossip",
)

HASH_IN_ANOTHER_PROCESS = """
import msgspec, sys
from roamcast.world.scenario import Run
from roamcast.world.simulator import simulate
print(simulate(msgspec.json.decode(sys.stdin.read(), type=Run)).recorder.trace_hash())
"""


@pytest.mark.parametrize("hash_seed", ["0", "4242"])
def test_the_same_seed_gives_the_same_trace_in_any_process(hash_seed: str) -> None:
    environment = os.environ | {"PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(SOURCE)}
    answer = subprocess.run(
        [sys.executable, "-c", HASH_IN_ANOTHER_PROCESS],
        input=msgspec.json.encode(MOVING).decode(),
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert answer.stdout.strip() == simulate(MOVING).recorder.trace_hash()


def test_another_seed_gives_another_trace_and_the_protocol_does_not_change_the_world() -> None:
    other_seed = msgspec.structs.replace(MOVING, seed=2)
    other_protocol = msgspec.structs.replace(MOVING, protocol="flooding")
    results = [simulate(run) for run in (MOVING, other_seed, other_protocol)]
    assert len({result.recorder.trace_hash() for result in results}) == 3
    for kind in ("contact", "published", "subscribed", "fault"):
        mine, seeds, protocols = (
            [{**row, "run_id": ""} for row in rows(result.recorder, kind)] for result in results
        )
        assert mine == protocols
        assert mine != seeds


def test_the_run_id_belongs_to_everything_that_decides_the_run() -> None:
    ids = {
        run_id(run)
        for run in (
            MOVING,
            msgspec.structs.replace(MOVING, seed=2),
            msgspec.structs.replace(MOVING, protocol="flooding"),
            msgspec.structs.replace(MOVING, parameters={"jitter_s": 0.02}),
            msgspec.structs.replace(MOVING, scenario=Scenario()),
        )
    }
    assert len(ids) == 5
    assert run_id(MOVING) == run_id(msgspec.json.decode(msgspec.json.encode(MOVING), type=Run))
