"""A tiny network for testing protocols step by step.

`TinyNet` hosts protocols on hand-made links, in memory, in simulated time and always in the same order:

    net = TinyNet(line(3), "flooding", {"jitter_s": 0.0})
    net.subscribe(2, Intervals.of((0, 100)))
    net.publish(0, 42)
    net.run(1.0)
    assert net.contents(2) == [42]
    print(net.transcript())

It is not a radio: every frame takes `delay_s`, nothing collides, nothing is lost unless the test says so with `drop`,
`loss`, `unlink` or `crash`. A unicast that does not arrive is reported by `on_send_failed`. Every message is encoded,
decoded and must come out equal, so a message that could not travel fails the first test. A message larger than
`frame_bytes_max` travels in fragments, as on every host.

The guest is a protocol by name, or the result of a function of a host: any object with `start`, `on_message`,
`on_timer` and `on_send_failed`. A checker (`net.check`) is called after every step, for invariants.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from heapq import heappop, heappush
from typing import Any, Generic, TypedDict, Unpack, overload

from roamcast.errors import CallerError
from roamcast.events import NO_EVENT, Content, Event, event_id
from roamcast.interests import Interest
from roamcast.protocols.api import NOBODY, Host, Message, Point, Protocol, Site
from roamcast.protocols.catalogue import build_protocol, protocol_parameters
from roamcast.protocols.subscriptions import Subscriptions
from roamcast.seeds import derive
from roamcast.testing.host import GuestT, TestHost
from roamcast.testing.links import Link
from roamcast.testing.oracle import LinkOracle
from roamcast.testing.transcript import RecordedDelivery, TranscriptLine, describe


class Options(TypedDict, total=False):
    nodes: int  # at least this many, numbered from 0, linked or not
    delay_s: float  # of every frame; 0.001 if not given
    frame_bytes_max: int  # encoded bytes of a message in one frame
    seed: int
    loss: float  # the share of receptions that are lost at random; 0 if not given
    positions_m: Mapping[int, Point]
    site: Site
    oracle: bool  # guests may see the links, as through the simulator's oracle
    language: str  # hosts drop messages with interests in another language, and what guests refuse, as live hosts do


class TinyNet(Generic[GuestT]):
    @overload
    def __init__(
        self: TinyNet[Protocol],
        links: Iterable[Link],
        protocol: str,
        parameters: Mapping[str, Any] | None = None,
        **options: Unpack[Options],
    ) -> None: ...

    @overload
    def __init__(
        self, links: Iterable[Link], protocol: Callable[[Host], GuestT], **options: Unpack[Options]
    ) -> None: ...

    def __init__(
        self,
        links: Iterable[Link],
        protocol: str | Callable[[Host], Any],
        parameters: Mapping[str, Any] | None = None,
        **options: Unpack[Options],
    ) -> None:
        self.now_s = 0.0
        self.delay_s = options.get("delay_s", 0.001)
        self.frame_bytes_max = options.get("frame_bytes_max", 1376)
        self.seed = options.get("seed", 1)
        self.loss = options.get("loss", 0.0)
        self._losing = derive(self.seed, "loss", 0)
        self.site = options.get("site")
        self.positions_m = dict(options.get("positions_m", {}))
        self.records: list[TranscriptLine] = []
        self.deliveries: list[RecordedDelivery] = []
        self.frames: Counter[str] = Counter()  # sent, by label
        self.language = options.get("language", "")
        self.oracle = LinkOracle(self) if options.get("oracle") else None
        self._make = _maker(protocol, parameters or {})
        self._links: dict[int, set[int]] = {}
        self._agenda: list[tuple[float, int, Callable[[], None]]] = []
        self._order = 0
        self._drops: list[_DropRule] = []
        self._checks: list[Callable[[], None]] = []
        self._published: Counter[int] = Counter()
        self._wanted: dict[int, Subscriptions] = {}
        for a, b in links:
            self._links.setdefault(a, set()).add(b)
            self._links.setdefault(b, set()).add(a)
        for address in range(options.get("nodes", 0)):
            self._links.setdefault(address, set())
        self._nodes: dict[int, TestHost[GuestT]] = {a: TestHost(self, a, 1, self._make) for a in sorted(self._links)}
        for node in self._nodes.values():
            node.guest.start()

    # -- Looking -------------------------------------------------------------------------------------------------

    def node(self, address: int) -> GuestT:
        """The protocol at `address`."""
        return self.host(address).guest

    def host(self, address: int) -> TestHost[GuestT]:
        if address not in self._nodes:
            raise CallerError(f"node: there is no {address}; there are {sorted(self._nodes)}")
        return self._nodes[address]

    @property
    def addresses(self) -> list[int]:
        return list(self._nodes)

    def neighbours(self, address: int) -> list[int]:
        return sorted(self._links.get(address, ()))

    def linked(self, a: int, b: int) -> bool:
        return b in self._links.get(a, ())

    def contents(self, address: int) -> list[Content]:
        """What was delivered at a node, in order."""
        return [delivery.event.content for delivery in self.deliveries if delivery.node == address]

    def receivers(self, event: Event) -> list[int]:
        """Where an event was delivered, in ascending order, once per delivery."""
        return sorted(delivery.node for delivery in self.deliveries if delivery.event.id == event.id)

    def subscribers(self, event: Event) -> list[int]:
        """Nodes whose application, through `net.subscribe`, wants the event now."""
        return sorted(address for address, wanted in self._wanted.items() if wanted.match(event))

    def transcript(self, *kinds: str, since_s: float = 0.0) -> str:
        """What happened, one line each; all of it, or only records of these kinds."""
        chosen = (r for r in self.records if r.time_s >= since_s and (not kinds or r.kind in kinds))
        return "\n".join(f"{r.time_s:8.3f}  {r.node:>2} {r.text}" for r in chosen)

    # -- Acting --------------------------------------------------------------------------------------------------

    def run(self, seconds: float) -> None:
        """Lets time pass."""
        until_s = self.now_s + seconds
        while self._agenda and self._agenda[0][0] <= until_s:
            self.step()
        self.now_s = until_s

    def step(self) -> None:
        """The next thing that is due: one timer, one report, or one frame with all its receivers."""
        if not self._agenda:
            raise CallerError("step: nothing is due any more")
        self.now_s, _, action = heappop(self._agenda)
        action()
        for check in self._checks:
            check()

    def after(self, delay_s: float, action: Callable[[], None]) -> None:
        """Does something later, for scripts."""
        self._order += 1
        heappush(self._agenda, (self.now_s + delay_s, self._order, action))

    def check(self, checker: Callable[[], None]) -> None:
        """Calls `checker` after every step from now on."""
        self._checks.append(checker)

    def link(self, a: int, b: int) -> None:
        """From now on `a` and `b` hear each other."""
        for one, other in ((a, b), (b, a)):
            self._links[self.host(one).address].add(other)
        self.record(a, "link", f"= {b}")

    def unlink(self, a: int, b: int) -> None:
        """From now on they do not; frames under way between them are lost."""
        for one, other in ((a, b), (b, a)):
            self._links[self.host(one).address].discard(other)
        self.record(a, "link", f"| {b}")

    def drop(
        self,
        label: str | None = None,
        sender: int | None = None,
        receiver: int | None = None,
        count: int | None = 1,
    ) -> None:
        """Loses the next `count` receptions (all, if None) that fit, counting each receiver of a broadcast."""
        self._drops.append(_DropRule(label, sender, receiver, count))

    def crash(self, address: int) -> None:
        """The node is gone, with its timers and its memory. Its links stay, but it does not answer."""
        self.host(address).alive = False
        self.host(address).forget_timers()
        self._wanted.pop(address, None)
        self.record(address, "node", "crashed")

    def restart(self, address: int) -> None:
        """The node is back, with nothing remembered."""
        self.crash(address)
        self._nodes[address] = TestHost(self, address, self._nodes[address].life + 1, self._make)
        self.record(address, "node", "started")
        self._nodes[address].guest.start()

    def subscribe(self, address: int, interest: Interest) -> None:
        self._wanted.setdefault(address, Subscriptions()).add(interest)
        self._protocol(address).subscribe(interest)

    def unsubscribe(self, address: int, interest: Interest) -> None:
        self._wanted.setdefault(address, Subscriptions()).remove(interest)
        self._protocol(address).unsubscribe(interest)

    def publish(
        self, address: int, content: Content, payload: bytes = b"", cause: int = NO_EVENT, utility: str = ""
    ) -> Event:
        self._published[address] += 1
        number = event_id(address, self._published[address])
        event = Event(number, self.now_s, content, payload, cause=cause, utility=utility)
        self._protocol(address).publish(event)
        return event

    # -- For the nodes -------------------------------------------------------------------------------------------

    def record(self, address: int, kind: str, text: str) -> None:
        self.records.append(TranscriptLine(self.now_s, address, kind, text))

    def transmit(self, sender: TestHost[GuestT], receiver: int, message: Message) -> None:
        """Puts a frame on the air; to all linked nodes if `receiver` is `NOBODY`."""
        self.frames[message.label] += 1
        sender.frames_under_way += 1
        audience = self.neighbours(sender.address)
        if receiver == NOBODY:
            self.record(sender.address, "broadcast", f"-> *  {describe(message)}")
            self.after(self.delay_s, lambda: self._arrive_at_all(sender, audience, message))
        else:
            self.record(sender.address, "send", f"-> {receiver}  {describe(message)}")
            self.after(self.delay_s, lambda: self._arrive_at_one(sender, receiver, message))

    def _arrive_at_all(self, sender: TestHost[GuestT], audience: list[int], message: Message) -> None:
        sender.frames_under_way -= 1
        for receiver in audience:
            if self._passes(sender, receiver, message):
                self._nodes[receiver].arrives(sender.address, message)

    def _arrive_at_one(self, sender: TestHost[GuestT], receiver: int, message: Message) -> None:
        sender.frames_under_way -= 1
        if self._passes(sender, receiver, message):
            self._nodes[receiver].arrives(sender.address, message)
        elif sender.alive:
            self.record(sender.address, "failed", f"-x {receiver}  {message.label}")
            sender.fails(receiver, message)

    def _passes(self, sender: TestHost[GuestT], receiver: int, message: Message) -> bool:
        if not sender.alive or not self.linked(sender.address, receiver) or not self._nodes[receiver].alive:
            return False
        for rule in self._drops:
            if rule.strikes(sender.address, receiver, message):
                self.record(receiver, "lost", f"<x {sender.address}  {message.label}")
                return False
        if self.loss and self._losing.random() < self.loss:
            self.record(receiver, "lost", f"<x {sender.address}  {message.label}")
            return False
        return True

    def _protocol(self, address: int) -> Protocol:
        guest = self.node(address)
        if not isinstance(guest, Protocol):
            raise CallerError(f"node {address}: {type(guest).__name__} is not a Protocol; call it directly")
        return guest


class _DropRule:
    def __init__(self, label: str | None, sender: int | None, receiver: int | None, count: int | None) -> None:
        self._label, self._sender, self._receiver, self._left = label, sender, receiver, count

    def strikes(self, sender: int, receiver: int, message: Message) -> bool:
        fits = (
            self._label in (None, message.label)
            and self._sender in (None, sender)
            and self._receiver in (None, receiver)
            and self._left != 0
        )
        if fits and self._left is not None:
            self._left -= 1
        return fits


def _maker(protocol: str | Callable[[Host], Any], parameters: Mapping[str, Any]) -> Callable[[Host], Any]:
    if not isinstance(protocol, str):
        return protocol
    settings = protocol_parameters(protocol, dict(parameters))
    return lambda host: build_protocol(protocol, host, settings)
