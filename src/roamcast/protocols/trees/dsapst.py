"""DSAPST: one tree that keeps rearranging itself so that nodes with common interests lie next to each other.

What is from where
------------------
From the papers: in Cao and Shen's protocol, subscribers that have interests in common and are few hops apart get
connected, so that an event passes fewer nodes that do not want it. Pei's thesis (section 4.2.2): each node except the
root and those at level 1 periodically sends a message up through a candidate parent picked at random, until it meets a
new grafting node, the first whose effective interest overlaps.

Our reconstruction, since the paper's own rules are not at hand:

- Refreshes carry the sender's effective interest. Each `probe_period_s` a node at level 2 or deeper picks one neighbour
  of its tree that is neither its parent nor its child, with a probability that grows with how much their interests
  overlap, and sends a `Probe` up through it, and another one up through its own parent.
- A node that gets a probe shares the interest if what it wants besides what it wants for the sender of the probe
  overlaps. The first such node, or the root, answers with the relays on the way that do not share it.
- If the other way has fewer such relays than the present one, counted up to where the two ways meet, the node asks that
  neighbour to be its parent and changes over; the former link works on for a while. The rule of `standing.py` keeps
  this free of loops, whatever happens between the probe and the change.

Joining, roots, merging and the refresh period are as in PS-MAODV. No switch looks at the distance from the root, which
is what the thesis blames for this protocol's latency.
"""

from typing import Any, ClassVar, Final

from mypy_extensions import mypyc_attr

from roamcast.interests import Interest, union_all
from roamcast.protocols import api
from roamcast.protocols.api import NOBODY, Host, Message, Timer
from roamcast.protocols.trees.messages import Probe, ProbeReply, Refresh, TreeMessages
from roamcast.protocols.trees.parameters import DsapstParameters
from roamcast.protocols.trees.petitions import PATH_MAX
from roamcast.protocols.trees.ps_maodv import SingleTree

LEVEL_MIN: Final = 2
"""The root's own children already have the shortest path there is."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Dsapst(SingleTree):
    name: ClassVar[str] = "dsapst"
    summary: ClassVar[str] = "one tree that rearranges itself by overlapping interests"
    Parameters: ClassVar[type[api.Parameters]] = DsapstParameters
    messages: ClassVar[Any] = TreeMessages | Probe | ProbeReply

    def __init__(self, host: Host, parameters: DsapstParameters) -> None:
        super().__init__(host, parameters)
        self._probe_period_s = parameters.probe_period_s
        self._chance_min = parameters.chance_min
        self._pool = parameters.pool
        self._candidate = NOBODY  # the neighbour that is being probed
        self._replies: dict[int, ProbeReply] = {}  # by the neighbour through which they came

    def start(self) -> None:
        super().start()
        self.host.set_timer(self._probe_period_s * self.host.random.random(), ("probe", 0))

    def on_message(self, sender: int, message: Message) -> None:
        if type(message) is Probe:
            self._on_probe(sender, message)
        elif type(message) is ProbeReply:
            self._on_probe_reply(sender, message)
        else:
            super().on_message(sender, message)

    def on_timer(self, timer: Timer) -> None:
        if timer[0] == "probe":
            self._probe()
            self.host.set_timer(self._stretched(self._probe_period_s), ("probe", 0))
        else:
            super().on_timer(timer)

    def _refresh(self) -> Refresh:
        # `_replace` of a message would be slower than building it, and this is the only extra field.
        return Refresh(
            self.root, *self.standing, self.parent, self._absorbs, self._invites, self.effective_interest
        )

    # -- looking for a better place ------------------------------------------------------------------------------

    def _probe(self) -> None:
        self._candidate = NOBODY
        self._replies.clear()
        interest = self.effective_interest
        if self.role != "member" or self.standing.level < LEVEL_MIN or interest is None:
            return
        self._candidate = self._draw_candidate(interest)
        if self._candidate != NOBODY:
            probe = Probe(self.host.address, interest, ())
            self.host.send(self.parent, probe)
            self.host.send(self._candidate, probe)

    def _draw_candidate(self, interest: Interest) -> int:
        whole = interest.extra_share(None, self._pool)
        candidates: list[int] = []
        chances: list[float] = []
        for address, refresh, _ in self.neighbours.present(self.host.now()):
            if refresh.root == self.root and address != self.parent and address not in self.children:
                candidates.append(address)
                chances.append(self._chance_min + whole - interest.extra_share(refresh.interest, self._pool))
        return self.host.random.choices(candidates, chances)[0] if candidates else NOBODY

    def _on_probe_reply(self, sender: int, message: ProbeReply) -> None:
        if message.prober != self.host.address:
            if message.path:
                onward = ProbeReply(message.prober, message.grafting, message.relays, message.path[:-1])
                self.host.send(message.path[-1], onward)
            else:
                self.host.send(message.prober, message)
            return
        self._replies[sender] = message
        present, other = self._replies.get(self.parent), self._replies.get(self._candidate)
        if present is None or other is None:
            return
        if _foreign_relays(other, present) < _foreign_relays(present, other):
            self._court(self._candidate)

    # -- being on the way ----------------------------------------------------------------------------------------

    def _on_probe(self, sender: int, message: Probe) -> None:
        if message.prober == self.host.address or self.role == "searching":
            return
        if self.role == "root" or self._shares(message.interest, sender):
            reply = ProbeReply(message.prober, self.host.address, message.path, message.path[:-1])
            self.host.send(message.path[-1] if message.path else message.prober, reply)
        elif len(message.path) < PATH_MAX:
            self.host.send(self.parent, Probe(message.prober, message.interest, (*message.path, self.host.address)))

    def _shares(self, interest: Interest, besides: int) -> bool:
        """Whether this node wants some of it anyway, for itself or for another child than `besides`."""
        own = [*self.subscriptions]
        others = [self.children.interest(child) for child in self.children if child != besides]
        whole = union_all(own + [interest for interest in others if interest is not None])
        return whole is not None and whole.overlaps(interest)


def _foreign_relays(way: ProbeReply, other: ProbeReply) -> int:
    """Relays on a way that do not share the interest, up to where it meets the other one."""
    beyond = {*other.relays, other.grafting}
    return next((at for at, relay in enumerate(way.relays) if relay in beyond), len(way.relays))
