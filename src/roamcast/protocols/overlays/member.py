"""The client component: a node's application in the eyes of the broker network [3.6].

It keeps a home broker: finds the nearest, attaches to it, reports to it every discovery period, and attaches to another
one, in a new epoch, if the home broker is lost. `publications` and `reception` hold the two ends of every guarantee:
what the application has published, and what has been delivered to it.
"""

from enum import StrEnum
from typing import Final

from roamcast.errors import CallerError, ConfigurationError
from roamcast.events import Event
from roamcast.interests import Interest
from roamcast.protocols.api import NOBODY, PLAIN_CHANNEL, Host, Message
from roamcast.protocols.components import Component, Inputs
from roamcast.protocols.jitter import jittered
from roamcast.protocols.modulation import PLAIN, Modulation
from roamcast.protocols.overlays.concentrator import Concentrator
from roamcast.protocols.overlays.home import Home
from roamcast.protocols.overlays.messages import (
    CHANNELS_MAX,
    Attach,
    Attached,
    Detach,
    Refused,
    Report,
    ReportAck,
    Want,
    Welcome,
    WelcomeAck,
)
from roamcast.protocols.overlays.modulators import check_modulation
from roamcast.protocols.overlays.parameters import OverlaysParameters
from roamcast.protocols.overlays.publications import Publications
from roamcast.protocols.overlays.ranks import is_newer_epoch, next_epoch
from roamcast.protocols.overlays.reception import Reception
from roamcast.protocols.overlays.search import RingSearch, Sighting
from roamcast.protocols.rings import RING_HOPS_MAX
from roamcast.protocols.subscriptions import Subscriptions

REFUSED: Final = "overlays: modulator refused"
MODULATIONS_BYTES_MAX: Final = 163_840  # of a node, so that what describes it fits a message
ATTACH: Final = "attach"  # the request to become, or to stay, the home broker


class MemberTimer(StrEnum):
    """The key is always 0."""

    DISCOVER = "member.discover"  # look for a nearer broker and report to the home broker
    SEEK = "member.seek"  # look for a home broker again
    CHECK = "member.check"  # the home broker has not answered a report in time


class Member(Component):
    def __init__(
        self,
        host: Host,
        concentrator: Concentrator,
        search: RingSearch,
        parameters: OverlaysParameters,
        is_broker: bool,
    ) -> None:
        super().__init__(host)
        self.subscriptions = Subscriptions()
        self._concentrator = concentrator
        self._search = search
        self._parameters = parameters
        self._is_broker = is_broker
        self._home = Home()
        self.publications = Publications(host, concentrator, self._home, parameters)
        self.reception = Reception(
            host, concentrator=concentrator, home=self._home, is_wanted=self._is_wanted, parameters=parameters
        )
        self._wants: list[Want] = []
        self._modulations: dict[int, Modulation] = {}  # by channel
        self.refusals: dict[int, str] = {}  # channel -> why the home broker does not run its modulator; see _on_refused
        self._produces = False
        self._advertised: Interest | None = None
        self._version = 0
        self._generation = 0
        self._candidate = NOBODY  # the broker that is asked to become the home
        self._is_joined = False
        self._is_seeking = False
        self._reports = 0
        self._checked_s = 0.0  # when the home broker was last asked whether it is there
        self._checks = 0  # how often it was asked since it was last heard
        self._is_home_doubted = False  # a frame to it failed
        concentrator.on_unreachable = self._doubt_home
        self.reception.on_renumbered = self._on_forgotten
        self.set_modulator(Modulation(parameters.modulator))

    def declare(self, inputs: Inputs) -> None:
        self.publications.declare(inputs)
        self.reception.declare(inputs)
        self._concentrator.on(Attached, self._on_attached)
        self._concentrator.on(Refused, self._on_refused)
        self._concentrator.on(ReportAck, self._on_report_ack)
        self._concentrator.on(Welcome, self._on_welcome)
        inputs.on_timer(MemberTimer.DISCOVER, self._discover)
        inputs.on_timer(MemberTimer.SEEK, lambda _: self._seek_home())
        inputs.on_timer(MemberTimer.CHECK, self._check_home)
        inputs.on_any_failure(self._on_link_failed)

    @property
    def home(self) -> int:
        """The home broker, or `NOBODY`."""
        return self._home.broker

    # -- The application -------------------------------------------------------------------------------------------

    def subscribe(self, interest: Interest) -> None:
        self.subscriptions.add(interest)
        self._wants.append((interest, self.host.now(), PLAIN_CHANNEL))
        self._change()

    def unsubscribe(self, interest: Interest) -> None:
        self.subscriptions.remove(interest)
        self._wants.remove(next(want for want in self._wants if want[0] == interest and want[2] == PLAIN_CHANNEL))
        self._change()

    def open_channel(self, channel: int, interest: Interest, modulation: Modulation) -> None:
        """Opens a channel, or changes its interest or its modulator. A changed interest counts from now on."""
        self._check(channel, modulation)
        kept = [want for want in self._wants if want[2] != channel]
        if len(kept) == len(self._wants) and len(self._channels()) >= CHANNELS_MAX - 1:
            raise ConfigurationError(f"modulator: a node has at most {CHANNELS_MAX - 1} subscriptions with modulators")
        known = [want for want in self._wants if want[2] == channel and want[0] == interest]
        self._wants = kept + (known or [(interest, self.host.now(), channel)])
        self._modulations[channel] = modulation
        self.refusals.pop(channel, None)
        self._change()

    def close_channel(self, channel: int) -> None:
        self._wants = [want for want in self._wants if want[2] != channel]
        self._modulations.pop(channel, None)
        self.refusals.pop(channel, None)
        self._change()

    def set_modulator(self, modulation: Modulation) -> None:
        """What the home broker shall do to the events of channel 0 from now on."""
        self._check(PLAIN_CHANNEL, modulation)
        if modulation != self._modulations.get(PLAIN_CHANNEL, PLAIN):
            self._modulations[PLAIN_CHANNEL] = modulation
            self.refusals.pop(PLAIN_CHANNEL, None)
            self._change()

    def _check(self, channel: int, modulation: Modulation) -> None:
        """Refuses nonsense here rather than at the broker."""
        check_modulation(modulation)
        others = [other for number, other in self._modulations.items() if number != channel]
        size = sum(other.size_bytes for other in [*others, modulation])
        if size > MODULATIONS_BYTES_MAX:
            raise ConfigurationError(
                f"modulator: all of a node's together have {size} bytes; allowed: at most {MODULATIONS_BYTES_MAX}"
            )

    def _channels(self) -> set[int]:
        return {want[2] for want in self._wants} - {PLAIN_CHANNEL}

    def advertise(self, interest: Interest) -> None:
        if self._produces and (self._advertised is None or self._advertised.covers(interest)):
            return
        self._advertised = interest if self._advertised is None else self._advertised.union(interest)
        self._produces = True
        self._change()

    def publish(self, event: Event) -> None:
        if event.publisher != self.host.address:
            raise CallerError(f"publish: event {event.id} belongs to node {event.publisher}")
        if not self._produces or (self._advertised is not None and not self._advertised.matches(event)):
            self._produces, self._advertised = True, None
            self._change()
        self.publications.add(event)

    def leave(self) -> None:
        if self.home != NOBODY:
            self._concentrator.send(self.home, Detach(self._home.epoch, is_final=True))

    def _is_wanted(self, event: Event, channel: int) -> bool:
        if channel != PLAIN_CHANNEL or self._modulations.get(channel, PLAIN).source:
            return channel in self._modulations  # a modulator may have made something else of it
        return self.subscriptions.match(event)

    # -- The home broker -------------------------------------------------------------------------------------------

    def _change(self) -> None:
        """The brokers must learn what changed; the first change makes the node a client at all."""
        self._version += 1
        if not self._is_joined:
            if not (self._wants or self._produces):
                return
            self._is_joined = True
            self.host.set_timer(self._spread(self._parameters.discovery_period_s), (MemberTimer.DISCOVER, 0))
            self._seek_home()
        elif self._candidate != NOBODY:
            self._attach()

    def _seek_home(self) -> None:
        """Looks for a broker to attach to, in a new epoch."""
        if self._is_seeking:
            return
        self._become_homeless()
        if self._is_broker:
            self._attach_anew(self.host.address)
            return
        self._is_seeking = True
        self._search.start(self._on_brokers)

    def _become_homeless(self) -> None:
        if self.home != NOBODY:
            self.host.structure("home")
        self._home.broker = self._candidate = NOBODY
        self._home.hops = 0
        self.host.cancel_timer((MemberTimer.CHECK, 0))
        self._concentrator.answered(ATTACH)

    def _on_brokers(self, sightings: list[Sighting]) -> None:
        self._is_seeking = False
        threshold = self._parameters.overload_threshold
        able = [sighting for sighting in sightings if sighting.load <= threshold] or sightings
        if able:
            self._attach_anew(able[0].broker)
            self._home.hops = able[0].hops
        else:
            # Nodes that search at the same time disturb each other, so the pause is random.
            self.host.set_timer(self._spread(self._parameters.seek_again_s), (MemberTimer.SEEK, 0))

    def _spread(self, period_s: float) -> float:
        return jittered(period_s, self._parameters.search_spread, self.host.random)

    def _attach_anew(self, broker: int) -> None:
        self._home.epoch = next_epoch(self._home.epoch, self.host.now())
        self._generation = 0
        if self.refusals:
            self.refusals.clear()
            self._version += 1
        self.reception.begin_epoch()
        self._candidate = broker
        self._attach()

    def _attach(self) -> None:
        message = Attach(
            client=self.host.address,
            epoch=self._home.epoch,
            version=self._version,
            wants=tuple([want for want in self._wants if want[2] not in self.refusals]),
            modulations=tuple(
                [
                    (channel, modulation)
                    for channel, modulation in self._modulations.items()
                    if modulation.source and channel not in self.refusals
                ]
            ),
            produces=self._produces,
            advertised=self._advertised,
            cursors=tuple(self.reception.cursors.items()),
        )
        self._concentrator.ask(ATTACH, self._candidate, message, self._parameters.attach_tries, self._seek_home)

    def _on_attached(self, source: int, message: Attached, hops: int) -> None:
        if source == self._candidate and self.home == NOBODY and is_newer_epoch(message.epoch, self._home.epoch):
            self._home.epoch = message.epoch  # of a former life, or forged: this client goes beyond it
            self._attach_anew(source)
        if message.epoch != self._home.epoch or self._candidate == NOBODY:
            return
        if message.version == self._version:
            self._concentrator.answered(ATTACH)
        if self.home == NOBODY and source == self._candidate:
            self._become_homed(source)

    def _on_refused(self, source: int, message: Refused, hops: int) -> None:
        """The broker does not run a modulator. This node stays its client, without the subscriptions of that channel:
        it must not get their events unmodulated. Another home broker is asked again."""
        channel = message.channel
        is_current = message.epoch == self._home.epoch and message.version == self._version
        if is_current and channel in self._modulations and channel not in self.refusals:
            reason = message.reason or "no reason given"
            self.refusals[channel] = reason
            self.host.dropped(REFUSED)
            self.host.structure("modulator", peer=source, value=float(channel), detail=reason)
            self.host.refused(channel, reason)
            self._version += 1
            self._attach()

    def _become_homed(self, broker: int) -> None:
        self._home.broker = self._candidate = broker
        self._home.heard_s = self.host.now()
        self._checks = 0
        self._is_home_doubted = False
        self.host.structure("home", peer=broker, value=1.0)
        self.publications.bring_to_new_home()

    def _on_welcome(self, source: int, message: Welcome, hops: int) -> None:
        if message.epoch != self._home.epoch:
            self._concentrator.send(source, Detach(message.epoch, is_final=False))
            return
        self._concentrator.send(source, WelcomeAck(message.epoch, message.generation))
        if message.generation > self._generation:
            self._generation = message.generation
            changes_pending = self._concentrator.answered(ATTACH)
            self._become_homed(source)
            self._home.hops = hops
            if changes_pending:
                self._attach()

    # -- Looking for a nearer broker -------------------------------------------------------------------------------

    def _discover(self, _: int) -> None:
        self.host.set_timer(self._parameters.discovery_period_s, (MemberTimer.DISCOVER, 0))
        if self.home == NOBODY:
            return
        if self.host.now() - self._home.heard_s > self._parameters.home_timeout_s:
            self._seek_home()
        elif self._is_broker:
            own = None if self.home == self.host.address else Sighting(0, 0.0, self.host.address)
            self._report(own)
        else:
            is_bounded = self._parameters.search_within_home and self._home.hops
            self._search.start(self._on_vicinity, self._home.hops if is_bounded else RING_HOPS_MAX)

    def _on_vicinity(self, sightings: list[Sighting]) -> None:
        if self.home == NOBODY:
            return
        # Several may be equally near, the home among them; each is compared with the home in turn.
        nearest = [each for each in sightings if each.hops == sightings[0].hops and each.broker != self.home]
        self._reports += 1
        self._report(nearest[self._reports % len(nearest)] if nearest else None)

    def _report(self, nearest: Sighting | None) -> None:
        if nearest is None:
            report = Report(self.host.address, self._home.epoch, None, 0, 0.0, position=self.host.position())
        else:
            report = Report(
                client=self.host.address,
                epoch=self._home.epoch,
                nearest=nearest.broker,
                distance_hops=nearest.hops,
                load=nearest.load,
                position=self.host.position(),
            )
        self._concentrator.send(self.home, report)
        if self._parameters.home_check_s and self.home != self.host.address:
            self._checked_s = self.host.now()
            wait_s = self._parameters.home_check_s * (1 << self._checks)
            self.host.set_timer(wait_s, (MemberTimer.CHECK, 0))

    def _on_forgotten(self) -> None:
        """The home broker has forgotten this node, and taken it in again within the epoch."""
        if self.home != NOBODY:
            self._seek_home()

    def _on_report_ack(self, source: int, message: ReportAck, hops: int) -> None:
        if self.home == NOBODY or message.epoch != self._home.epoch:
            return
        if message.known:
            self._home.heard_s = self.host.now()
            self._home.hops = hops
            self._checks = 0
            self._is_home_doubted = False
            self.host.cancel_timer((MemberTimer.CHECK, 0))
        else:
            self._seek_home()

    # -- A home broker that is lost --------------------------------------------------------------------------------

    def _on_link_failed(self, neighbour: int, message: Message) -> None:
        self._doubt_home(neighbour)

    def _doubt_home(self, node: int) -> None:
        """A node could not be reached. If it is the home broker, that one is asked whether it is still there."""
        if node != self.home or self._is_home_doubted or not self._parameters.home_check_s or self._is_broker:
            return
        self._is_home_doubted = True
        if self._home.heard_s >= self._checked_s:  # no report waits for its answer
            self._report(None)

    def _check_home(self, _: int) -> None:
        if self.home == NOBODY:
            return
        if self._home.heard_s >= self._checked_s:
            self._checks = 0
            self._is_home_doubted = False
        elif self._is_home_doubted or self._checks:
            self._seek_home()
        else:
            self._checks += 1
            self._report(None)
