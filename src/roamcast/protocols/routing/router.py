"""The routes of AODV: requests, replies, errors and hellos, everything but the packets themselves.

`Router` keeps the routing table true. `aodv.py`, which holds the theory of operation, decides what to look for and when
to give up; it asks with `request`, hears of every usable route through `on_route`, and reports what the links report.
"""

from collections.abc import Callable
from enum import StrEnum
from math import inf

from roamcast.fields import HOPS_MAX
from roamcast.protocols.api import Host, Message
from roamcast.protocols.batches import batches, encoded_bytes, room_bytes
from roamcast.protocols.components import Component, Inputs
from roamcast.protocols.jitter import shortened
from roamcast.protocols.routing.discovery import RateLimit, SeenRequests
from roamcast.protocols.routing.messages import Hello, Rerr, Rrep, Rreq
from roamcast.protocols.routing.parameters import AodvParameters
from roamcast.protocols.routing.routes import Losses, Route, RouteTable
from roamcast.protocols.routing.sequence import MODULUS, newer, newest, successor


class RouterTimer(StrEnum):
    REPEAT = "aodv.repeat"  # pass a request on; key: its running number
    SILENCE = "aodv.silence"  # a neighbour that said hello was not heard since; key: the neighbour
    HELLO = "aodv.hello"  # say hello if nothing else was broadcast; key 0
    SWEEP = "aodv.sweep"  # forget expired entries; key 0


class Router(Component):
    def __init__(self, host: Host, parameters: AodvParameters, on_route: Callable[[Route], None]) -> None:
        super().__init__(host)
        self.parameters = parameters
        self.routes = RouteTable(parameters.delete_period_s)
        self.sequence = int(host.now() * parameters.numbers_per_s) % MODULUS
        self._on_route = on_route
        self._request_id = self.sequence
        self._seen = SeenRequests(parameters.path_discovery_time_s, parameters.requests_max)
        self._repeats: dict[int, Rreq] = {}  # by running number: requests that wait for their turn
        self._repeats_so_far = 0
        self._error_limit = RateLimit(parameters.error_rate_limit)
        self._neighbour_life_s = min(parameters.active_route_timeout_s, parameters.delete_period_s)
        self._blacklist: dict[int, float] = {}  # neighbour -> until when its requests are ignored
        self._greeters: dict[int, None] = {}  # neighbours that said hello and are expected to be heard
        self._last_broadcast_s = -inf
        self._active_until_s = -inf  # this node is on a route that carries data

    def start(self) -> None:
        self.host.set_timer(self.parameters.delete_period_s, (RouterTimer.SWEEP, 0))
        if self.parameters.hello:
            self.host.set_timer(self.host.random.random() * self.parameters.hello_interval_s, (RouterTimer.HELLO, 0))

    def declare(self, inputs: Inputs) -> None:
        inputs.on(Rreq, self._on_request)
        inputs.on(Rrep, self._on_reply)
        inputs.on(Rerr, self._on_error)
        inputs.on(Hello, self._on_hello)
        inputs.on_failure(Rrep, self._on_reply_failed)
        inputs.on_timer(RouterTimer.REPEAT, self._send_repeat)
        inputs.on_timer(RouterTimer.SWEEP, self._sweep)
        if self.parameters.hello:
            inputs.on_any_message(self._on_heard)
            inputs.on_timer(RouterTimer.HELLO, self._greet)
            inputs.on_timer(RouterTimer.SILENCE, self._on_silence)

    def use(self, *destinations: int) -> None:
        """Data flows: the routes that carry it stay alive."""
        now_s = self.host.now()
        self._active_until_s = now_s + self.parameters.active_route_timeout_s
        for destination in destinations:
            self.routes.refresh(destination, self._active_until_s, now_s)

    # -- Requests and replies ------------------------------------------------------------------------------------

    def request(self, destination: int, ttl: int) -> None:
        """Asks the nodes within `ttl` hops for a route to `destination`."""
        self.sequence = successor(self.sequence)
        self._request_id = successor(self._request_id)
        known = self.routes.find(destination, self.host.now())
        request = Rreq(
            ttl=ttl,
            hops=0,
            request_id=self._request_id,
            destination=destination,
            destination_sequence=known.sequence if known is not None else None,
            originator=self.host.address,
            originator_sequence=self.sequence,
            gratuitous=self.parameters.gratuitous,
            destination_only=self.parameters.destination_only,
        )
        if self.parameters.delay_own_requests:
            self._broadcast_soon(request)
        else:
            self._broadcast(request)

    def _on_request(self, sender: int, request: Rreq) -> None:
        now_s = self.host.now()
        if self._blacklist and sender in self._blacklist and self._blacklist[sender] > now_s:
            return
        self._meet(sender, now_s)
        originator = request.originator
        if originator == self.host.address or request.hops >= HOPS_MAX:
            return
        if not self._seen.add(originator, request.request_id, now_s):
            return
        hops = request.hops + 1
        reverse_life_s = self.parameters.path_discovery_time_s - 2 * hops * self.parameters.node_traversal_time_s
        self._learn(originator, request.originator_sequence, hops, sender, reverse_life_s)
        back = self.routes.usable(originator, now_s)
        destination = request.destination
        route = self.routes.usable(destination, now_s)
        if destination == self.host.address:
            if back is not None:
                self._answer_for_self(request, back)
        elif route is not None and back is not None and self._may_answer(request, route, sender):
            self._answer_for(request, route, back)
        elif request.ttl > 1:
            self._repeat(request)

    def _may_answer(self, request: Rreq, route: Route, sender: int) -> bool:
        asked = request.destination_sequence
        return (
            not request.destination_only
            and route.sequence is not None
            and (asked is None or not newer(asked, route.sequence))
            and route.next_hop != sender
        )

    def _answer_for_self(self, request: Rreq, back: Route) -> None:
        if request.destination_only:
            self.sequence = successor(self.sequence)
        asked = request.destination_sequence
        if asked is not None and newer(asked, self.sequence):
            self.sequence = asked % MODULUS
        lifetime_ms = _milliseconds(self.parameters.my_route_timeout_s)
        self.host.send(back.next_hop, Rrep(0, self.host.address, self.sequence, request.originator, lifetime_ms))

    def _answer_for(self, request: Rreq, route: Route, back: Route) -> None:
        """Answers for a destination to which this node knows a route."""
        if route.sequence is None or back.sequence is None:
            return
        now_s = self.host.now()
        route.precursors[back.next_hop] = None
        back.precursors[route.next_hop] = None
        lifetime_ms = _milliseconds(route.until_s - now_s)
        reply = Rrep(route.hops, route.destination, route.sequence, request.originator, lifetime_ms)
        self.host.send(back.next_hop, reply)
        if request.gratuitous:
            lifetime_ms = _milliseconds(back.until_s - now_s)
            self.host.send(
                route.next_hop, Rrep(back.hops, request.originator, back.sequence, route.destination, lifetime_ms)
            )

    def _repeat(self, request: Rreq) -> None:
        known = self.routes.find(request.destination, self.host.now())
        demanded = newest(request.destination_sequence, known.sequence if known is not None else None)
        self._broadcast_soon(request.onward(demanded))

    def _broadcast_soon(self, request: Rreq) -> None:
        self._repeats_so_far += 1
        self._repeats[self._repeats_so_far] = request
        jitter_s = self.host.random.random() * self.parameters.broadcast_jitter_s
        self.host.set_timer(jitter_s, (RouterTimer.REPEAT, self._repeats_so_far))

    def _send_repeat(self, number: int) -> None:
        self._broadcast(self._repeats.pop(number))

    def _on_reply(self, sender: int, reply: Rrep) -> None:
        self._meet(sender, self.host.now())
        if reply.destination == self.host.address or reply.hops >= HOPS_MAX:
            return
        hops = reply.hops + 1
        fresh = self._learn(reply.destination, reply.destination_sequence, hops, sender, reply.lifetime_ms / 1000)
        if not fresh or reply.originator == self.host.address:
            return
        now_s = self.host.now()
        route = self.routes.usable(reply.destination, now_s)
        back = self.routes.usable(reply.originator, now_s)
        if route is None or back is None or back.next_hop == sender:
            return
        route.precursors[back.next_hop] = None
        back.precursors[sender] = None
        self.routes.refresh(reply.originator, now_s + self.parameters.active_route_timeout_s, now_s)
        self.host.send(back.next_hop, reply.onward())

    def _meet(self, neighbour: int, now_s: float) -> None:
        """A control frame of this neighbour was heard: there is a route of one hop to it."""
        if not self.routes.is_neighbour(neighbour, now_s + self._neighbour_life_s, now_s):
            self._learn(neighbour, None, 1, neighbour, self._neighbour_life_s)

    def _learn(self, destination: int, sequence: int | None, hops: int, next_hop: int, life_s: float) -> bool:
        """Learns a route, and reports the route that there is now."""
        if destination == self.host.address:
            return False
        now_s = self.host.now()
        life_s = min(life_s, self.parameters.delete_period_s)  # a longer one could outlive what others remember
        fresh = self.routes.learn(
            destination, sequence, hops=hops, next_hop=next_hop, until_s=now_s + life_s, now_s=now_s
        )
        route = self.routes.usable(destination, now_s)
        if route is not None:
            self._on_route(route)
        return fresh

    # -- Broken links --------------------------------------------------------------------------------------------

    def _on_reply_failed(self, neighbour: int, reply: Rrep) -> None:
        """An RREP did not reach the neighbour: perhaps it is heard but does not hear."""
        if self.parameters.blacklist_timeout_s > 0:
            self._blacklist[neighbour] = self.host.now() + self.parameters.blacklist_timeout_s

    def lose_neighbour(self, neighbour: int, repairing: int | None = None) -> None:
        """All routes through the neighbour are gone; the nodes that relied on them are told, except about a repair."""
        now_s = self.host.now()
        losses = Losses()
        for route in self.routes.through(neighbour, now_s):
            self.routes.lose(route, None, now_s)
            if route.destination != repairing:
                losses.add(route)
        losses.told.pop(neighbour, None)
        self.report(losses)

    def _on_error(self, sender: int, error: Rerr) -> None:
        now_s = self.host.now()
        losses = Losses()
        for destination, sequence in error.unreachable:
            route = self.routes.usable(destination, now_s)
            if route is None or route.next_hop != sender:
                continue
            if error.keep:
                losses.note(destination, sequence, route.precursors)
            elif sequence is None or route.sequence is None or newer(sequence, route.sequence):
                self.routes.lose(route, sequence, now_s)
                losses.add(route)
        losses.told.pop(sender, None)
        self.report(losses, error.keep)

    def report(self, losses: Losses, keep: bool = False) -> None:
        """Tells neighbours that routes are gone: one by name, several by a broadcast."""
        if not losses.told:
            return
        for batch in batches(losses.unreachable.items(), encoded_bytes, room_bytes(self.host, Rerr((), keep))):
            now_s = self.host.now()
            if self._error_limit.wait_s(now_s) > 0:
                return
            self._error_limit.note(now_s)
            error = Rerr(tuple(batch), keep)
            if len(losses.told) == 1:
                self.host.send(next(iter(losses.told)), error)
            else:
                self._broadcast(error)

    # -- Greetings and housekeeping ------------------------------------------------------------------------------

    def _on_heard(self, sender: int, message: Message) -> None:
        """Each frame of a neighbour that says hello shows that it is there."""
        if sender in self._greeters:
            self.host.set_timer(self.parameters.silence_s, (RouterTimer.SILENCE, sender))

    def _on_silence(self, neighbour: int) -> None:
        del self._greeters[neighbour]
        self.lose_neighbour(neighbour)

    def _greet(self, _: int) -> None:
        """A node on an active route is heard at least once per hello interval, if only by a hello."""
        now_s = self.host.now()
        pause_s = shortened(self.parameters.hello_interval_s, self.parameters.hello_jitter, self.host.random)
        if now_s < self._active_until_s or self.parameters.hello_everywhere:
            if now_s - self._last_broadcast_s >= (1 - self.parameters.hello_jitter) * self.parameters.hello_interval_s:
                self._broadcast(Hello(self.sequence, _milliseconds(self.parameters.silence_s)))
            pause_s -= now_s - self._last_broadcast_s
        self.host.set_timer(max(0.0, pause_s), (RouterTimer.HELLO, 0))

    def _on_hello(self, sender: int, hello: Hello) -> None:
        self._learn(sender, hello.sequence, 1, sender, hello.lifetime_ms / 1000)
        if self.parameters.hello:
            self._greeters[sender] = None
            self.host.set_timer(self.parameters.silence_s, (RouterTimer.SILENCE, sender))

    def _sweep(self, _: int) -> None:
        now_s = self.host.now()
        self.routes.sweep(now_s)
        self._blacklist = {neighbour: until_s for neighbour, until_s in self._blacklist.items() if now_s < until_s}
        self.host.set_timer(self.parameters.delete_period_s, (RouterTimer.SWEEP, 0))

    def _broadcast(self, message: Message) -> None:
        self._last_broadcast_s = self.host.now()
        self.host.broadcast(message)


def _milliseconds(duration_s: float) -> int:
    return int(max(0.0, duration_s) * 1000)
