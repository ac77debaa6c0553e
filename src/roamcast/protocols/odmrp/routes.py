"""What a node knows of a publishing broker: the path back to it, its channels, and the members that answer it."""

from math import inf
from typing import Any, Final

from roamcast.protocols.odmrp.messages import JoinRequest, MemberEntry

REQUESTS_MAX: Final = 256  # of one publisher that a node remembers


class Route:
    """The path back to a publishing broker, and the members that go there."""

    def __init__(self, contexts_max: int) -> None:
        self._contexts_max = contexts_max
        self.waiting: dict[int, MemberEntry] = {}  # to be sent
        self.sent: dict[int, MemberEntry] = {}  # sent and not confirmed
        self.tries: dict[int, int] = {}
        self.confirmed: dict[int, int] = {}  # versions of members that the upstream has
        self.contexts: dict[bytes, None] = {}  # of the last requests: what the publisher asks for
        self.newest: tuple[int, int] = (-1, -1)  # life and sequence number of the newest request
        self._seen: dict[tuple[int, int], None] = {}  # requests; forgotten with the route, so no number is used up
        self.events: tuple[int, ...] = ()  # that the newest request named
        self.listing = -1  # number of the list of members that is known
        self.listing_told = -1  # number of the newest list that there is
        self.versions: dict[int, int] = {}  # of members' contexts that the publisher knows
        self.channels: dict[int, int] = {}  # of members
        self.channels_before: dict[int, int] = {}
        self.moved_s = -inf
        self.heard_s = -inf
        self.upstream = -1
        self.hops = 0
        self.lifetime_s: float | None = None
        self.members_lifetime_s: float | None = None

    def see(self, number: tuple[int, int]) -> bool:
        """Remembers a request; true if it is new."""
        if number in self._seen:
            return False
        if len(self._seen) >= REQUESTS_MAX:
            del self._seen[next(iter(self._seen))]
        self._seen[number] = None
        return True

    @property
    def knows_channels(self) -> bool:
        """Whether the newest list of members was received."""
        return self.listing == self.listing_told

    def renew(self, request: JoinRequest, upstream: int, lifetime_s: float | None, now_s: float) -> bool:
        """A newer request came; true if members have other channels now. What is being sent goes on."""
        self.heard_s = now_s
        if request.life != self.newest[0]:
            self._begin_life()
        self.newest = request.life, request.sequence
        self.contexts.pop(request.context, None)
        self.contexts[request.context] = None
        if len(self.contexts) > self._contexts_max:
            del self.contexts[next(iter(self.contexts))]
        self.events = request.events
        self.listing_told = request.listing
        has_moved = False
        if request.channels is not None and request.listing != self.listing:
            self.listing = request.listing
            channels: dict[int, int] = {}
            self.versions = {}
            for channel, members in request.channels:
                for address, version in members:
                    channels[address] = channel
                    self.versions[address] = version
            has_moved = channels != self.channels
            if has_moved:
                self.channels, self.channels_before, self.moved_s = channels, self.channels, now_s
        self.take(upstream, request.hops, lifetime_s)
        self.members_lifetime_s = None
        self.confirmed.clear()
        self.tries = {address: tries for address, tries in self.tries.items() if address in self.sent}
        return has_moved

    def _begin_life(self) -> None:
        """The publisher has come back. It has forgotten its members and counts its lists from the beginning."""
        self.listing = -1
        self.versions = {}
        self.channels = {}
        self.channels_before = {}

    def take(self, upstream: int, hops: int, lifetime_s: float | None) -> None:
        self.upstream, self.hops, self.lifetime_s = upstream, hops, lifetime_s


class Downstream:
    """A member behind this node."""

    __slots__ = ("expires_s", "kept")

    def __init__(self, expires_s: float, kept: Any) -> None:
        self.expires_s = expires_s
        self.kept = kept  # what the middleware keeps of its context; None: this node never heard it
