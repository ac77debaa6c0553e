"""What a message contains: its events, interests and records, however deep, for hosts that check them.

A *record* is what a node says of itself and others pass on. Its struct names the field with the node (`signed_by`), the
fields that do not change on the way (`signed`), and has a field `signature` that protocols carry and do not read.

A protocol's messages are walked once by their types, to find the fields that can lead to an event or an interest; a
message is then walked along these fields only.
"""

from typing import Any, Final, get_origin

import msgspec
from msgspec import inspect

from roamcast.events import Event
from roamcast.interests import LANGUAGES, Intervals, Topics, XPaths
from roamcast.protocols.api import Message

INTERESTS: Final[tuple[type, ...]] = (Intervals, Topics, XPaths)


class Contents:
    """Finds the events and interests in the messages of one protocol."""

    def __init__(self, messages: Any) -> None:
        self._fields: dict[type, list[str]] = {}  # of a struct: those that can lead to one of these
        self._records: set[type] = set()
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
        return [each for each in found if type(each) in INTERESTS]

    def records(self, message: Message) -> list[Any]:
        found: list[Any] = []
        self._collect(message, found)
        return [each for each in found if type(each) in self._records]

    def speaks(self, message: Message, language: str) -> bool:
        """Whether all interests are in this language. Interests in different languages cannot be united."""
        kind = LANGUAGES[language]
        return all(type(interest) is kind for interest in self.interests(message))

    def without(self, message: Any, is_bad: Any) -> Any:
        """The message without the records for which `is_bad(record)`; None if it is nothing without them, because one
        of them is not an item of a list."""
        if type(message) is tuple:
            items = [self.without(item, is_bad) for item in message]
            if all(new is old for new, old in zip(items, message, strict=True)):
                return message
            return tuple([item for item, old in zip(items, message, strict=True) if item is not None or old is None])
        if type(message) in self._records and is_bad(message):
            return None
        changed: dict[str, Any] = {}
        for name in self._fields.get(type(message), ()):
            old = getattr(message, name)
            new = self.without(old, is_bad)
            if new is None and old is not None:
                return None
            if new is not old:
                changed[name] = new
        return msgspec.structs.replace(message, **changed) if changed else message

    def changed(self, message: Any, change: Any) -> Any:
        """The message with `change(each)` for each event and record; the same object if nothing changes."""
        if type(message) is Event:
            return change(message)
        if type(message) is tuple:
            items = tuple([self.changed(item, change) for item in message])
            return message if all(new is old for new, old in zip(items, message, strict=True)) else items
        changed: dict[str, Any] = {}
        for name in self._fields.get(type(message), ()):
            old = getattr(message, name)
            new = self.changed(old, change)
            if new is not old:
                changed[name] = new
        inside = msgspec.structs.replace(message, **changed) if changed else message
        return change(inside) if type(message) in self._records else inside

    def _collect(self, value: Any, found: list[Any]) -> None:
        kind = type(value)
        if kind is Event or kind in INTERESTS:
            found.append(value)
        elif kind is tuple:
            for item in value:
                self._collect(item, found)
        else:
            if kind in self._records:
                found.append(value)
            for name in self._fields.get(kind, ()):
                self._collect(getattr(value, name), found)

    def _visit(self, info: inspect.Type) -> bool:
        """Goes through the types once; whether anything new was found."""
        before = sum(map(len, self._fields.values()))
        self._can_lead(info, set())
        return sum(map(len, self._fields.values())) != before

    def _can_lead(self, info: inspect.Type, above: set[type]) -> bool:
        match info:
            case inspect.StructType(cls=named):
                cls = get_origin(named) or named  # a message that contains others, such as Routed, is generic
                if cls is Event or cls in INTERESTS:
                    return True
                if cls not in above:
                    names = [f.name for f in info.fields if self._can_lead(f.type, above | {cls})]
                    self._fields[cls] = sorted({*self._fields.get(cls, []), *names})
                if hasattr(cls, "signed_by"):
                    self._records.add(cls)
                return cls in self._records or bool(self._fields.get(cls))
            case inspect.UnionType():
                return sum([self._can_lead(each, above) for each in info.types]) > 0  # all of them, not up to the first
            case inspect.VarTupleType():
                return self._can_lead(info.item_type, above)
            case inspect.TupleType():
                return sum([self._can_lead(each, above) for each in info.item_types]) > 0
        return False
