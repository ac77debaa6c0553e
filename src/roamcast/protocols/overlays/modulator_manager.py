"""The modulator manager: adds, changes, removes and runs the modulators of a broker's clients [3.1].

A client's `Attach`, or a relocation, brings its modulators, each for one channel (`event_channels`). The manager
compiles them, and refuses the first that it cannot run with the reason, which the client is told. A modulator that did
not change keeps its state when something else about its client changes; one that replaces another takes over what it
can of its state (`Modulator.adopt`). An event passes the channels that want it, one
after the other, on the broker's CPU (`resources`). A modulator that fails is stopped, and its client is told that, too.
"""

from collections.abc import Callable
from typing import NamedTuple

from roamcast.errors import ConfigurationError, PeerError
from roamcast.events import Event
from roamcast.protocols.modulation import PLAIN, Modulation
from roamcast.protocols.overlays.client_row import ClientRow
from roamcast.protocols.overlays.event_channels import EventChannel, by_channel
from roamcast.protocols.overlays.messages import Modulations, Want
from roamcast.protocols.overlays.modulators import Modulator, Outcome, compile_modulation
from roamcast.protocols.overlays.resources import Cost, ResourceMonitor
from roamcast.protocols.overlays.wants import Wants


class ModulatorRefusedError(PeerError):
    """A modulator that this broker cannot run."""

    def __init__(self, channel: int, reason: str) -> None:
        super().__init__(reason)
        self.channel = channel


class Execution(NamedTuple):
    """What became of one event on one channel."""

    channel: EventChannel
    outcome: Outcome


class ModulatorManager:
    def __init__(self, resources: ResourceMonitor) -> None:
        self._resources = resources

    @property
    def has_room(self) -> bool:
        """Whether another event may wait for the CPU."""
        return self._resources.has_room

    # -- Adding, changing, removing --------------------------------------------------------------------------------

    def check(self, modulations: Modulations) -> None:
        """Raises `ModulatorRefusedError` if one of them cannot run here."""
        for channel, modulation in modulations:
            _compiled(channel, modulation)

    def install(
        self, row: ClientRow, wants: tuple[Want, ...], modulations: Modulations, states: dict[int, bytes]
    ) -> None:
        """Gives a client these channels instead of those it has; all or, if one modulator is refused, no change."""
        given = dict(modulations)
        channels: dict[int, EventChannel] = {}
        for number, wanted in by_channel(wants).items():
            modulation = given.get(number, PLAIN)
            channel = row.channels.get(number)
            if channel is None or channel.modulation != modulation:
                former = None if channel is None else channel.modulator
                channel = EventChannel(number, modulation, _compiled(number, modulation))
                if channel.modulator is not None and former is not None:
                    channel.modulator.adopt(former)
            if number in states and channel.modulator is not None:
                channel.modulator.restore(states[number])
            channel.wants = Wants(wanted)
            channels[number] = channel
        changed = [number for number, channel in row.channels.items() if channels.get(number) is not channel]
        for kept in row.unsettled:
            kept.put_out(tuple(changed), row.sequence)  # what they kept leads to no output
        row.wants = Wants(wants)
        row.channels = channels

    def modulations(self, row: ClientRow) -> Modulations:
        return tuple(
            (number, channel.modulation) for number, channel in row.channels.items() if channel.modulator is not None
        )

    def states(self, row: ClientRow) -> tuple[tuple[int, bytes], ...]:
        return tuple(
            (number, channel.modulator.state())
            for number, channel in row.channels.items()
            if channel.modulator is not None
        )

    # -- Running ---------------------------------------------------------------------------------------------------

    def process(self, row: ClientRow, event: Event, finish: Callable[[list[Execution], float], None]) -> None:
        """Takes an event through the client's channels; `finish` gets what came of it and the CPU time that it took."""
        channels = list(row.channels.values())
        if len(channels) > 1:
            channels = [channel for channel in channels if channel.takes(event)]
        if all(channel.modulator is None for channel in channels):
            finish([Execution(channel, Outcome((event,))) for channel in channels], 0.0)
        else:
            self._resources.run(lambda: _execute(channels, event), finish)


def _execute(channels: list[EventChannel], event: Event) -> tuple[list[Execution], Cost]:
    executions: list[Execution] = []
    declared_s = least_s = 0.0
    for channel in channels:
        modulator = channel.modulator
        if modulator is None:
            outcome = Outcome((event,))
        elif channel.failure:
            outcome = Outcome((), failure=channel.failure)
        else:
            outcome = modulator.process(event)
            cost_s = modulator.cost_s(event)
            channel.failure = outcome.failure
            channel.executions += 1
            channel.execution_s += cost_s
            declared_s += cost_s
            least_s += modulator.least_s()
        executions.append(Execution(channel, outcome))
    return executions, Cost(declared_s, least_s)


def _compiled(channel: int, modulation: Modulation) -> Modulator | None:
    try:
        return compile_modulation(modulation) if modulation.source else None
    except ConfigurationError as error:
        raise ModulatorRefusedError(channel, str(error)) from None
