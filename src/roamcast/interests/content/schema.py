"""Event types: what an XML Schema says about the events that a network exchanges.

The name of an event's root element is its type. An event is a record: every element and attribute occurs at most once,
so a path such as `course/name` or `@id` names one value or none. Therefore expressions can be simplified, compared and
summarised exactly. The part of XML Schema that describes such records:

- global elements, each an event type, with a complex type of their own, written in place or named;
- `sequence` or `all` of local elements with `minOccurs` 0 or 1 and `maxOccurs` 1, nested at will up to `DEPTH_MAX`;
- attributes, required or optional;
- the simple types below, and restrictions of them by `enumeration`, `minInclusive`, `maxInclusive`, `minExclusive` and
  `maxExclusive`.

All other constructs are refused by name when the schema is loaded.

All nodes of a network must know the same event types: a subscription cannot be understood without the types of what it
names. The golf forum's are always there; `register` adds others.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import Any, Final, Literal, NamedTuple

from roamcast.errors import ConfigurationError
from roamcast.interests.content.values import Number, Numbers, Range, Words, predecessor, successor

SCHEMA_CHARACTERS_MAX: Final = 65_536
DEPTH_MAX: Final = 8
LEAVES_MAX: Final = 64
TYPES_MAX: Final = 64
NUMBER_MAX: Final = 2**53  # as far as whole numbers and doubles agree, on both sides of 0

Kind = Literal["enumeration", "integer", "decimal", "string", "instant", "group"]

_XS: Final = "{http://www.w3.org/2001/XMLSchema}"
_FACETS: Final = ("enumeration", "minInclusive", "maxInclusive", "minExclusive", "maxExclusive")
_STRUCTURE: Final = ("element", "attribute", "simpleType", "complexType", "restriction", "sequence", "all")
_CONSTRUCTS: Final = frozenset(f"{_XS}{name}" for name in _FACETS + _STRUCTURE)
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.\-]*\Z")
_KINDS: Final[dict[str, Kind]] = {
    "string": "string",
    "dateTime": "instant",
    "decimal": "decimal",
    "double": "decimal",
    "float": "decimal",
    "boolean": "enumeration",
}
_INTEGERS: Final[dict[str, Range]] = {
    "integer": (-NUMBER_MAX, NUMBER_MAX),
    "nonNegativeInteger": (0, NUMBER_MAX),
    "positiveInteger": (1, NUMBER_MAX),
    "nonPositiveInteger": (-NUMBER_MAX, 0),
    "negativeInteger": (-NUMBER_MAX, -1),
    "long": (-NUMBER_MAX, NUMBER_MAX),
    "int": (-(2**31), 2**31 - 1),
    "short": (-(2**15), 2**15 - 1),
    "byte": (-128, 127),
    "unsignedInt": (0, 2**32 - 1),
    "unsignedShort": (0, 2**16 - 1),
    "unsignedByte": (0, 255),
}


class Leaf(NamedTuple):
    """A value of a record, or a group of values (an element with children), of which only the presence is known."""

    path: str  # from the root: names, `/`, and `@` before an attribute's name
    kind: Kind
    optional: bool  # it, or an element around it, may be missing
    domain: Numbers | Words | None  # allowed values; None: any string
    groups: tuple[str, ...]  # paths of the optional elements around it: where it is, they are


class Element(NamedTuple):
    """How an element is written."""

    tag: str  # as lxml spells it, with the namespace
    leaf: Leaf | None  # None: a group that is never missing, the root among them
    required: bool  # in its parent
    ordered: bool  # children come in the order given
    children: dict[str, Element]  # by tag
    attributes: dict[str, tuple[Leaf, bool]]  # by name, with whether it is required


class EventSchema(NamedTuple):
    name: str
    root: Element
    leaves: dict[str, Leaf]  # by path; the order is the same on every node


def event_type(name: str) -> EventSchema | None:
    return event_types().get(name)


@cache
def event_types() -> dict[str, EventSchema]:
    """All types this process knows, by name."""
    golf = files("roamcast.interests.content").joinpath("golf.xsd").read_text("utf-8")
    return {kind.name: kind for kind in load_schema(golf)}


def register(schema: str) -> list[EventSchema]:
    """Adds the event types of an XML Schema. A type that is already known must be identical. Call this before any event
    or expression is read: their types are cached."""
    added = load_schema(schema)
    for kind in added:
        known = event_types().get(kind.name)
        if known is not None and known != kind:
            raise ConfigurationError(f"schema: the event type {kind.name!r} is known already, with another content")
    for kind in added:
        event_types()[kind.name] = kind
    return added


def load_schema(text: str) -> list[EventSchema]:
    """The event types of an XML Schema, in its order."""
    if len(text) > SCHEMA_CHARACTERS_MAX:
        raise ConfigurationError(f"schema: {len(text)} characters; allowed: at most {SCHEMA_CHARACTERS_MAX}")
    root = parse_xml(text, "schema")
    if root.tag != f"{_XS}schema":
        raise ConfigurationError(f"schema: the root element is {root.tag!r}; allowed: schema of XML Schema")
    # Ours first: it refuses what would make the full validator fetch files or work for minutes.
    found = _Reader(root).event_types()
    if not found:
        raise ConfigurationError("schema: no global element; each event type is one")
    try:
        _etree().XMLSchema(root)
    except _etree().XMLSchemaParseError as error:
        raise ConfigurationError(f"schema: {str(error)[:200]}") from None
    return found


@cache
def _etree() -> Any:
    """lxml, imported when the first document or schema is read: few runs have any."""
    try:
        from lxml import etree  # type: ignore[import-untyped]  # it ships no types
    except ModuleNotFoundError:
        raise ConfigurationError("XML needs lxml: pip install 'roamcast[content]'") from None
    return etree


@cache
def _parser() -> Any:
    return _etree().XMLParser(
        encoding="utf-8", resolve_entities=False, load_dtd=False, no_network=True, remove_comments=True, remove_pis=True
    )


def parse_xml(text: str, what: str) -> Any:
    """The root of a document without a DOCTYPE, and so without entities and without anything to fetch."""
    if "<!DOCTYPE" in text:
        raise ConfigurationError(f"{what}: has a DOCTYPE; none is allowed")
    try:
        return _etree().fromstring(text.encode(), _parser())
    except (_etree().XMLSyntaxError, UnicodeEncodeError) as error:
        raise ConfigurationError(f"{what}: is not XML: {str(error)[:200]}") from None


class _Reader:
    """Reads one schema."""

    def __init__(self, schema: Any) -> None:
        self._schema = schema
        self._namespace = schema.get("targetNamespace", "")
        if self._namespace and schema.get("elementFormDefault") != "qualified":
            raise ConfigurationError("schema: elementFormDefault must be 'qualified' where there is a targetNamespace")
        self._types = {part.get("name"): part for part in schema if _local(part) in ("simpleType", "complexType")}
        for part in schema:
            self._require(_local(part) in ("element", "simpleType", "complexType", "annotation"), part)
        self._require_subset(schema)
        self._leaves: dict[str, Leaf] = {}
        self._elements = 0

    def _require_subset(self, schema: Any) -> None:
        """Visits every definition once: unused types would otherwise be seen by the full validator only."""
        waiting = list(schema)
        while waiting:
            part = waiting.pop()
            if _local(part) == "annotation":
                continue
            self._require(part.tag in _CONSTRUCTS, part)
            if part.get("maxOccurs", "1") != "1" or part.get("minOccurs", "1") not in ("0", "1"):
                name = str(part.get("name", _local(part)))[:80]
                raise ConfigurationError(f"schema: {name!r} may occur more than once; at most once is allowed")
            waiting += part

    def event_types(self) -> list[EventSchema]:
        found: list[EventSchema] = []
        for part in self._schema.iterchildren(f"{_XS}element"):
            if len(found) == TYPES_MAX:
                raise ConfigurationError(f"schema: more than {TYPES_MAX} event types")
            self._leaves = {}
            self._elements = 0
            name = self._name(part)
            tag = f"{{{self._namespace}}}{name}" if self._namespace else name
            body = self._type_of(part)
            if not (isinstance(body, _etree()._Element) and _local(body) == "complexType"):
                raise ConfigurationError(f"schema: element {name!r} has no complex type; an event type needs one")
            root = self._group(body=body, tag=tag, path="", groups=(), leaf=None, required=True)
            found.append(EventSchema(name, root, self._leaves))
        return found

    def _group(
        self, body: Any, tag: str, path: str, groups: tuple[str, ...], leaf: Leaf | None, required: bool
    ) -> Element:
        if path.count("/") >= DEPTH_MAX:
            raise ConfigurationError(f"schema: {path!r} is nested too deeply; allowed: {DEPTH_MAX} levels")
        self._only(body, ("name",))
        children: dict[str, Element] = {}
        attributes: dict[str, tuple[Leaf, bool]] = {}
        ordered = True
        for part in body:
            local = _local(part)
            self._require(local in ("sequence", "all", "attribute", "annotation"), part)
            if local == "attribute":
                self._only(part, ("name", "type", "use"))
                name = self._name(part)
                needed = part.get("use") == "required"
                attributes[name] = (self._leaf(part, f"{path}@{name}", not needed, groups), needed)
            elif local != "annotation":
                self._only(part, ())
                ordered = local == "sequence"
                for child in part:
                    element = self._child(child, path, groups)
                    children[element.tag] = element
        return Element(tag=tag, leaf=leaf, required=required, ordered=ordered, children=children, attributes=attributes)

    def _child(self, part: Any, path: str, groups: tuple[str, ...]) -> Element:
        self._require(_local(part) == "element", part)
        self._only(part, ("name", "type", "minOccurs", "maxOccurs"))
        self._elements += 1
        self._count()  # before going deeper: types that name each other can unfold to any size
        name = self._name(part)
        here = f"{path}{name}"
        needed = part.get("minOccurs", "1") == "1"
        tag = f"{{{self._namespace}}}{name}" if self._namespace else name
        body = self._type_of(part)
        if isinstance(body, _etree()._Element) and _local(body) == "complexType":
            group = None
            if not needed:
                group = Leaf(here, "group", True, None, groups)
                self._leaves[here] = group
                groups = (*groups, here)
            return self._group(body=body, tag=tag, path=f"{here}/", groups=groups, leaf=group, required=needed)
        return Element(
            tag=tag,
            leaf=self._leaf(part, here, not needed, groups),
            required=needed,
            ordered=True,
            children={},
            attributes={},
        )

    def _leaf(self, part: Any, path: str, optional: bool, groups: tuple[str, ...]) -> Leaf:
        kind, domain = self._simple(self._type_of(part), path)
        leaf = Leaf(path, kind, optional or bool(groups), domain, groups)
        self._leaves[path] = leaf
        self._count()
        return leaf

    def _count(self) -> None:
        if max(self._elements, len(self._leaves)) > LEAVES_MAX:
            raise ConfigurationError(f"schema: an event type has more than {LEAVES_MAX} elements and attributes")

    def _type_of(self, part: Any) -> Any:
        """The element that defines the type, or the name of a built-in one."""
        inside = [child for child in part if _local(child) in ("simpleType", "complexType")]
        if inside:
            return inside[0]
        name = part.get("type")
        if name is None:
            raise ConfigurationError(f"schema: {part.get('name')!r} has no type")
        return self._named_type(part, name)

    def _named_type(self, part: Any, name: str) -> Any:
        prefix, _, local = name.rpartition(":")
        if part.nsmap.get(prefix or None) == _XS[1:-1]:
            return local
        if local not in self._types:
            raise ConfigurationError(f"schema: line {part.sourceline}: the type {name!r} is not defined")
        return self._types[local]

    def _simple(self, body: Any, path: str, depth: int = 0) -> tuple[Kind, Numbers | Words | None]:
        if isinstance(body, str):
            if body in _INTEGERS:
                return "integer", Numbers((_INTEGERS[body],), True)
            if body not in _KINDS:
                allowed = ", ".join([*_KINDS, *_INTEGERS])
                raise ConfigurationError(f"schema: {path!r} has the type {body!r}; allowed: {allowed}")
            kind = _KINDS[body]
            if kind == "decimal":
                return kind, Numbers(((-float(NUMBER_MAX), float(NUMBER_MAX)),), False)
            return kind, Words(("false", "true")) if kind == "enumeration" else None
        restrictions = [child for child in body if _local(child) != "annotation"]
        self._require(len(restrictions) == 1 and _local(restrictions[0]) == "restriction", body)
        restriction = restrictions[0]
        base = restriction.get("base")
        if base is None or depth > DEPTH_MAX:
            raise ConfigurationError(f"schema: {path!r} restricts no named type, or a chain of them that is too long")
        kind, domain = self._simple(self._named_type(restriction, base), path, depth + 1)
        for facet in restriction:
            if _local(facet) not in ("enumeration", "annotation"):
                domain = self._bounded(facet, kind, domain, path)
        values = [facet.get("value") for facet in restriction.iterchildren(f"{_XS}enumeration")]
        return self._enumerated(values, kind, domain, path) if values else (kind, domain)

    def _bounded(self, facet: Any, kind: Kind, domain: Numbers | Words | None, path: str) -> Numbers:
        self._require(_local(facet) in _FACETS[1:] and isinstance(domain, Numbers), facet)
        assert isinstance(domain, Numbers)
        value = _number(facet.get("value"), kind, path)
        whole = kind == "integer"
        low, high = domain.ranges[0]
        match _local(facet):
            case "minInclusive":
                low = max(low, value)
            case "maxInclusive":
                high = min(high, value)
            case "minExclusive":
                low = max(low, successor(value, whole))
            case _:
                high = min(high, predecessor(value, whole))
        if low > high:
            raise ConfigurationError(f"schema: {path!r} can hold nothing: {low} to {high}")
        return Numbers(((low, high),), whole)

    def _enumerated(
        self, values: list[str], kind: Kind, domain: Numbers | Words | None, path: str
    ) -> tuple[Kind, Numbers | Words]:
        if isinstance(domain, Numbers):
            whole = kind == "integer"
            numbers = [_number(value, kind, path) for value in values]
            return kind, Numbers.of([(value, value) for value in numbers if domain.holds(value)], whole)
        if kind == "instant" or any("'" in value and '"' in value for value in values):
            raise ConfigurationError(f"schema: {path!r} enumerates what no expression can name")
        return "enumeration", Words.of(value for value in values if domain is None or domain.holds(value))

    def _name(self, part: Any) -> str:
        name = part.get("name")
        if name is None or not _NAME.match(name):
            raise ConfigurationError(f"schema: line {part.sourceline}: {name!r} is no name of ASCII letters and digits")
        return str(name)

    def _require(self, condition: bool, part: Any) -> None:
        if not condition:
            raise ConfigurationError(f"schema: line {part.sourceline}: {_local(part)!r} is outside the subset")

    def _only(self, part: Any, allowed: tuple[str, ...]) -> None:
        for attribute in part.attrib:
            if attribute not in allowed:
                raise ConfigurationError(
                    f"schema: line {part.sourceline}: {attribute!r} of {_local(part)!r} is outside the subset"
                )


def _number(text: str | None, kind: Kind, path: str) -> Number:
    given = text or ""
    try:
        if kind == "integer":
            whole = int(given)
            if abs(whole) <= NUMBER_MAX:
                return whole
        else:
            real = float(given)
            if abs(real) <= NUMBER_MAX:
                return real
    except ValueError:
        pass
    raise ConfigurationError(f"schema: {path!r} is bounded by {given[:80]!r}; allowed: numbers up to 2^53")


def _local(part: Any) -> str:
    return str(part.tag).rpartition("}")[2]
