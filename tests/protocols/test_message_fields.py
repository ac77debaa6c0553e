"""Every number in a message declares its range (`roamcast/fields.py`), in every protocol."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from roamcast.delivery.messages import MESSAGES
from roamcast.events import Event
from roamcast.interests import Interest, Intervals, Topics, XPaths
from roamcast.protocols.catalogue import PROTOCOLS
from roamcast.protocols.fragment import Fragment

CHECKED_BY_THEMSELVES = (Intervals, Topics, XPaths)
"""Interests refuse nonsense in `__post_init__`."""


def bare_numbers(kind: msgspec.inspect.Type, place: str, seen: set[type]) -> Iterator[str]:
    """Places below `place` where a number has no lower or no upper bound."""
    match kind:
        case msgspec.inspect.IntType() | msgspec.inspect.FloatType():
            has_low = kind.ge is not None or kind.gt is not None
            has_high = kind.le is not None or kind.lt is not None
            if not (has_low and has_high):
                yield f"{place}: {type(kind).__name__}"
        case msgspec.inspect.StructType(cls=cls, fields=fields):
            if cls in seen or cls in CHECKED_BY_THEMSELVES:
                return
            seen.add(cls)
            for field in fields:
                yield from bare_numbers(field.type, f"{cls.__name__}.{field.name}", seen)
        case msgspec.inspect.UnionType(types=types):
            for each in types:
                yield from bare_numbers(each, place, seen)
        case msgspec.inspect.TupleType(item_types=types):
            for each in types:
                yield from bare_numbers(each, place, seen)
        case msgspec.inspect.VarTupleType(item_type=item) | msgspec.inspect.ListType(item_type=item):
            yield from bare_numbers(item, place, seen)
        case msgspec.inspect.DictType(key_type=key, value_type=value):
            yield from bare_numbers(key, place, seen)
            yield from bare_numbers(value, place, seen)


@pytest.mark.parametrize("name", PROTOCOLS)
def test_every_number_of_a_protocols_messages_has_a_range(name: str) -> None:
    union: Any = PROTOCOLS[name].messages | Fragment
    assert sorted(bare_numbers(msgspec.inspect.type_info(union), name, set())) == []


def test_every_number_of_the_delivery_layers_messages_has_a_range() -> None:
    assert sorted(bare_numbers(msgspec.inspect.type_info(MESSAGES), "delivery", set())) == []


def test_the_walk_finds_a_bare_number() -> None:
    class Careless(msgspec.Struct):
        interest: Interest
        event: Event
        rows: tuple[tuple[int, str], ...]

    assert list(bare_numbers(msgspec.inspect.type_info(Careless), "", set())) == ["Careless.rows: IntType"]
