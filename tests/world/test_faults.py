"""The fault plan: disjoint nodes, whole numbers, times within the run."""

from collections import defaultdict

from hypothesis import given, settings
from hypothesis import strategies as st

from roamcast.world.faults import Fault, fault_plan
from roamcast.world.scenario import Faults, Scenario


def plan(seed: int = 1, nodes: int = 40, **faults: float) -> list[Fault]:
    return fault_plan(Scenario(nodes=nodes, duration_s=100.0, faults=Faults(**faults)), seed)  # type: ignore[arg-type]


def courses(faults: list[Fault]) -> dict[int, tuple[str, ...]]:
    happened: dict[int, list[str]] = defaultdict(list)
    for fault in faults:
        happened[fault.node].append(fault.what)
    return {node: tuple(whats) for node, whats in happened.items()}


def test_without_shares_nothing_happens() -> None:
    assert plan() == []


def test_the_seed_decides_everything() -> None:
    assert plan(seed=5, crash_share=0.5) == plan(seed=5, crash_share=0.5)
    assert plan(seed=5, crash_share=0.5) != plan(seed=6, crash_share=0.5)


def test_each_kind_strikes_its_share_of_nodes() -> None:
    faults = plan(crash_share=0.1, return_share=0.2, join_share=0.3, leave_share=0.4, return_after_s=1e-6)
    whats = list(courses(faults).values())
    assert [whats.count(kind) for kind in (("crash",), ("crash", "return"), ("join",), ("leave",))] == [4, 8, 12, 16]
    assert faults == sorted(faults)


def test_a_node_returns_after_its_time_unless_the_run_is_over() -> None:
    faults = plan(return_share=1.0, return_after_s=30.0)
    crashes = {fault.node: fault.t_s for fault in faults if fault.what == "crash"}
    returns = {fault.node: fault.t_s for fault in faults if fault.what == "return"}
    assert len(crashes) == 40
    assert returns == {node: t_s + 30.0 for node, t_s in crashes.items() if t_s + 30.0 < 100.0}
    assert 0 < len(returns) < 40


def test_times_are_spread_over_the_run() -> None:
    times_s = [fault.t_s for fault in plan(nodes=1000, crash_share=1.0)]
    assert all(0 < t_s < 100 for t_s in times_s)
    assert abs(sum(times_s) / len(times_s) - 50) < 3
    assert min(times_s) < 2
    assert max(times_s) > 98


@given(st.lists(st.floats(0, 0.25), min_size=4, max_size=4), st.integers(1, 30), st.integers(0, 99))
@settings(deadline=None, derandomize=True, max_examples=100)
def test_no_node_suffers_two_kinds_and_shares_are_rounded(shares: list[float], nodes: int, seed: int) -> None:
    names = ("crash_share", "return_share", "join_share", "leave_share")
    faults = plan(seed, nodes, **dict(zip(names, shares, strict=True)), return_after_s=1e-9)
    struck = courses(faults)
    assert set(struck.values()) <= {("crash",), ("crash", "return"), ("join",), ("leave",)}
    assert abs(len(struck) - sum(shares) * nodes) <= 0.5 + 1e-9
    for share, course in zip(shares, [("crash",), ("crash", "return"), ("join",), ("leave",)], strict=True):
        assert abs(list(struck.values()).count(course) - share * nodes) <= 1 + 1e-9
