"""Running a simulation under the eyes of checkers."""

from collections.abc import Callable

import msgspec

from roamcast.world.scenario import Run
from roamcast.world.simulator import Simulation


class InvariantError(AssertionError):
    """Something that must never be the case is."""


Checker = Callable[[Simulation], None]


class Watch:
    """A simulation that is checked every `step_s`, or with 0 after every instant at which anything happens. A failure
    tells the run that shows it again."""

    def __init__(self, run: Run, *checkers: Checker, step_s: float = 0.1) -> None:
        self.simulation = Simulation(run)
        self._run = run
        self._checkers = checkers
        self._step_s = step_s

    def run_until(self, t_s: float) -> None:
        simulation = self.simulation
        scheduler = simulation.scheduler
        while scheduler.now < t_s:
            step_to_s = scheduler.now + self._step_s if self._step_s else scheduler.next_s(t_s)
            simulation.run_until(min(t_s, step_to_s))
            for checker in self._checkers:
                try:
                    checker(simulation)
                except InvariantError as broken:
                    run = msgspec.json.encode(self._run).decode()
                    raise InvariantError(f"at {scheduler.now:.3f} s: {broken}; run {run}") from None
