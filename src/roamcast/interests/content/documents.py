"""XML documents as events: from text to a typed record and back.

A record holds the values of a document by path (see `schema.py`): whole numbers, doubles, strings; `True` for an
optional group that is there. Reading checks a document against the whole schema, so a record can be relied on. Elements
that the schema does not know are refused, not skipped.

The last documents read are cached, because many subscriptions look at each document that arrives at a node.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

from roamcast.errors import ConfigurationError
from roamcast.interests.content.schema import NUMBER_MAX, Element, EventSchema, Leaf, event_types, parse_xml
from roamcast.interests.content.values import Numbers, Words, number_text

DOCUMENT_CHARACTERS_MAX: Final = 8192

Value = int | float | str | bool

_CACHED: Final = 4096
_ENTITIES: Final = {"\r": "&#13;"}  # a bare one would be read as a line feed
_INTEGER: Final = re.compile(r"[ \t\r\n]*([+-]?[0-9]{1,16})[ \t\r\n]*\Z", re.ASCII)
_DECIMAL: Final = re.compile(r"[ \t\r\n]*([+-]?([0-9]{1,40}(\.[0-9]{0,40})?|\.[0-9]{1,40}))[ \t\r\n]*\Z", re.ASCII)
_INSTANT: Final = re.compile(
    r"[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,9})?"
    r"(Z|[+-](0[0-9]|1[0-3]):[0-5][0-9])?\Z",
    re.ASCII,
)


class DocumentRecord(NamedTuple):
    type: str
    values: dict[str, Value]  # by path; missing values have no entry


def read(text: str) -> DocumentRecord:
    """The record of a document; `ConfigurationError` if it is not an event of a known type."""
    record, mistake = _read(text)
    if record is None:
        raise ConfigurationError(mistake)
    return record


def record_of(content: object) -> DocumentRecord | None:
    """The record of an event's content, or nothing if it is not a document of a known type."""
    return _read(content)[0] if isinstance(content, str) else None


def write(type_name: str, values: Mapping[str, Value]) -> str:
    """The document with these values by path, in a form that `read` accepts."""
    kind = event_types().get(type_name)
    if kind is None:
        raise ConfigurationError(f"event: {type_name!r} is unknown; allowed: {', '.join(event_types())}")
    for path in values:
        if path not in kind.leaves:
            raise ConfigurationError(f"event: {type_name!r} has no {path!r}; allowed: {', '.join(kind.leaves)}")
    namespace = kind.root.tag[1:].partition("}")[0] if kind.root.tag.startswith("{") else ""
    text = _written(kind.root, "", values, f" xmlns={_quoted(namespace)}" if namespace else "")
    read(text)
    return text


@lru_cache(_CACHED)
def _read(text: str) -> tuple[DocumentRecord | None, str]:
    try:
        if len(text) > DOCUMENT_CHARACTERS_MAX:
            raise ConfigurationError(f"event: {len(text)} characters; allowed: at most {DOCUMENT_CHARACTERS_MAX}")
        root = parse_xml(text, "event")
        kind = _type_of(root)
        values: dict[str, Value] = {}
        _read_element(root, kind.root, values)
        return DocumentRecord(kind.name, values), ""
    except ConfigurationError as error:
        return None, str(error)


def _type_of(root: Any) -> EventSchema:
    tag = str(root.tag)
    kind = event_types().get(tag.rpartition("}")[2])
    if kind is None or kind.root.tag != tag:
        known = ", ".join(known.root.tag for known in event_types().values())
        raise ConfigurationError(f"event: the root element {tag[:200]!r} is no event type; allowed: {known}")
    return kind


def _read_element(node: Any, element: Element, values: dict[str, Value]) -> None:
    """Reads what is inside an element with children."""
    for name, text in node.items():
        attribute = element.attributes.get(name)
        if attribute is None:
            raise ConfigurationError(f"event: {_short(node)} has an unknown attribute {name[:80]!r}")
        values[attribute[0].path] = typed(attribute[0], text)
    position = -1
    tags = list(element.children)
    seen: set[str] = set()
    if (node.text or "").strip():
        raise ConfigurationError(f"event: {_short(node)} holds text between its elements")
    for child in node:
        known = element.children.get(child.tag)
        if known is None or child.tag in seen:
            what = "an unknown" if known is None else "a second"
            raise ConfigurationError(f"event: {_short(node)} has {what} element {_short(child)}")
        seen.add(child.tag)
        at = tags.index(child.tag)
        if element.ordered and at < position:
            raise ConfigurationError(f"event: {_short(child)} comes too late in {_short(node)}")
        position = at
        if (child.tail or "").strip():
            raise ConfigurationError(f"event: {_short(node)} holds text between its elements")
        _read_child(child, known, values)
    for tag, known in element.children.items():
        if known.required and tag not in seen:
            raise ConfigurationError(f"event: {_short(node)} lacks its element {tag.rpartition('}')[2]!r}")
    for name, (leaf, required) in element.attributes.items():
        if required and leaf.path not in values:
            raise ConfigurationError(f"event: {_short(node)} lacks its attribute {name!r}")


def _read_child(node: Any, element: Element, values: dict[str, Value]) -> None:
    leaf = element.leaf
    if leaf is None or leaf.kind == "group":
        if leaf is not None:
            values[leaf.path] = True
        _read_element(node, element, values)
    else:
        if len(node) or node.attrib:
            raise ConfigurationError(f"event: {_short(node)} must hold nothing but its value")
        values[leaf.path] = typed(leaf, node.text or "")


def typed(leaf: Leaf, text: str) -> Value:
    """The value that `text` stands for, in the type of its leaf."""
    value: Value | None = text
    if leaf.kind == "integer":
        found = _INTEGER.match(text)
        value = int(found[1]) if found else None
    elif leaf.kind == "decimal":
        found = _DECIMAL.match(text)
        value = float(found[1]) + 0.0 if found else None
    elif leaf.kind == "instant" and not _is_instant(text):
        value = None
    if value is None or (leaf.domain is not None and not leaf.domain.holds(value)):
        raise ConfigurationError(f"event: {leaf.path} = {text[:80]!r}: must be {describe(leaf)}")
    return value


def _is_instant(text: str) -> bool:
    if not _INSTANT.match(text):
        return False
    year, month, day = int(text[:4]), int(text[5:7]), int(text[8:10])
    return year > 0 and day <= monthrange(year, month)[1]


def describe(leaf: Leaf) -> str:
    """What a leaf may hold, for messages."""
    if isinstance(leaf.domain, Words):
        names = leaf.domain.values
        return f"one of {', '.join(names[:8])}{', ...' if len(names) > 8 else ''}"
    if isinstance(leaf.domain, Numbers):
        low, high = leaf.domain.ranges[0][0], leaf.domain.ranges[-1][1]
        what = "a whole number" if leaf.kind == "integer" else "a number"
        return what if abs(low) == abs(high) == NUMBER_MAX else f"{what} from {low} to {high}"
    return {"string": "text", "instant": "a date and time such as 2003-02-27T12:00:00Z"}.get(leaf.kind, "there or not")


# The library brings an HTTP client along, so it is imported when a document is written: few processes do.


def _quoted(text: str) -> str:
    from xml.sax.saxutils import quoteattr

    return quoteattr(text)


def _escaped(text: str) -> str:
    from xml.sax.saxutils import escape

    return escape(text, _ENTITIES)


def _written(element: Element, path: str, values: Mapping[str, Value], declaration: str) -> str:
    name = element.tag.rpartition("}")[2]
    attributes = "".join(
        f" {attribute}={_quoted(_text(values[leaf.path]))}"
        for attribute, (leaf, _) in element.attributes.items()
        if leaf.path in values
    )
    parts = [f"<{name}{attributes}{declaration}>"]
    for child in element.children.values():
        here = f"{path}{child.tag.rpartition('}')[2]}"
        if child.leaf is not None and child.leaf.kind != "group":
            if here in values:
                local = here.rpartition("/")[2]
                parts.append(f"<{local}>{_escaped(_text(values[here]))}</{local}>")
        elif child.required or here in values:
            parts.append(_written(child, f"{here}/", values, ""))
    parts.append(f"</{name}>")
    return "".join(parts)


def _text(value: Value) -> str:
    return number_text(value) if isinstance(value, float) else str(value)


def _short(node: Any) -> str:
    return repr(str(node.tag).rpartition("}")[2][:80])
