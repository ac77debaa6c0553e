"""A case of the hunt: a run, and from when on everything must arrive."""

from pathlib import Path

import msgspec

from roamcast.errors import ConfigurationError
from roamcast.world.scenario import Run


class Case(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Complete in itself: it can be kept in a file and judged again."""

    run: Run
    step_s: float = 0.0  # checkers look this often; 0: after every instant at which anything happens
    settled_s: float | None = None  # from here on what is published must arrive; None: nothing is promised
    within_s: float = 0.0  # by then after its publication
    hops: int | None = None  # at nodes this near; None: at all that can be reached

    @property
    def node_hours(self) -> float:
        return self.run.scenario.nodes * self.run.scenario.duration_s / 3600

    @property
    def weight(self) -> tuple[int, int, float]:
        """What a shrunk case has less of: faults, nodes, seconds."""
        faults = self.run.scenario.faults
        return len(faults.incidents) + len(faults.partitions), self.run.scenario.nodes, self.run.scenario.duration_s


def write_case(case: Case, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.format(msgspec.json.encode(case), indent=1) + b"\n")


def read_case(path: Path) -> Case:
    try:
        return msgspec.json.decode(path.read_bytes(), type=Case)
    except (OSError, msgspec.MsgspecError) as error:
        raise ConfigurationError(f"case: {path} cannot be read: {error}") from None
