"""Time and energy by state of the radio."""

import pytest

from roamcast.trace.summary import summarise
from roamcast.world.energy import Asleep
from roamcast.world.radio.models.ideal import Ideal
from roamcast.world.radio.models.lora import Lora
from roamcast.world.radio.models.wifi_b import Wifi80211b
from roamcast.world.radio.models.wifi_g import Wifi80211g
from roamcast.world.radio.power import Power
from roamcast.world.radio.settings import Radio
from roamcast.world.radio.signals import LogDistance
from roamcast.world.scenario import Faults, Mobility, Run, Scenario, Workload
from roamcast.world.simulator import Simulation, simulate

ROUND = Power(transmit_mw=1000.0, receive_mw=100.0, idle_mw=10.0, sleep_mw=1.0, battery_j=50.0)


def run_of(radio: Radio, faults: Faults = Faults()) -> Run:  # noqa: B008
    scenario = Scenario(
        nodes=15,
        area_m=(400.0, 400.0),
        duration_s=20.0,
        mobility=Mobility(model="static"),
        radio=radio,
        workload=Workload(rate_per_s=1.0, selectivity=0.5, start_s=1.0),
        faults=faults,
    )
    return Run(scenario=scenario, seed=1)


def states(run: Run) -> dict[int, dict[str, tuple[float, float]]]:
    """Per node and state, seconds and mJ."""
    found: dict[int, dict[str, tuple[float, float]]] = {}
    for row in simulate(run).recorder.table().to_pylist():
        if row["kind"] == "energy":
            found.setdefault(row["node"], {})[row["category"]] = (row["count"] / 1e6, row["value"])
    return found


@pytest.mark.parametrize(
    "radio",
    [
        Ideal(power=ROUND),
        Wifi80211b(power=ROUND),
        Wifi80211g(power=ROUND, signal=LogDistance(shadowing_db=4.0, fading="rayleigh")),
        Lora(power=ROUND, range_m=200.0, duty_cycle=1.0),
    ],
)
def test_the_states_of_every_node_fill_the_run(radio: Radio) -> None:
    found = states(run_of(radio, Faults(crash_share=0.2, join_share=0.2)))
    assert sorted(found) == list(range(15))
    for by_state in found.values():
        assert sum(spent_s for spent_s, _ in by_state.values()) == pytest.approx(20.0, abs=0.001)
        for state, draws_mw in (("transmit", 1000.0), ("receive", 100.0), ("idle", 10.0), ("sleep", 1.0)):
            spent_s, used_mj = by_state[state]
            assert spent_s >= 0
            assert used_mj == pytest.approx(spent_s * draws_mw, abs=0.01)
    assert sum(by_state["sleep"][0] > 0 for by_state in found.values()) == 6
    assert all(by_state["receive"][0] > 0 for by_state in found.values() if not by_state["sleep"][0])


def test_receiving_takes_as_long_as_others_send() -> None:
    """Two nodes, and one sends: what it transmits the other receives, to the microsecond."""
    scenario = Scenario(
        nodes=2,
        area_m=(100.0, 100.0),
        duration_s=10.0,
        mobility=Mobility(model="static"),
        radio=Wifi80211b(power=ROUND),
        workload=Workload(publishers=1, rate_per_s=2.0, selectivity=1.0, start_s=1.0),
    )
    found = states(Run(scenario=scenario, parameters={"jitter_s": 0.001}, seed=1))
    assert found[0]["transmit"][0] == pytest.approx(found[1]["receive"][0], abs=2e-6)
    assert found[1]["transmit"][0] == pytest.approx(found[0]["receive"][0], abs=2e-6)
    assert found[0]["transmit"][0] > 0


def test_the_measures_follow_from_the_rows() -> None:
    run = run_of(Wifi80211b(power=ROUND))
    summary = summarise(simulate(run).recorder.table())
    used_mj = [sum(mj for _, mj in by_state.values()) for by_state in states(run).values()]
    assert summary["energy_mj_per_delivery"] == pytest.approx(sum(used_mj) / summary["delivered"])
    assert summary["lifetime_first_node_s"] == pytest.approx(20.0 * 50_000 / max(used_mj))


def test_a_run_that_is_watched_step_by_step_has_the_same_energy() -> None:
    run = run_of(Wifi80211b())
    simulation = Simulation(run)
    for second in range(1, 21):
        simulation.run_until(float(second))
    simulation.finish()
    assert simulation.recorder.trace_hash() == simulate(run).recorder.trace_hash()


def test_time_asleep_adds_up() -> None:
    asleep = Asleep(2)
    asleep.begin(0, 1.0)
    asleep.begin(0, 2.0)  # it sleeps already
    asleep.end(0, 4.0)
    asleep.end(1, 4.0)  # it was awake
    asleep.begin(0, 9.0)
    assert (asleep.total_s(0, 10.0), asleep.total_s(1, 10.0)) == (4.0, 0.0)
