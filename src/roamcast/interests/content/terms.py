"""Expressions in normal form: a subscription as terms, each a box of allowed values.

A term names an event type and, for some of its leaves, a *constraint*: which values they may hold and whether they may
be missing. It matches a record of its type that satisfies all its constraints. A subscription is a list of terms and
matches what one of them matches. A leaf holds at most one value, so every expression of the subset reduces to such a
list: negations move inward until they apply to a single comparison, and there they turn a set of values into its
complement.

Two terms that differ in one leaf only are one term with both sets of values, which undoes most of the growth from
expanding products, and puts `hole = 1 or hole = 2` back into one constraint.

A leaf inside an optional group can be present only if the group is, and terms account for that: one that demands the
leaf but excludes the group is empty. Otherwise leaves are treated as independent. So `covers` and `overlaps` of terms
are exact, except where a leaf is required whenever its group is present. There `covers` may wrongly say no and
`overlaps` may wrongly say yes, never the reverse.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from roamcast.errors import ConfigurationError
from roamcast.interests.content.documents import Value, describe
from roamcast.interests.content.schema import Element, EventSchema, Leaf, event_types
from roamcast.interests.content.syntax import AllOf, AnyOf, Compare, Condition, Exists, Location, Not, PathStep, parse
from roamcast.interests.content.values import (
    Numbers,
    Pattern,
    ValueSet,
    Words,
    predecessor,
    successor,
)

TERMS_MAX: Final = 64
UNITED_MAX: Final = 256  # terms of an interest; a union of more asks for everything of their types
CONDITIONS_MAX: Final = 32  # on one text, since each of them is checked for every event

NOTHING: Final = Words(())


class Constraint(NamedTuple):
    values: ValueSet | None  # None: any
    absent: bool  # the leaf may be missing

    def allows(self, value: Value | None) -> bool:
        if value is None:
            return self.absent
        return self.values is None or self.values.holds(value)

    def meet(self, other: Constraint) -> Constraint:
        absent = self.absent and other.absent
        if self.values is None or other.values is None:
            return Constraint(other.values if self.values is None else self.values, absent)
        if self.values.is_empty or other.values.is_empty:
            return Constraint(NOTHING, absent)
        values = self.values.meet(other.values)
        return Constraint(NOTHING if values.is_empty else values, absent)

    def join(self, other: Constraint) -> Constraint | None:
        """The union of the two, if it is a constraint."""
        absent = self.absent or other.absent
        ours, theirs = self.values, other.values
        if ours is None or theirs is None:
            return Constraint(None, absent)
        if ours.is_empty or theirs.is_empty:
            return Constraint(theirs if ours.is_empty else ours, absent)
        if isinstance(ours, Numbers) and isinstance(theirs, Numbers):
            return Constraint(ours.join(theirs), absent)
        if isinstance(ours, Words) and isinstance(theirs, Words):
            return Constraint(ours.join(theirs), absent)
        return None

    @property
    def is_impossible(self) -> bool:
        return not self.absent and self.values is not None and self.values.is_empty

    def covers(self, other: Constraint) -> bool:
        if other.absent and not self.absent:
            return False
        if self.values is None or (other.values is not None and other.values.is_empty):
            return True
        return other.values is not None and self.values.covers(other.values)


ABSENT: Final = Constraint(NOTHING, True)
PRESENT: Final = Constraint(None, False)

Constraints = dict[str, Constraint]


class Term(NamedTuple):
    type: str
    constraints: tuple[tuple[str, Constraint], ...]  # in the order of the type's leaves; others are unconstrained

    def matches(self, values: dict[str, Value]) -> bool:
        """Whether a record of this type with these values satisfies all constraints."""
        for path, constraint in self.constraints:  # noqa: SIM110 - a third faster than all() with a generator
            if not constraint.allows(values.get(path)):
                return False
        return True

    def covers(self, other: Term) -> bool:
        if self.type != other.type:
            return False
        theirs = dict(other.constraints)
        leaves = event_types()[self.type].leaves
        return all(ours.covers(_implied(leaves[path], theirs)) for path, ours in self.constraints)

    def overlaps(self, other: Term) -> bool:
        return self.type == other.type and _product([dict(self.constraints)], [dict(other.constraints)]) != []


def free(leaf: Leaf) -> Constraint:
    """What the schema allows in any case."""
    return Constraint(leaf.domain, leaf.optional)


def _implied(leaf: Leaf, constraints: Constraints) -> Constraint:
    """What a box says about a leaf, directly or through the groups around or the leaves inside."""
    if any(group in constraints and constraints[group] == ABSENT for group in leaf.groups):
        return ABSENT
    if leaf.kind == "group" and _is_demanded(leaf.path, constraints):
        return PRESENT
    return constraints.get(leaf.path) or free(leaf)


def _is_demanded(group: str, constraints: Constraints) -> bool:
    """Whether something inside the group must be there."""
    return any(not each.absent and path.startswith(f"{group}/") for path, each in constraints.items())


def terms_of(text: str) -> list[Term]:
    """The terms of an expression, none covered by another; `ConfigurationError` if it is outside the language."""
    found: list[Term] = []
    for location in parse(text):
        found += _located(location)
        _limit(len(found))
    return normal(found)


def normal(terms: Iterable[Term]) -> list[Term]:
    """The same set of records, with boxes merged and without those that another one covers."""
    by_type: dict[str, list[Constraints]] = {}
    for term in terms:
        by_type.setdefault(term.type, []).append(dict(term.constraints))
    kept: list[Term] = []
    several = sum(map(len, by_type.values())) > UNITED_MAX
    for name, boxes in by_type.items():
        kind = event_types()[name]
        if several:  # comparing all with all would take too long
            kept.append(_term(kind, {}))
            continue
        kept += _uncovered([_term(kind, box) for box in _merged(boxes, kind)])
    return kept


def _uncovered(terms: list[Term]) -> list[Term]:
    kept: list[Term] = []
    for term in terms:
        if not any(other.covers(term) for other in kept):
            kept = [other for other in kept if not term.covers(other)]
            kept.append(term)
    return kept


class _Context(NamedTuple):
    """Where in an event type a path begins."""

    kind: EventSchema
    element: Element | None  # None at an attribute
    leaf: Leaf | None

    def child(self, name: str) -> _Context | None:
        if self.element is None:
            return None
        if name.startswith("@"):
            attribute = self.element.attributes.get(name[1:])
            return None if attribute is None else _Context(self.kind, None, attribute[0])
        for tag, element in self.element.children.items():
            if tag.rpartition("}")[2] == name:
                return _Context(self.kind, element, element.leaf)
        return None


def _located(location: Location) -> list[Term]:
    """A location that begins with `//` or `*` means each type in which its names make sense."""
    first, *others = location.steps
    found: list[Term] = []
    refusals: list[ConfigurationError] = []
    contexts = [place for kind in event_types().values() for place in _places(kind, first.name, location.anywhere)]
    for context in contexts:
        try:
            conditions = [Exists(()), *first.predicates]
            here = _terms(AllOf((*conditions, Exists(tuple(others))) if others else tuple(conditions)), context, True)
        except ConfigurationError as refusal:
            refusals.append(refusal)
            continue
        found += [_term(context.kind, constraints) for constraints in here]
    if len(refusals) == len(contexts):
        if refusals:
            raise refusals[0]
        known = ", ".join(event_types())
        raise ConfigurationError(f"interest: {first.name[:80]!r} is no event type; allowed: {known}")
    return found


def _places(kind: EventSchema, name: str, anywhere: bool) -> list[_Context]:
    waiting = [kind.root]
    found = []
    while waiting:
        element = waiting.pop(0)
        if name in ("*", element.tag.rpartition("}")[2]):
            found.append(_Context(kind, element, element.leaf))
        if anywhere:
            waiting += element.children.values()
    return found


def _term(kind: EventSchema, constraints: Constraints) -> Term:
    """The box without what the rest of it implies."""
    told: list[tuple[str, Constraint]] = []
    for path, leaf in kind.leaves.items():
        others = {other: constraint for other, constraint in constraints.items() if other != path}
        if path in constraints and _implied(leaf, others) != constraints[path]:
            told.append((path, constraints[path]))
    return Term(kind.name, tuple(told))


def _terms(condition: Condition, context: _Context, wanted: bool) -> list[Constraints]:
    """The boxes in which `condition` is true, or if not `wanted`, false."""
    match condition:
        case Not(part):
            return _terms(part, context, not wanted)
        case AllOf(parts) | AnyOf(parts):
            each = [_terms(part, context, wanted) for part in parts]
            return _all(each) if isinstance(condition, AllOf) == wanted else _any(each, context.kind)
        case Exists(path) | Compare(path):
            # A path with predicates of its own holds if each of them holds where it stands.
            each = []
            for step in path:
                context = _step(context, step)
                each += [_terms(predicate, context, wanted) for predicate in step.predicates]
            each.append(_atom(condition, context, wanted))
            return _all(each) if wanted else _any(each, context.kind)


def _step(context: _Context, step: PathStep) -> _Context:
    found = context.child(step.name)
    if found is None:
        names: list[str] = []
        if context.element is not None:
            names = [tag.rpartition("}")[2] for tag in context.element.children]
            names += [f"@{name}" for name in context.element.attributes]
        allowed = ", ".join(names) or "nothing below it"
        raise ConfigurationError(f"interest: {step.name[:80]!r} is not in {context.kind.name!r}; allowed: {allowed}")
    return found


def _atom(condition: Exists | Compare, context: _Context, wanted: bool) -> list[Constraints]:
    leaf = context.leaf
    if isinstance(condition, Exists):
        if leaf is None or not leaf.optional:
            return [{}] if wanted else []
        return [{leaf.path: PRESENT if wanted else ABSENT}]
    if leaf is None or leaf.kind == "group":
        raise ConfigurationError(f"interest: an element with others inside has no value to {condition.operator}")
    inside, outside = _sets(leaf, condition.operator, condition.literal)
    constraint = Constraint(inside, False) if wanted else Constraint(outside, leaf.optional)
    return [] if constraint.is_impossible else [_simplified(leaf, constraint)]


def _simplified(leaf: Leaf, constraint: Constraint) -> Constraints:
    """As an entry of a box; none if it demands nothing beyond the schema."""
    if constraint.values == leaf.domain:
        constraint = Constraint(None, constraint.absent)
    elif constraint.values is not None and constraint.values.is_empty:
        constraint = Constraint(NOTHING, constraint.absent)
    if constraint.values is None and constraint.absent == leaf.optional:
        return {}
    return {leaf.path: constraint}


def _sets(leaf: Leaf, operator: str, literal: str | float) -> tuple[ValueSet, ValueSet]:
    """The values for which a comparison is true, and those for which it is false."""
    domain = leaf.domain
    if isinstance(domain, Numbers):
        if isinstance(literal, str):
            raise ConfigurationError(f"interest: {leaf.path} {operator} {literal[:80]!r}: must be {describe(leaf)}")
        return _number_sets(domain, operator, literal)
    if not isinstance(literal, str) or operator in ("<", "<=", ">", ">="):
        shown = repr(literal[:80]) if isinstance(literal, str) else f"{literal:g}"
        allowed = f"{describe(leaf)}, compared by = or != or a function"
        raise ConfigurationError(f"interest: {leaf.path} {operator} {shown}: must be {allowed}")
    if isinstance(domain, Words):
        holds = [value for value in domain.values if _text_test(operator, value, literal)]
        return Words.of(holds), Words.of(set(domain.values) - set(holds))
    return _text_sets(operator, literal)


def _number_sets(domain: Numbers, operator: str, literal: float) -> tuple[ValueSet, ValueSet]:
    low, high = domain.ranges[0][0], domain.ranges[-1][1]
    whole = domain.integral
    number = int(literal) if whole and literal.is_integer() else literal
    fits = not whole or isinstance(number, int)
    below = predecessor(number, whole) if fits else int(literal // 1)  # the last number that is smaller
    above = successor(number, whole) if fits else int(literal // 1) + 1
    equal = [(number, number)] if fits else []
    parts = {
        "=": equal,
        "!=": [(low, below), (above, high)],
        "<": [(low, below)],
        "<=": [(low, below), *equal],
        ">": [(above, high)],
        ">=": [*equal, (above, high)],
    }
    opposite = {"=": "!=", "!=": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}[operator]
    inside, outside = (Numbers.of(parts[each], whole).meet(domain) for each in (operator, opposite))
    return inside, outside


def _text_test(operator: str, value: str, literal: str) -> bool:
    return {
        "=": value == literal,
        "!=": value != literal,
        "starts-with": value.startswith(literal),
        "ends-with": value.endswith(literal),
        "contains": literal in value,
    }[operator]


def _text_sets(operator: str, literal: str) -> tuple[ValueSet, ValueSet]:
    if "'" in literal and '"' in literal:
        raise ConfigurationError(f"interest: {literal[:80]!r} has both kinds of quotes; an expression holds only one")
    if operator in ("=", "!="):
        sets: tuple[ValueSet, ValueSet] = (Words((literal,)), Pattern(not_values=(literal,)))
        return sets if operator == "=" else sets[::-1]
    return {
        "starts-with": (Pattern(prefix=literal), Pattern(not_prefixes=(literal,))),
        "ends-with": (Pattern(suffix=literal), Pattern(not_suffixes=(literal,))),
        "contains": (Pattern(contained=(literal,)), Pattern(not_contained=(literal,))),
    }[operator]


# -- Boxes -------------------------------------------------------------------------------------------------------


def _all(each: Sequence[list[Constraints]]) -> list[Constraints]:
    result: list[Constraints] = [{}]
    for boxes in each:
        result = _product(result, boxes)
    return result


def _any(each: Sequence[list[Constraints]], kind: EventSchema) -> list[Constraints]:
    boxes = [box for boxes in each for box in boxes]
    _limit(len(boxes), factor=16)
    merged = _merged(boxes, kind)
    _limit(len(merged))
    return merged


def _product(ours: list[Constraints], theirs: list[Constraints]) -> list[Constraints]:
    _limit(len(ours) * len(theirs))
    result = []
    for one in ours:
        for other in theirs:
            box = dict(one)
            for path, constraint in other.items():
                box[path] = _bounded(path, box[path].meet(constraint)) if path in box else constraint
            lacks = [path for path, constraint in box.items() if constraint == ABSENT]
            if not any(box[path].is_impossible for path in other) and not any(_is_demanded(at, box) for at in lacks):
                result.append(box)
    return result


def _merged(boxes: list[Constraints], kind: EventSchema) -> list[Constraints]:
    """Boxes that differ in one leaf become one, until there are none."""
    while True:
        before = len(boxes)
        for leaf in kind.leaves.values():
            boxes = _merged_in(boxes, leaf)
        if len(boxes) == before:
            return boxes


def _merged_in(boxes: list[Constraints], leaf: Leaf) -> list[Constraints]:
    groups: dict[tuple[tuple[str, Constraint], ...], list[Constraint]] = {}
    for box in boxes:
        others = tuple(sorted((path, each) for path, each in box.items() if path != leaf.path))
        wanted = box.get(leaf.path) or free(leaf)
        kept = groups.setdefault(others, [])
        for at, known in enumerate(kept):
            joined = known.join(wanted)
            if joined is not None:
                kept[at] = joined
                break
        else:
            kept.append(wanted)
    return [
        dict(others) | _simplified(leaf, constraint)
        for others, constraints in groups.items()
        for constraint in constraints
    ]


def _bounded(path: str, constraint: Constraint) -> Constraint:
    if isinstance(constraint.values, Pattern) and constraint.values.conditions > CONDITIONS_MAX:
        raise ConfigurationError(f"interest: too many conditions on {path!r}; allowed: {CONDITIONS_MAX} on one text")
    return constraint


def _limit(count: int, factor: int = 1) -> None:
    if count > TERMS_MAX * factor:
        raise ConfigurationError(f"interest: too many alternatives; allowed: {TERMS_MAX} after multiplying out")
