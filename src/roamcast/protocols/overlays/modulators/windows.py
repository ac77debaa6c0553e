"""Operators that look at several events: sliding windows, and windows per key.

| operator | what it does to an event |
|---|---|
| `moving(FUNCTION, EXPRESSION, N)` | sets its content to the mean, sum, min, max or count of the last N values |
| `moving(FUNCTION, EXPRESSION, N, KEY)` | the same per key: `moving(mean, level, 10, station)` |
| `within(FUNCTION, EXPRESSION, SECONDS, KEY)` | the same over the last seconds, by the events' times |
| `batch(FUNCTION, EXPRESSION, N, KEY)` | replaces every N events of a key by one |
| `changed(EXPRESSION, BY, KEY)` | passes it if the value differs by more than BY from the last that passed |

KEY is an expression such as `publisher`, `content` or a field; `1` puts all events into one window. An event without a
value passes no window. A field after the key, as in `moving(mean, level, 10, station, average)`, takes the result
instead of the content, which suits networks whose contents are topics.

An operator remembers at most `VALUES_MAX` values of at most `KEYS_MAX` keys; then it forgets the key that has been
silent for longest. So its state is bounded whatever keys it is shown.
"""

from typing import ClassVar, Final

import msgspec
from msgspec.structs import replace

from roamcast.events import Event
from roamcast.protocols.overlays.modulators.expression import ConstantTerm, Formula, Parser, Scope, Value
from roamcast.protocols.overlays.modulators.operator import (
    AGGREGATES,
    Fate,
    Operator,
    State,
    expression_cost_s,
    one_of,
    seconds,
    signed,
    whole_between,
)

VALUES_MAX: Final = 2048
KEYS_MAX: Final = 512
WINDOW_MAX: Final = 1000
WITHIN_S_MAX: Final = 86_400.0
KEY_CHARACTERS_MAX: Final = 64

Window = list[tuple[float, float]]  # when, value; oldest first

_decoder = msgspec.msgpack.Decoder(list[tuple[str, list[tuple[float, float]]]])


class Windows:
    """The latest values per key; the key that was silent for longest is forgotten first."""

    def __init__(self) -> None:
        self._windows: dict[str, Window] = {}
        self._count = 0

    def add(self, key: str, time_s: float, value: float) -> Window:
        """The key's window with the new value in it."""
        window = self._windows.pop(key, [])
        window.append((time_s, value))
        self._windows[key] = window
        self._count += 1
        while (self._count > VALUES_MAX or len(self._windows) > KEYS_MAX) and len(self._windows) > 1:
            self._count -= len(self._windows.pop(next(iter(self._windows))))
        return window

    def cut(self, window: Window, gone: int) -> None:
        """Takes the oldest values out of a window."""
        del window[:gone]
        self._count -= gone

    def latest(self, key: str) -> float | None:
        window = self._windows.get(key)
        return window[-1][1] if window else None

    def state(self) -> bytes:
        return msgspec.msgpack.encode(list(self._windows.items()))

    def restore(self, state: State, window_max: int) -> None:
        if not isinstance(state, bytes):
            raise ValueError("not windows")
        windows = dict(_decoder.decode(state))
        total = sum(map(len, windows.values()))
        longest = max(map(len, windows.values()), default=0)
        is_bounded = total <= VALUES_MAX and len(windows) <= KEYS_MAX and longest <= window_max
        if not is_bounded or any(len(key) > KEY_CHARACTERS_MAX for key in windows):
            raise ValueError(f"{total} values, {longest} in a window")
        self._windows, self._count = windows, total


class _Windowed(Operator):
    """What the operators of this module share: a value, a key, and where the result goes."""

    window_max: ClassVar[int] = WINDOW_MAX

    def __init__(self, function: str, value: Formula, key: Formula, field: str) -> None:
        self._compute = AGGREGATES[function]
        self._value = value
        self._key = key
        self._field = field  # of the payload; empty: the content
        self._windows = Windows()

    def apply(self, event: Event) -> Event | Fate:
        scope = Scope(event)
        value = self._value.evaluate(scope)
        if not isinstance(value, float):
            return Fate.DROPPED
        return self._take(event, scope, key_text(self._key.evaluate(scope)), value)

    def _take(self, event: Event, scope: Scope, key: str, value: float) -> Event | Fate:
        raise NotImplementedError

    def _result(self, event: Event, scope: Scope, window: Window) -> Event | Fate:
        try:
            result = self._compute([value for _, value in window])
        except OverflowError:  # a sum
            return Fate.DROPPED
        if not self._field:
            return replace(event, content=result)
        return replace(event, payload=msgspec.json.encode({**scope.record, self._field: result}))

    def cost_s(self, event: Event) -> float:
        return expression_cost_s(self._value, event) + expression_cost_s(self._key, event)

    def state(self) -> State:
        return self._windows.state()

    def restore(self, state: State) -> None:
        self._windows.restore(state, self.window_max)


class Moving(_Windowed):
    name: ClassVar[str] = "moving"

    def __init__(self, function: str, value: Formula, size: int, key: Formula, field: str) -> None:
        super().__init__(function, value, key, field)
        self._size = size

    @classmethod
    def parse(cls, parser: Parser) -> "Moving":
        function, value = _function_and_value(parser)
        size = whole_between(parser, 1, WINDOW_MAX)
        return cls(function, value, size, *_key_and_field(parser))

    def _take(self, event: Event, scope: Scope, key: str, value: float) -> Event | Fate:
        window = self._windows.add(key, event.time_s, value)
        self._windows.cut(window, max(0, len(window) - self._size))
        return self._result(event, scope, window)


class Within(_Windowed):
    name: ClassVar[str] = "within"

    def __init__(self, function: str, value: Formula, span_s: float, key: Formula, field: str) -> None:
        super().__init__(function, value, key, field)
        self._span_s = span_s

    @classmethod
    def parse(cls, parser: Parser) -> "Within":
        function, value = _function_and_value(parser)
        span_s = seconds(parser, WITHIN_S_MAX)
        return cls(function, value, span_s, *_key_and_field(parser))

    def _take(self, event: Event, scope: Scope, key: str, value: float) -> Event | Fate:
        window = self._windows.add(key, event.time_s, value)
        begin_s = event.time_s - self._span_s
        gone = next((place for place, (time_s, _) in enumerate(window) if time_s > begin_s), len(window) - 1)
        self._windows.cut(window, max(gone, len(window) - WINDOW_MAX))
        return self._result(event, scope, window)


class Batch(_Windowed):
    """Unlike `aggregate` it does not hold its events back: if a broker crashes, unfinished batches are lost. A key that
    falls silent would otherwise have its events kept everywhere for ever."""

    name: ClassVar[str] = "batch"

    def __init__(self, function: str, value: Formula, size: int, key: Formula, field: str) -> None:
        super().__init__(function, value, key, field)
        self._size = size

    @classmethod
    def parse(cls, parser: Parser) -> "Batch":
        function, value = _function_and_value(parser)
        size = whole_between(parser, 1, WINDOW_MAX)
        return cls(function, value, size, *_key_and_field(parser))

    def _take(self, event: Event, scope: Scope, key: str, value: float) -> Event | Fate:
        window = self._windows.add(key, event.time_s, value)
        if len(window) < self._size:
            return Fate.DROPPED
        result = self._result(event, scope, window)
        self._windows.cut(window, len(window))
        return result


class Changed(_Windowed):
    name: ClassVar[str] = "changed"
    window_max: ClassVar[int] = 1

    def __init__(self, value: Formula, by: float, key: Formula) -> None:
        super().__init__("max", value, key, "")
        self._by = by

    @classmethod
    def parse(cls, parser: Parser) -> "Changed":
        value = parser.expression()
        parser.expect(",")
        by = signed(parser)
        return cls(value, by, parser.expression() if parser.accept(",") else _ONE_KEY)

    def _take(self, event: Event, scope: Scope, key: str, value: float) -> Event | Fate:
        latest = self._windows.latest(key)
        if latest is not None and abs(value - latest) <= self._by:
            return Fate.DROPPED
        window = self._windows.add(key, event.time_s, value)
        self._windows.cut(window, len(window) - 1)
        return event


_ONE_KEY: Final = Formula(ConstantTerm(1.0), 1)


def key_text(key: Value) -> str:
    """A key as it is remembered. Long texts share a key if they begin alike."""
    return f"{type(key).__name__[0]}:{key}"[:KEY_CHARACTERS_MAX]


def _function_and_value(parser: Parser) -> tuple[str, Formula]:
    function = one_of(parser, tuple(AGGREGATES))
    parser.expect(",")
    value = parser.expression()
    parser.expect(",")
    return function, value


def _key_and_field(parser: Parser) -> tuple[Formula, str]:
    key = parser.expression() if parser.accept(",") else _ONE_KEY
    return key, parser.read("name", "a field") if parser.accept(",") else ""
