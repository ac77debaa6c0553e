"""One device of the forum: a live node, its subscriptions, and what it has published and received.

The device is a *broker* or not, as its owner decides (the paper's broker participation option, figure 7). One that is
not is served by a broker nearby. A *constrained* device is no broker, knows no XPath, and sends its broker Bloom
filters of what its user has entered.

An event that several subscriptions match is one notification with several reasons.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Self

import msgspec

import roamcast
from roamcast.apps.golf_forum import forms
from roamcast.errors import ConfigurationError
from roamcast.interests import XPaths
from roamcast.interests.content import matches

NOTICES_MAX = 200
SUBSCRIPTIONS_MAX = 50
ADVERTISED = f"/{forms.SCORE}"


class Device(msgspec.Struct, frozen=True):
    """What its owner decides about it."""

    name: str
    address: int
    hole: int | None = None  # where it is the official announcer; None: it belongs to a visitor in the gallery
    broker: bool = True
    constrained: bool = False

    def __post_init__(self) -> None:
        if not 1 <= len(self.name) <= 40:
            raise ConfigurationError(f"name: {self.name!r}: must have 1 to 40 characters")
        if self.hole is not None and not 1 <= self.hole <= 18:
            raise ConfigurationError(f"hole = {self.hole}: must be between 1 and 18")
        if self.broker and self.constrained:
            raise ConfigurationError("constrained: such a device cannot be a broker")

    @property
    def role(self) -> str:
        return "gallery" if self.hole is None else f"official announcer, hole {self.hole}"

    @property
    def parameters(self) -> dict[str, Any]:
        """Of the protocol."""
        return {"broker_share": 1.0 if self.broker else 0.0, "client_filters": self.constrained}


class Wanted:
    """A subscription as its user made it."""

    def __init__(self, number: int, form: forms.Form, expression: str, open_now: list[roamcast.Subscription]) -> None:
        self.number = number
        self.form = form
        self.expression = expression
        self.open = open_now
        self.readers: list[asyncio.Task[None]] = []
        self.matched = 0

    def shown(self) -> dict[str, Any]:
        return {"number": self.number, "type": self.form.type, "xpath": self.expression, "matched": self.matched}


class Participant:
    """A device that runs: a context. `on_activity` is told what its node does."""

    def __init__(
        self,
        device: Device,
        *,
        parameters: Mapping[str, Any] | None = None,
        on_activity: Callable[[roamcast.Activity], None] = lambda activity: None,
        **node: Any,
    ) -> None:
        """`parameters` are more of the protocol's; `node` are settings of `roamcast.Node`, such as peers or a key."""
        forms.register_types()
        self.device = device
        self.home: int | None = None  # its broker, if it is none itself
        self.listeners: list[Callable[[dict[str, Any]], None]] = []  # get what a page should know
        self._on_activity = on_activity
        self._parameters = dict(parameters or {})
        self.node = roamcast.Node(
            device.address,
            protocol="odmrp",
            parameters=self._parameters | device.parameters,
            language="content",
            on_activity=self._watched,
            **node,
        )
        self.wanted: list[Wanted] = []
        self.notices: list[dict[str, Any]] = []  # newest last
        self.published: list[dict[str, Any]] = []
        self._subscribed = 0
        self._written = 0

    async def __aenter__(self) -> Self:
        await self.node.__aenter__()
        if self.device.hole is not None:
            self.node.advertise(ADVERTISED)  # an official will publish again and again: routes may be ready
        return self

    async def __aexit__(self, *error: object) -> None:
        for wanted in self.wanted:
            for reader in wanted.readers:
                reader.cancel()
        await self.node.__aexit__(*error)

    def subscribe(self, form: forms.Form) -> Wanted:
        if len(self.wanted) >= SUBSCRIPTIONS_MAX:
            raise ConfigurationError(f"subscription: at most {SUBSCRIPTIONS_MAX} at a time; remove one")
        expression = forms.expression(form)
        if self.device.constrained:
            opened = [self.node.subscribe_values(form.type, wishes) for wishes in forms.wishes(form)]
        else:
            opened = [self.node.subscribe(expression)]
        self._subscribed += 1
        wanted = Wanted(self._subscribed, form, expression, opened)
        wanted.readers = [asyncio.create_task(self._read(wanted, subscription)) for subscription in opened]
        self.wanted.append(wanted)
        self._tell_subscriptions()
        return wanted

    def unsubscribe(self, number: int) -> None:
        found = [wanted for wanted in self.wanted if wanted.number == number]
        if not found:
            raise ConfigurationError(f"subscription: {number} is not there")
        self.wanted.remove(found[0])
        for subscription in found[0].open:
            subscription.close()
        self._tell_subscriptions()

    async def publish(self, type_name: str, entered: dict[str, Any]) -> dict[str, Any]:
        """Publishes what the user entered; an announcer's hole is its own."""
        device = self.device
        official = device.hole is not None and type_name == forms.SCORE
        if official:
            entered = entered | {"hole": device.hole}
        self._written += 1
        name = f"O{device.hole}-{self._written}" if official else f"G{device.address}-{self._written}"
        text = forms.document(type_name, entered, name)
        published = await self.node.publish(text)
        shown = {"event": str(published.event.id), "neighbours": published.neighbours, "xml": text}
        shown |= forms.published_values(text)
        self.published = [*self.published, shown][-NOTICES_MAX:]
        self._tell({"kind": "published", **shown})
        return shown

    def change(self, *, broker: bool, constrained: bool) -> None:
        """The owner decides again what the device does for others."""
        device = msgspec.structs.replace(self.device, broker=broker, constrained=constrained)
        if device == self.device:
            return
        self.node.set_parameters(self._parameters | device.parameters)
        self.device = device
        self.home = None
        self._tell(self.status())

    def status(self) -> dict[str, Any]:
        counters = self.node.counters
        return {
            "kind": "status",
            "name": self.device.name,
            "address": self.device.address,
            "role": self.device.role,
            "hole": self.device.hole,
            "broker": self.device.broker,
            "constrained": self.device.constrained,
            "home": self.home,
            "neighbours": self.node.neighbours,
            "frames_sent": sum(counters["frames_sent"].values()),
            "bytes_sent": counters["bytes_sent"],
        }

    def snapshot(self) -> list[dict[str, Any]]:
        """What a page needs to know when it is opened."""
        history = [{"kind": "published", **each} for each in self.published]
        history += [{"kind": "notice", **each} for each in self.notices]
        return [self.status(), self._subscriptions(), *history]

    def tell_status(self) -> None:
        """Neighbours come and go without a message of their own."""
        self._tell(self.status())

    def _tell(self, message: dict[str, Any]) -> None:
        for listener in self.listeners:
            listener(message)

    def _subscriptions(self) -> dict[str, Any]:
        return {"kind": "subscriptions", "subscriptions": [wanted.shown() for wanted in self.wanted]}

    def _tell_subscriptions(self) -> None:
        self._tell(self._subscriptions())

    async def _read(self, wanted: Wanted, subscription: roamcast.Subscription) -> None:
        async for delivery in subscription:
            assert isinstance(subscription.interest, XPaths)
            self._notify(wanted, delivery, subscription.interest)

    def _notify(self, wanted: Wanted, delivery: roamcast.Delivery, interest: XPaths) -> None:
        event = delivery.event
        found = [
            {"subscription": wanted.number, "xpath": wanted.expression, "reasons": forms.reasons(match)}
            for match in matches(interest, event.content)
        ]
        known = next((notice for notice in self.notices if notice["event"] == str(event.id)), None)
        if known is None:
            wanted.matched += 1
            known = {
                "event": str(event.id),
                "from": event.publisher,
                "time_s": event.time_s,
                "hops": delivery.hops,
                "latency_ms": round(1000 * delivery.latency_s, 1),
                "xml": event.content,
                **forms.published_values(str(event.content)),
                "matches": found,
            }
            self.notices = [*self.notices, known][-NOTICES_MAX:]
        else:
            if wanted.number not in [match["subscription"] for match in known["matches"]]:
                wanted.matched += 1
            known["matches"] += found
        self._tell({"kind": "notice", **known})
        self._tell_subscriptions()

    def _watched(self, activity: roamcast.Activity) -> None:
        if activity.kind == "structure" and activity.label == "home":
            self.home = activity.peer
            self._tell(self.status())
        self._on_activity(activity)
