"""How a protocol is made of parts: one idiom for every system.

A *component* is a part of a protocol on one node. It owns its state, declares the messages and timers it handles, and
calls its siblings through narrow, named methods. A `ComposedProtocol` holds the components and a dispatcher; it hands
each input to the one component that declared it.

    class Hellos(Component):
        def __init__(self, host: Host, parameters: MyParameters, links: Links) -> None:
            super().__init__(host)
            ...

        def declare(self, inputs: Inputs) -> None:
            inputs.on(Hello, self._on_hello)
            inputs.on_timer(MyTimer.HELLO, self._send_hello)

The rules:

- A message type and a timer have exactly one handler. Declaring one twice is a programmer's error.
- Timers are members of a `StrEnum`, one enum per component; a comment behind each member says when it fires. A timer
  is set with `host.set_timer(delay_s, (MyTimer.HELLO, key))`, and its handler gets the key.
- Nothing re-enters. A component that wants something done after the current input has been handled queues it with
  `inputs.later`; queued calls run in order once the input's handler has returned.
- A component gets its siblings through its constructor. Where two components need each other, the one that is built
  first gets a callback; there is no registry to look things up in.
- A message that no component declared is ignored: it belongs to a part that this node does not have.
- A component that learns from every frame, whatever its type (a link monitor, say), declares `on_any_message`; its
  handler runs before the message's own.
"""

from abc import abstractmethod
from collections.abc import Callable
from enum import StrEnum
from typing import Any, Final, TypeVar

from mypy_extensions import mypyc_attr

from roamcast.errors import CallerError
from roamcast.protocols.api import Host, Message, Protocol, Timer

M = TypeVar("M", bound=Message)

SETTLE: Final[Timer] = ("components.settle", 0)
"""Timer: runs what an application's call has queued."""


class Inputs:
    """Which handler takes which input, and what waits until the current input has been handled."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self.messages: dict[Any, Callable[[int, Any], None]] = {}
        self.failures: dict[Any, Callable[[int, Any], None]] = {}
        self.timers: dict[str, Callable[[int], None]] = {SETTLE[0]: self._settle}
        self.message_observers: list[Callable[[int, Message], None]] = []
        self.failure_observers: list[Callable[[int, Message], None]] = []
        self.is_handling = False
        self.queue: list[Callable[[], None]] = []

    def on(self, kind: type[M], handler: Callable[[int, M], None]) -> None:
        """`handler(sender, message)` takes messages of this type."""
        _declare_once(self.messages, kind, handler)

    def on_any_message(self, handler: Callable[[int, Message], None]) -> None:
        """`handler(sender, message)` sees every message before the handler of its type does."""
        self.message_observers.append(handler)

    def on_failure(self, kind: type[M], handler: Callable[[int, M], None]) -> None:
        """`handler(neighbour, message)` is told when the link gave up on a message of this type."""
        _declare_once(self.failures, kind, handler)

    def on_any_failure(self, handler: Callable[[int, Message], None]) -> None:
        """`handler(neighbour, message)` is told of every failure before the handler of the message's type is."""
        self.failure_observers.append(handler)

    def on_timer(self, timer: StrEnum, handler: Callable[[int], None]) -> None:
        """`handler(key)` runs when the timer fires."""
        _declare_once(self.timers, timer.value, handler)

    def later(self, call: Callable[[], None]) -> None:
        """Runs `call` after the current input has been handled."""
        if not self.is_handling and not self.queue:
            self._host.set_timer(0.0, SETTLE)
        self.queue.append(call)

    def run_queue(self) -> None:
        """Runs what is queued, including what that queues in turn."""
        while self.queue:
            self.queue.pop(0)()

    def _settle(self, key: int) -> None:
        """The dispatcher runs the queue after each input; this timer is the input."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Component:
    """A part of a protocol on one node."""

    def __init__(self, host: Host) -> None:
        self.host = host

    @abstractmethod
    def declare(self, inputs: Inputs) -> None:
        """Tells the dispatcher which messages, failures and timers this component handles."""


@mypyc_attr(allow_interpreted_subclasses=True)
class ComposedProtocol(Protocol):
    """A protocol that is made of components. Subclasses build them, then call `compose` once."""

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self.inputs = Inputs(host)

    def compose(self, *components: Component) -> None:
        for component in components:
            component.declare(self.inputs)

    def on_message(self, sender: int, message: Message) -> None:
        inputs = self.inputs
        inputs.is_handling = True
        try:
            if inputs.message_observers:
                for observe in inputs.message_observers:
                    observe(sender, message)
            handler = inputs.messages.get(type(message))
            if handler is not None:
                handler(sender, message)
            if inputs.queue:
                inputs.run_queue()
        finally:
            inputs.is_handling = False

    def on_timer(self, timer: Timer) -> None:
        inputs = self.inputs
        inputs.is_handling = True
        try:
            inputs.timers[timer[0]](timer[1])
            if inputs.queue:
                inputs.run_queue()
        finally:
            inputs.is_handling = False

    def on_send_failed(self, neighbour: int, message: Message) -> None:
        inputs = self.inputs
        inputs.is_handling = True
        try:
            for observe in inputs.failure_observers:
                observe(neighbour, message)
            handler = inputs.failures.get(type(message))
            if handler is not None:
                handler(neighbour, message)
            if inputs.queue:
                inputs.run_queue()
        finally:
            inputs.is_handling = False


def _declare_once(handlers: dict[Any, Any], key: Any, handler: Any) -> None:
    if key in handlers:
        raise CallerError(f"{key!r} is handled by two components")
    handlers[key] = handler
