"""Why a document matches: which condition of an interest was met by which value."""

from __future__ import annotations

from typing import NamedTuple

from roamcast.interests.content.documents import Value, record_of
from roamcast.interests.content.schema import event_types
from roamcast.interests.content.writing import constraint_text
from roamcast.interests.content.xpaths import XPaths


class Reason(NamedTuple):
    """One condition and what met it."""

    path: str  # of the value in the document
    condition: str  # in XPath
    value: Value | None  # None: the value is missing, and may be


class Match(NamedTuple):
    """One expression of an interest that a document matches."""

    expression: str
    reasons: tuple[Reason, ...]  # empty: every event of the type matches


def matches(interest: XPaths, document: object) -> list[Match]:
    """The expressions that match, each with its conditions in the order of the schema; none if none does."""
    record = record_of(document)
    if record is None:
        return []
    found: list[Match] = []
    for expression, term in zip(interest.expressions, interest.terms, strict=True):
        if term.type == record.type and term.matches(record.values):
            leaves = event_types()[term.type].leaves
            reasons = [
                Reason(path, constraint_text(leaves[path], constraint), record.values.get(path))
                for path, constraint in term.constraints
            ]
            found.append(Match(expression, tuple(reasons)))
    return found
