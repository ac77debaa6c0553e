"""Looking for a better place in the tree: how DSAPST brings nodes with common interests together.

- Refreshes carry the sender's effective interest. Each `probe_period_s` a node at level `probe_level_min` or deeper
  picks one neighbour of its tree that is neither its parent nor its child, with a probability that grows with how much
  their interests overlap, and sends a `Probe` up through it.
- A node that gets a probe shares the interest if what it wants besides what it wants for the sender of the probe
  overlaps. The first such node, or the root, answers with the relays below it that do not share the interest.
- If the other path has fewer such relays than the present one, the node asks that neighbour to be its parent and
  changes over; the former link works on for a while. The rule of `standing.py` keeps this free of loops, whatever
  happens between the probe and the change.

How many such relays the present path has, a node knows from the probe that brought it here, or else takes to be all
nodes between it and the root. With `probes_parent` it sends a second probe up through its own parent instead. That also
reveals a broken link before an event has to; no source describes it.
"""

from enum import StrEnum
from typing import Final

from mypy_extensions import mypyc_attr

from roamcast.interests import Interest, union_all
from roamcast.protocols.api import NOBODY, Host, Timer
from roamcast.protocols.components import Component, Inputs
from roamcast.protocols.trees.dissemination import Dissemination
from roamcast.protocols.trees.membership import Membership
from roamcast.protocols.trees.messages import Probe, ProbeReply
from roamcast.protocols.trees.parameters import DsapstParameters


class ProbingTimer(StrEnum):
    PROBE = "probing.probe"  # time to look for a better place


PROBE: Final[Timer] = (ProbingTimer.PROBE, 0)


@mypyc_attr(allow_interpreted_subclasses=True)
class Probing(Component):
    def __init__(
        self, host: Host, parameters: DsapstParameters, membership: Membership, dissemination: Dissemination
    ) -> None:
        super().__init__(host)
        self._parameters = parameters
        self._pool = parameters.pool
        self._probes_parent = parameters.probes_parent == "yes"
        self._membership = membership
        self._place = membership.place
        self._dissemination = dissemination
        self._candidate = NOBODY  # the neighbour that is being probed
        self._replies: dict[int, ProbeReply] = {}  # by the neighbour through which they came
        self._chosen = NOBODY  # the neighbour that a probe made this node ask to be its parent
        self._chosen_relays = 0  # relays on the path through it that did not share the interest

    def declare(self, inputs: Inputs) -> None:
        inputs.on(Probe, self._on_probe)
        inputs.on(ProbeReply, self._on_reply)
        inputs.on_timer(ProbingTimer.PROBE, self._probe)

    def start(self) -> None:
        self.host.set_timer(self._parameters.probe_period_s * self.host.random.random(), PROBE)

    # -- looking for a better place ------------------------------------------------------------------------------

    def _probe(self, key: int) -> None:
        self._candidate = NOBODY
        self._replies.clear()
        interest = self._dissemination.effective_interest
        place = self._place
        if place.role == "member" and place.standing.level >= self._parameters.probe_level_min and interest is not None:
            self._candidate = self._draw_candidate(interest)
            if self._candidate != NOBODY:
                probe = Probe(self.host.address, interest, ())
                if self._probes_parent:
                    self.host.send(place.parent, probe)
                self.host.send(self._candidate, probe)
        self.host.set_timer(self._membership.stretched(self._parameters.probe_period_s), PROBE)

    def _draw_candidate(self, interest: Interest) -> int:
        whole = interest.extra_share(None, self._pool)
        children = self._dissemination.children
        candidates: list[int] = []
        chances: list[float] = []
        for address, refresh, _ in self._membership.neighbours.present(self.host.now()):
            if refresh.root == self._place.root and address != self._place.parent and address not in children:
                candidates.append(address)
                overlap = whole - interest.extra_share(refresh.interest, self._pool)
                chances.append(self._parameters.chance_min + overlap)
        return self.host.random.choices(candidates, chances)[0] if candidates else NOBODY

    def _on_reply(self, sender: int, message: ProbeReply) -> None:
        if message.prober != self.host.address:
            if message.path:
                onward = ProbeReply(message.prober, message.grafting, message.relays, message.path[:-1])
                self.host.send(message.path[-1], onward)
            else:
                self.host.send(message.prober, message)
        elif sender in (self._place.parent, self._candidate):
            self._replies[sender] = message
            self._compare()

    def _compare(self) -> None:
        """Asks the candidate to be the parent if its path has fewer strangers than the present one."""
        other = self._replies.get(self._candidate)
        if other is None:
            return
        if self._probes_parent:
            present = self._replies.get(self._place.parent)
            better = present is not None and _foreign_relays(other, present) < _foreign_relays(present, other)
        else:
            better = len(other.relays) < self._present_relays()
        if better:
            self._chosen, self._chosen_relays = self._candidate, len(other.relays)
            self._membership.joining.request_parent(self._candidate)

    def _present_relays(self) -> int:
        return self._chosen_relays if self._place.parent == self._chosen else self._place.standing.level - 1

    # -- being on the path ---------------------------------------------------------------------------------------

    def _on_probe(self, sender: int, message: Probe) -> None:
        place = self._place
        if message.prober == self.host.address or place.role == "searching":
            return
        if place.role == "root" or self._shares(message.interest, sender):
            reply = ProbeReply(message.prober, self.host.address, message.path, message.path[:-1])
            self.host.send(message.path[-1] if message.path else message.prober, reply)
        elif len(message.path) < self._parameters.path_max:
            self.host.send(place.parent, Probe(message.prober, message.interest, (*message.path, self.host.address)))

    def _shares(self, interest: Interest, besides: int) -> bool:
        """Whether this node wants some of it anyway, for itself or for another child than `besides`."""
        children = self._dissemination.children
        own = [*self._dissemination.subscriptions]
        others = [children.interest(child) for child in children if child != besides]
        whole = union_all(own + [interest for interest in others if interest is not None])
        return whole is not None and whole.overlaps(interest)


def _foreign_relays(path: ProbeReply, other: ProbeReply) -> int:
    """Relays on a path that do not share the interest, up to where it meets the other one."""
    beyond = {*other.relays, other.grafting}
    return next((at for at, relay in enumerate(path.relays) if relay in beyond), len(path.relays))
