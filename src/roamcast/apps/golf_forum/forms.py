"""What users enter: a form per event type, which becomes a subscription or a document.

The forms follow from the schemas. A field is a leaf of the event type: some words to choose from, a range of whole
numbers, or text. A filled-in subscription is written as XPath (`expression`). For devices that know no XPath it becomes
wishes, from which Bloom filters are made directly (`wishes`; section 3 of the paper).

The paper's schema does not say who publishes. Here the event's id does: it begins with `O` and the hole if it is
official (`O15-3`), with `G` and the node if it is from the gallery (`G7-1`). So a subscription can ask for official
announcements only, by the prefix of the id.
"""

from datetime import UTC, datetime
from importlib.resources import files
from typing import Any, Literal

import msgspec

from roamcast.errors import ConfigurationError
from roamcast.interests.content import Leaf, Match, event_types, read, register, write
from roamcast.interests.content.values import Numbers, Words

SCORE = "PGMFORUM"
TAXI = "TAXISHARE"
TEXT_CHARACTERS_MAX = 200

LABELS = {
    "player": "Player",
    "hole": "Hole",
    "holescore": "Strokes on the hole",
    "totalscore": "Total score",
    "currentrank": "Rank",
    "remark": "Remark",
    "destination": "Going to",
    "seats": "Free seats",
    "minutes": "Leaves in, minutes",
}
TITLES = {SCORE: "Scores", TAXI: "Taxi sharing"}
_NOT_ASKED = ("@id", "@timestamp")

Wish = str | list[str] | tuple[int, int]
"""What is asked of one field: text with a `*`, some words, or a range of numbers with both ends."""


def register_types() -> None:
    """Makes taxi sharing known beside the paper's events. Every node of the forum does so before it reads anything."""
    register(files("roamcast.apps.golf_forum").joinpath("taxi.xsd").read_text("utf-8"))


class Form(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A filled-in subscription."""

    type: str
    fields: dict[
        str, Any
    ] = {}  # path -> list of words, or [from, to], or a piece of text; empty ones count as left out
    combine: Literal["all", "any"] = "all"  # whether an event must meet all fields, or one of them
    official: bool = False  # only announcements of officials
    xpath: str = ""  # written by hand instead: everything else is ignored


def form_of(entered: Any) -> Form:
    try:
        return msgspec.convert(entered, Form)
    except msgspec.ValidationError as error:
        raise ConfigurationError(f"subscription: {error}") from None


def described_types() -> list[dict[str, Any]]:
    """The forms, as pages draw them."""
    return [
        {
            "type": name,
            "title": TITLES[name],
            "fields": [_described(leaf) for leaf in event_types()[name].leaves.values() if leaf.path not in _NOT_ASKED],
        }
        for name in TITLES
    ]


def _described(leaf: Leaf) -> dict[str, Any]:
    field: dict[str, Any] = {"path": leaf.path, "label": LABELS[leaf.path], "optional": leaf.optional}
    if isinstance(leaf.domain, Words):
        return field | {"kind": "words", "words": list(leaf.domain.values)}
    if isinstance(leaf.domain, Numbers):
        low, high = leaf.domain.ranges[0]
        return field | {"kind": "numbers", "low": int(low), "high": int(high)}
    return field | {"kind": "text"}


def wishes(form: Form) -> list[dict[str, Wish]]:
    """What the form asks for, without XPath. An event is wanted if it meets all wishes of one of the dictionaries."""
    if form.xpath:
        raise ConfigurationError("xpath: this device sends Bloom filters; use the form")
    asked: dict[str, Wish] = {}
    for path, leaf in _type(form.type).items():
        wish = _wish(leaf, form.fields.get(path))
        if wish is not None:
            asked[path] = wish
    unknown = [path for path in form.fields if path not in _type(form.type)]
    if unknown:
        raise ConfigurationError(f"{unknown[0]}: is no field of {form.type}")
    official: dict[str, Wish] = {"@id": "O*"} if form.official else {}
    if form.combine == "any" and asked:
        return [official | {path: wish} for path, wish in asked.items()]
    return [official | asked]


def expression(form: Form) -> str:
    """The subscription in XPath."""
    if form.xpath:
        return form.xpath
    asked = wishes(form)
    official = ["starts-with(@id, 'O')"] if form.official else []
    parts = [[_condition(path, wish) for path, wish in each.items() if path != "@id"] for each in asked]
    if len(parts) > 1:
        alternatives = " or ".join(" and ".join(part) for part in parts)
        conditions = [*official, f"({alternatives})" if official else alternatives]
    else:
        conditions = official + parts[0]
    return f"/{form.type}[{' and '.join(conditions)}]" if conditions else f"/{form.type}"


def document(type_name: str, entered: dict[str, Any], event_name: str) -> str:
    """The event that a user publishes, as XML."""
    values: dict[str, Any] = {path: value for path, value in entered.items() if value not in (None, "")}
    for path in values:
        if path not in _type(type_name):
            raise ConfigurationError(f"{path}: is no field of {type_name}")
        if not isinstance(values[path], int | str) or len(str(values[path])) > TEXT_CHARACTERS_MAX:
            raise ConfigurationError(f"{path}: must be a number or text of up to {TEXT_CHARACTERS_MAX} characters")
    now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return write(type_name, {"@id": event_name, "@timestamp": now} | values)


def published_values(text: str) -> dict[str, Any]:
    """What a page shows of an event."""
    record = read(text)
    return {"type": record.type, "official": str(record.values["@id"]).startswith("O"), "values": record.values}


def reasons(match: Match) -> list[dict[str, Any]]:
    """Why an event matches, for a page: each condition, and the value that met it."""
    return [
        {"label": LABELS.get(each.path, "Source"), "condition": each.condition, "value": each.value}
        for each in match.reasons
    ]


def _type(name: str) -> dict[str, Leaf]:
    if name not in TITLES:
        raise ConfigurationError(f"type: {name!r} is unknown; allowed: {', '.join(TITLES)}")
    return {path: leaf for path, leaf in event_types()[name].leaves.items() if path not in _NOT_ASKED}


def _wish(leaf: Leaf, entered: Any) -> Wish | None:
    if entered in (None, "", []):
        return None
    if isinstance(leaf.domain, Words):
        if isinstance(entered, list) and all(each in leaf.domain.values for each in entered):
            return sorted(set(entered))
        raise ConfigurationError(f"{leaf.path}: must be some of {', '.join(leaf.domain.values)}")
    if isinstance(leaf.domain, Numbers):
        low, high = (int(end) for end in leaf.domain.ranges[0])
        match entered:
            case [int() | None as first, int() | None as last]:
                first, last = low if first is None else first, high if last is None else last
                if low <= first <= last <= high:
                    return None if (first, last) == (low, high) else (first, last)
        raise ConfigurationError(f"{leaf.path}: must be from and to, between {low} and {high}")
    if isinstance(entered, str) and len(entered) <= TEXT_CHARACTERS_MAX and not {"'", '"'} <= set(entered):
        return f"{entered.rstrip('*')}*"
    raise ConfigurationError(
        f"{leaf.path}: must be text of up to {TEXT_CHARACTERS_MAX} characters, with one kind of quotes"
    )


def _condition(path: str, wish: Wish) -> str:
    if isinstance(wish, list):
        names = [f"{path} = '{name}'" for name in wish]
        return names[0] if len(names) == 1 else f"({' or '.join(names)})"
    if isinstance(wish, tuple):
        first, last = wish
        if first == last:
            return f"{path} = {first}"
        low, high = (int(end) for end in _bounds(path))
        ends = [f"{path} >= {first}"] if first > low else []
        ends += [f"{path} <= {last}"] if last < high else []
        return " and ".join(ends)
    quote = '"' if "'" in wish else "'"
    return f"starts-with({path}, {quote}{wish.removesuffix('*')}{quote})"


def _bounds(path: str) -> tuple[float, float]:
    for name in TITLES:
        leaf = event_types()[name].leaves.get(path)
        if leaf is not None and isinstance(leaf.domain, Numbers):
            return leaf.domain.ranges[0]
    raise ConfigurationError(f"{path}: holds no numbers")
