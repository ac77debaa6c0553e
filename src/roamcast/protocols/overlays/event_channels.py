"""Event channels: the streams that a consumer's modulators make of its events [3.1].

JECho hands events to consumers on channels, and a consumer's modulator makes a channel of its own out of one. So it is
here: a subscription with a modulator is a channel. All subscriptions of a consumer that bring none share channel 0.
Channels of one consumer do not see each other; an event that two of them want passes both.
"""

from roamcast.events import Event
from roamcast.protocols.modulation import Modulation
from roamcast.protocols.overlays.messages import Want
from roamcast.protocols.overlays.modulators import Modulator
from roamcast.protocols.overlays.wants import Wants


class EventChannel:
    def __init__(self, number: int, modulation: Modulation, modulator: Modulator | None) -> None:
        self.number = number
        self.modulation = modulation
        self.modulator = modulator  # None passes everything on
        self.wants = Wants(())
        self.failure = ""  # why the modulator was stopped; nothing passes then
        self.executions = 0  # of the modulator
        self.execution_s = 0.0  # CPU time of all of them

    def takes(self, event: Event) -> bool:
        return self.wants.matches(event, by_time=False)


def by_channel(wants: tuple[Want, ...]) -> dict[int, tuple[Want, ...]]:
    """Subscriptions, sorted by their channel."""
    sorted_wants: dict[int, list[Want]] = {}
    for want in wants:
        sorted_wants.setdefault(want[2], []).append(want)
    return {number: tuple(sorted_wants[number]) for number in sorted(sorted_wants)}
