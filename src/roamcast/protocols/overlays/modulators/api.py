"""What a broker asks of a modulator, whatever language it is written in."""

from abc import ABC, abstractmethod
from typing import NamedTuple

from mypy_extensions import mypyc_attr

from roamcast.events import Event


class Outcome(NamedTuple):
    """What became of one event."""

    outputs: tuple[Event, ...]  # to be delivered
    is_kept: bool = False  # the modulator keeps it: it may contribute to a later output
    failure: str = ""  # why the modulator cannot go on


@mypyc_attr(allow_interpreted_subclasses=True)
class Modulator(ABC):
    """A consumer's function with its state. It sees one event at a time, each once, in the order of each producer."""

    @abstractmethod
    def process(self, event: Event) -> Outcome:
        """Takes an event. An output keeps the id of the event that brought it about."""

    @abstractmethod
    def cost_s(self, event: Event) -> float:
        """CPU time that `process` is declared to take, where it cannot be measured; asked afterwards."""

    def least_s(self) -> float:
        """CPU time that `process` stands for, at least, even where it is measured."""
        return 0.0

    def adopt(self, former: "Modulator") -> None:  # noqa: B027 - most start afresh
        """Takes the place of another one of the same consumer, and goes on from its state as far as it can."""

    @abstractmethod
    def state(self) -> bytes:
        """Everything `process` has left behind, to travel to another broker."""

    @abstractmethod
    def restore(self, state: bytes) -> None:
        """Goes on from `state`; `PeerError` if it is not one of this modulator."""
