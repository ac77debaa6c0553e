"""What every radio's settings have in common, and what a radio is given to work with."""

from typing import TYPE_CHECKING, ClassVar, NamedTuple

from roamcast.protocols.api import require
from roamcast.seeds import Random
from roamcast.world.radio.power import WAVELAN, Power
from roamcast.world.radio.signals import AnySignal, Disc
from roamcast.world.scheduler import Scheduler
from roamcast.world.settings import Settings
from roamcast.world.topology import Topology

if TYPE_CHECKING:
    from roamcast.world.mobility import Movements
    from roamcast.world.radio.links import RadioLinks
    from roamcast.world.radio.medium import Medium


class Surroundings(NamedTuple):
    """The part of a simulation that a radio works in."""

    scheduler: Scheduler
    topology: Topology
    random: Random
    movements: "Movements | None"  # None: the scenario lists contacts, nodes have no positions
    links: "RadioLinks | None"  # None: on discs the topology knows everything


class Radio(Settings, frozen=True, tag_field="model"):
    """The settings of a radio. A subclass is one radio model; its tag is the name that users type."""

    summary: ClassVar[str] = ""  # one line for `roamcast radios`

    range_m: float = 200.0  # how far a frame reaches, by its mean signal
    loss: float = 0.0  # share of receptions lost at random, on top of what the radio itself loses
    signal: AnySignal = Disc()  # how a signal weakens with distance, and how it varies
    power: Power = WAVELAN  # what sending, receiving, listening and sleeping take, in mW

    def __post_init__(self) -> None:
        require(self.range_m > 0, "range_m", self.range_m, "above 0")
        require(0 <= self.loss < 1, "loss", self.loss, "at least 0 and below 1")

    @property
    def sense_range_m(self) -> float:
        """How far away a transmission keeps others silent; at least `range_m`."""
        return self.range_m

    @property
    def floor_db(self) -> float:
        """With a signal model: signals down to this far below what can be received are followed."""
        return 0.0

    @property
    def fading_shape(self) -> float:
        """Of Nakagami's distribution: 1 is Rayleigh, 0 stands for no fading."""
        return {"none": 0.0, "rayleigh": 1.0, "nakagami": self.signal.nakagami_shape}[self.signal.fading]

    def medium(self, around: Surroundings) -> "Medium":
        """The shared air of one simulation."""
        raise NotImplementedError
