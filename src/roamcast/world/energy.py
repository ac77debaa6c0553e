"""Where the energy went: each node's time in transmit, receive, idle and sleep, and what its battery gave for it."""

from roamcast.trace.recorder import Recorder
from roamcast.world.radio.medium import Medium
from roamcast.world.radio.power import Power


class Asleep:
    """When nodes were switched off."""

    def __init__(self, nodes: int) -> None:
        self._since_s: list[float | None] = [None] * nodes
        self._total_s = [0.0] * nodes

    def begin(self, node: int, t_s: float) -> None:
        if self._since_s[node] is None:
            self._since_s[node] = t_s

    def end(self, node: int, t_s: float) -> None:
        since_s = self._since_s[node]
        if since_s is not None:
            self._total_s[node] += t_s - since_s
            self._since_s[node] = None

    def total_s(self, node: int, t_s: float) -> float:
        since_s = self._since_s[node]
        return self._total_s[node] + (0.0 if since_s is None else t_s - since_s)


def record_energy(recorder: Recorder, power: Power, medium: Medium, asleep: Asleep, end_s: float) -> None:
    """Per node one row for each state, and one for the whole that says how much of the battery it took."""
    for node, load in enumerate(medium.loads):
        transmit_s = sum(tally.airtime_s for tally in load.values())
        receive_s = medium.receive_s(node)
        sleep_s = asleep.total_s(node, end_s)
        idle_s = max(0.0, end_s - transmit_s - receive_s - sleep_s)
        states = (
            ("transmit", transmit_s, power.transmit_mw),
            ("receive", receive_s, power.receive_mw),
            ("idle", idle_s, power.idle_mw),
            ("sleep", sleep_s, power.sleep_mw),
        )
        used_mj = 0.0
        for state, spent_s, state_mw in states:
            used_mj += spent_s * state_mw
            recorder.energy(end_s, node, state, spent_s * state_mw, round(spent_s * 1e6))
        recorder.battery(end_s, node, used_mj / (1000 * power.battery_j))
