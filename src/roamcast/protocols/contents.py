"""What a message contains: its events and its interests, however deep, for hosts that check them.

A protocol's messages are walked once by their types, to find the fields that can lead to an event or an interest; a
message is then walked along these fields only.
"""

from typing import Any, Final

import msgspec
from msgspec import inspect

from roamcast.events import Event
from roamcast.interests import Intervals, Topics, XPaths
from roamcast.protocols.api import Message

INTERESTS: Final[tuple[type, ...]] = (Intervals, Topics, XPaths)


class Contents:
    """Finds the events and interests in the messages of one protocol."""

    def __init__(self, messages: Any) -> None:
        self._fields: dict[type, list[str]] = {}  # of a struct: those that can lead to an event or an interest
        info = inspect.type_info(messages)
        while self._visit(info):  # until nothing changes: messages may contain messages
            pass

    def events(self, message: Message) -> list[Event]:
        found: list[Any] = []
        self._collect(message, found)
        return [each for each in found if type(each) is Event]

    def interests(self, message: Message) -> list[Any]:
        found: list[Any] = []
        self._collect(message, found)
        return [each for each in found if type(each) is not Event]

    def with_events(self, message: Any, change: Any) -> Any:
        """The message with `change(event)` for each event; the same object if nothing changes."""
        if type(message) is Event:
            return change(message)
        if type(message) is tuple:
            items = tuple([self.with_events(item, change) for item in message])
            return message if all(new is old for new, old in zip(items, message, strict=True)) else items
        changed: dict[str, Any] = {}
        for name in self._fields.get(type(message), ()):
            old = getattr(message, name)
            new = self.with_events(old, change)
            if new is not old:
                changed[name] = new
        return msgspec.structs.replace(message, **changed) if changed else message

    def _collect(self, value: Any, found: list[Any]) -> None:
        kind = type(value)
        if kind is Event or kind in INTERESTS:
            found.append(value)
        elif kind is tuple:
            for item in value:
                self._collect(item, found)
        else:
            for name in self._fields.get(kind, ()):
                self._collect(getattr(value, name), found)

    def _visit(self, info: inspect.Type) -> bool:
        """Goes through the types once; whether anything new was found."""
        before = sum(map(len, self._fields.values()))
        self._can_lead(info, set())
        return sum(map(len, self._fields.values())) != before

    def _can_lead(self, info: inspect.Type, above: set[type]) -> bool:
        match info:
            case inspect.StructType(cls=cls):
                if cls is Event or cls in INTERESTS:
                    return True
                if cls not in above:
                    names = [f.name for f in info.fields if self._can_lead(f.type, above | {cls})]
                    self._fields[cls] = sorted({*self._fields.get(cls, []), *names})
                return bool(self._fields.get(cls))
            case inspect.UnionType():
                return sum([self._can_lead(each, above) for each in info.types]) > 0  # all of them, not up to the first
            case inspect.VarTupleType():
                return self._can_lead(info.item_type, above)
            case inspect.TupleType():
                return sum([self._can_lead(each, above) for each in info.item_types]) > 0
        return False
