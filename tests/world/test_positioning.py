"""What nodes are told about where they are: exact, biased, drifting, nothing; and that the velocity fits."""

from math import hypot, sqrt
from typing import Any, ClassVar

import numpy as np
import pytest

from roamcast.interests import Interest
from roamcast.protocols import api
from roamcast.world.mobility import scenario_movements
from roamcast.world.positioning import ReportedPositions, whereabouts
from roamcast.world.scenario import Mobility, Positioning, Run, Scenario
from roamcast.world.simulator import Simulation


def told(
    positioning: Positioning, nodes: int = 500, duration_s: float = 60.0, model: str = "waypoint"
) -> ReportedPositions:
    mobility = Mobility(model=model)  # type: ignore[arg-type]
    scenario = Scenario(nodes=nodes, duration_s=duration_s, mobility=mobility, positioning=positioning)
    return whereabouts(scenario, scenario_movements(scenario, 1), 1)


def errors(positioning: Positioning, t_s: float, nodes: int = 500) -> list[tuple[float, float]]:
    exact, wrong = told(Positioning(), nodes), told(positioning, nodes)
    found: list[tuple[float, float]] = []
    for node in range(nodes):
        (x_m, y_m), (told_x_m, told_y_m) = exact.position(node, t_s), wrong.position(node, t_s)  # type: ignore[misc]
        found.append((told_x_m - x_m, told_y_m - y_m))
    return found


def rms(offsets: list[tuple[float, float]]) -> float:
    return sqrt(np.mean([x * x + y * y for x, y in offsets]))


def test_a_bias_is_fixed_and_leaves_the_velocity_alone() -> None:
    biased = Positioning(bias_m=20.0)
    early, late = errors(biased, 1.0), errors(biased, 55.0)
    assert rms(early) == pytest.approx(20.0, rel=0.1)
    assert np.abs(np.array(early) - np.array(late)).max() < 1e-9
    assert len(set(early)) == 500
    exact, wrong = told(Positioning()), told(biased)
    assert [wrong.velocity(node, 30.0) for node in range(9)] == [exact.velocity(node, 30.0) for node in range(9)]


def test_a_drift_wanders_at_its_pace() -> None:
    drifting = Positioning(drift_m=10.0, drift_time_s=20.0)
    at_start, soon, late = (errors(drifting, t_s) for t_s in (0.0, 20.0, 60.0))
    assert rms(at_start) == pytest.approx(10.0, rel=0.1)
    assert rms(late) == pytest.approx(10.0, rel=0.1)

    def likeness(one: list[tuple[float, float]], other: list[tuple[float, float]]) -> float:
        return float(np.corrcoef(np.ravel(one), np.ravel(other))[0, 1])

    assert likeness(at_start, soon) == pytest.approx(np.exp(-1), abs=0.1)
    assert likeness(at_start, late) == pytest.approx(np.exp(-3), abs=0.1)


def test_the_velocity_is_that_of_the_place_told() -> None:
    wrong = told(Positioning(bias_m=5.0, drift_m=10.0, drift_time_s=7.0), nodes=20)
    for node in range(20):
        for t_s in (0.31, 12.3, 48.9):
            before, after = wrong.position(node, t_s - 1e-4), wrong.position(node, t_s + 1e-4)
            velocity = wrong.velocity(node, t_s)
            assert before is not None
            assert after is not None
            assert velocity is not None
            assert velocity[0] == pytest.approx((after[0] - before[0]) / 2e-4, abs=1e-4)
            assert velocity[1] == pytest.approx((after[1] - before[1]) / 2e-4, abs=1e-4)
    at_rest = told(Positioning(drift_m=10.0), nodes=5, model="static")
    assert all(hypot(*(at_rest.velocity(node, 9.0) or (0, 0))) > 0 for node in range(5))


def test_without_positions_nobody_knows_anything() -> None:
    nothing = told(Positioning(source="none", bias_m=3.0))
    assert (nothing.position(0, 1.0), nothing.velocity(0, 1.0)) == (None, None)


class Asks(api.Protocol):
    """Keeps what its host says about its place."""

    name: ClassVar[str] = "asks"
    summary: ClassVar[str] = "asks where it is"
    Parameters: ClassVar[type[api.Parameters]] = api.Parameters
    messages: ClassVar[Any] = api.Message

    def __init__(self, host: api.Host, parameters: api.Parameters) -> None:
        super().__init__(host)

    def start(self) -> None:
        self.told = self.host.position(), self.host.velocity()

    def subscribe(self, interest: Interest) -> None: ...

    def unsubscribe(self, interest: Interest) -> None: ...

    def publish(self, event: Any) -> None: ...

    def on_message(self, sender: int, message: api.Message) -> None: ...


@pytest.mark.parametrize("source", ["exact", "none"])
def test_protocols_are_told_through_their_host(source: Any) -> None:
    positioning = Positioning(source=source, bias_m=50.0)
    scenario = Scenario(nodes=3, duration_s=5.0, positioning=positioning)
    simulation = Simulation(Run(scenario=scenario, protocol=f"{__name__}:Asks"))
    expected = whereabouts(scenario, simulation.movements, 1)
    for node, protocol in enumerate(simulation.protocols):
        assert isinstance(protocol, Asks)
        assert protocol.told == (expected.position(node, 0.0), expected.velocity(node, 0.0))
        assert (protocol.told[0] is None) == (source == "none")


def test_errors_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ValueError, match="bias_m = -1"):
        Positioning(bias_m=-1.0)
    with pytest.raises(ValueError, match=r"drift_time_s = 0.0: must be at least 0.1"):
        Positioning(drift_time_s=0.0)
