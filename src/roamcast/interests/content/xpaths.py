"""Content: the event is an XML document, the interest a set of expressions in a subset of XPath.

The expressions of an interest are in normal form (`terms.py`, `writing.py`): one per term, sorted. Its text form joins
the expressions with XPath's union operator, so it is an expression again: `/A[x=1] | /B`. The interest in nothing is
the empty text.

Compiled expressions are cached by their text, so an interest that arrives from the network a thousand times is parsed
once.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

import msgspec

from roamcast.errors import ConfigurationError, PeerError
from roamcast.events import Event
from roamcast.interests.content.documents import record_of
from roamcast.interests.content.schema import Leaf, event_types
from roamcast.interests.content.terms import UNITED_MAX, Constraint, Term, normal, terms_of
from roamcast.interests.content.values import Numbers, Words
from roamcast.interests.content.writing import term_text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from roamcast.interests import Interest

TEXT_SHARE: Final = 0.25
"""What `extra_share` assumes of a constraint on free text: one event in this many passes."""

_CACHED: Final = 1 << 14


class XPaths(msgspec.Struct, frozen=True, array_like=True, tag=3):
    """A set of documents; build it with `parse` or `of` unless the expressions are known to be in normal form."""

    expressions: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if len(self.expressions) > UNITED_MAX:
            raise PeerError(f"expressions: {len(self.expressions)}; allowed: at most {UNITED_MAX}")
        previous = ""
        for expression in self.expressions:
            term, mistake = _compiled(expression)
            if term is None:
                raise PeerError(f"expressions: {expression[:200]!r}: {mistake}")
            if not previous < expression:
                raise PeerError("expressions: are not sorted, each once")
            previous = expression

    @staticmethod
    def of(*terms: Term) -> XPaths:
        return _written(normal(terms))

    @staticmethod
    def parse(text: str) -> XPaths:
        return _written(terms_of(text)) if text.strip() else XPaths()

    def __str__(self) -> str:
        return " | ".join(self.expressions)

    @property
    def terms(self) -> list[Term]:
        return [_term(expression) for expression in self.expressions]

    @property
    def is_empty(self) -> bool:
        return not self.expressions

    def matches(self, event: Event) -> bool:
        return self.contains(event.content)

    def contains(self, document: object) -> bool:
        record = record_of(document)
        if record is None:
            return False
        kind, values = record
        for expression in self.expressions:
            term = _term(expression)
            if term.type == kind and term.matches(values):
                return True
        return False

    def covers(self, other: Interest) -> bool:
        """Whether each term of `other` is covered by one of ours. It never says yes wrongly, but misses terms that only
        several of ours cover together."""
        if not isinstance(other, XPaths):
            return False
        return all(any(_covers(ours, theirs) for ours in self.expressions) for theirs in other.expressions)

    def overlaps(self, other: Interest) -> bool:
        if not isinstance(other, XPaths):
            return False
        return any(_term(ours).overlaps(_term(theirs)) for ours in self.expressions for theirs in other.expressions)

    def union(self, other: Interest) -> XPaths:
        if not isinstance(other, XPaths):
            raise PeerError(f"interest: {other!r} is not of the language 'content'")
        return _written(normal([*self.terms, *other.terms]))

    def extra_share(self, other: Interest | None, pool: float) -> float:
        """An estimate of the share of all events that this interest attracts and `other` does not, if every leaf takes
        all its values equally often. Terms that merely overlap count in full, so it errs on the high side."""
        theirs: tuple[str, ...] = other.expressions if isinstance(other, XPaths) else ()
        extra = 0.0
        for ours in self.expressions:
            if not any(_covers(their, ours) for their in theirs):
                inside = sum(_share(their, pool) for their in theirs if _covers(ours, their))
                extra += max(0.0, _share(ours, pool) - inside)
        return min(1.0, extra)


def _written(terms: Iterable[Term]) -> XPaths:
    return XPaths(tuple(sorted(map(term_text, terms))))


@lru_cache(_CACHED)
def _compiled(expression: str) -> tuple[Term | None, str]:
    """The term of an expression in normal form, or why it has none."""
    try:
        terms = terms_of(expression)
    except ConfigurationError as error:
        return None, str(error)
    if len(terms) != 1 or term_text(terms[0]) != expression:
        return None, "is not in normal form"
    return terms[0], ""


def _term(expression: str) -> Term:
    term = _compiled(expression)[0]
    assert term is not None  # an interest never holds an expression that does not compile
    return term


@lru_cache(_CACHED)
def _covers(ours: str, theirs: str) -> bool:
    return _term(ours).covers(_term(theirs))


@lru_cache(_CACHED)
def _share(expression: str, pool: float) -> float:
    term = _term(expression)
    share = 1 / len(event_types())
    leaves = event_types()[term.type].leaves
    for path, constraint in term.constraints:
        share *= _constraint_share(leaves[path], constraint)
    return max(share, 1 / pool)


def _constraint_share(leaf: Leaf, constraint: Constraint) -> float:
    values, domain = constraint.values, leaf.domain
    if values is None or values.is_empty:
        return 0.5  # a matter of presence
    if isinstance(values, Numbers) and isinstance(domain, Numbers):
        return _measure(values) / _measure(domain)
    if isinstance(values, Words) and isinstance(domain, Words):
        return len(values.values) / len(domain.values)
    return TEXT_SHARE


def _measure(numbers: Numbers) -> float:
    return sum(high - low + numbers.integral for low, high in numbers.ranges) or 1.0
