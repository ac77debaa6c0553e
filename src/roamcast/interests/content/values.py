"""Sets of values: what a constraint allows an element or attribute to hold.

`Numbers` is a union of closed ranges. An open range of doubles is a closed range too, because every double has a
successor: `x > 3.5` is `x >= 3.5000000000000004`. So the same few rules serve whole numbers and doubles, and all of
them are exact.

`Words` is a finite set of strings. `Pattern` is the set of strings that begin with one string, end with another,
contain some others, and do none of what is excluded. The intersection of two patterns is a pattern. A pattern is empty
only if its required parts force something that it excludes. (Otherwise put characters that occur nowhere else between
the required parts; the alphabet is large enough.) A is a subset of B exactly if A does not intersect the complement of
any atom of B, so covering depends only on what A requires and what it leaves possible.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from decimal import Decimal
from typing import NamedTuple

Number = int | float
Range = tuple[Number, Number]  # both ends belong to it


class Numbers(NamedTuple):
    """Ascending, disjoint ranges with at least one number between each other."""

    ranges: tuple[Range, ...]
    integral: bool

    @staticmethod
    def of(ranges: Iterable[Range], integral: bool) -> Numbers:
        merged: list[Range] = []
        for low, high in sorted(part for part in ranges if part[0] <= part[1]):
            if merged and low <= successor(merged[-1][1], integral):
                if high > merged[-1][1]:
                    merged[-1] = (merged[-1][0], high)
            else:
                merged.append((low, high))
        return Numbers(tuple(merged), integral)

    @property
    def is_empty(self) -> bool:
        return not self.ranges

    def holds(self, value: object) -> bool:
        if isinstance(value, (int, float)):
            for low, high in self.ranges:
                if low <= value <= high:
                    return True
        return False

    def meet(self, other: ValueSet) -> Numbers:
        assert isinstance(other, Numbers)
        parts = [(max(a, c), min(b, d)) for a, b in self.ranges for c, d in other.ranges]
        return Numbers.of(parts, self.integral)

    def join(self, other: Numbers) -> Numbers:
        return Numbers.of(self.ranges + other.ranges, self.integral)

    def covers(self, other: ValueSet) -> bool:
        return isinstance(other, Numbers) and self.meet(other).ranges == other.ranges


class Words(NamedTuple):
    """A finite set of strings, sorted."""

    values: tuple[str, ...]

    @staticmethod
    def of(values: Iterable[str]) -> Words:
        return Words(tuple(sorted(set(values))))

    @property
    def is_empty(self) -> bool:
        return not self.values

    def holds(self, value: object) -> bool:
        return value in self.values

    def meet(self, other: ValueSet) -> Words:
        return Words(tuple(value for value in self.values if other.holds(value)))

    def join(self, other: Words) -> Words:
        return Words.of(self.values + other.values)

    def covers(self, other: ValueSet) -> bool:
        return other.is_empty or (isinstance(other, Words) and all(value in self.values for value in other.values))


class Pattern(NamedTuple):
    """Strings by how they begin and end and what they hold; the tuples are sorted."""

    prefix: str = ""
    suffix: str = ""
    contained: tuple[str, ...] = ()
    not_values: tuple[str, ...] = ()
    not_prefixes: tuple[str, ...] = ()
    not_suffixes: tuple[str, ...] = ()
    not_contained: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        return (
            any(self.prefix.startswith(text) for text in self.not_prefixes)
            or any(self.suffix.endswith(text) for text in self.not_suffixes)
            or any(text in part for text in self.not_contained for part in (self.prefix, self.suffix, *self.contained))
        )

    @property
    def conditions(self) -> int:
        """How many texts a string is compared with."""
        return 2 + sum(map(len, self[2:]))

    def holds(self, value: object) -> bool:
        return (
            isinstance(value, str)
            and value.startswith(self.prefix)
            and value.endswith(self.suffix)
            and all(text in value for text in self.contained)
            and value not in self.not_values
            and not value.startswith(self.not_prefixes)
            and not value.endswith(self.not_suffixes)
            and not any(text in value for text in self.not_contained)
        )

    def meet(self, other: ValueSet) -> Words | Pattern:
        if isinstance(other, Words):
            return other.meet(self)
        assert isinstance(other, Pattern)
        prefix, suffix = max(self.prefix, other.prefix, key=len), max(self.suffix, other.suffix, key=len)
        if not (prefix.startswith(self.prefix) and prefix.startswith(other.prefix)):
            return Words(())
        if not (suffix.endswith(self.suffix) and suffix.endswith(other.suffix)):
            return Words(())
        return Pattern(
            prefix=prefix,
            suffix=suffix,
            contained=_both(self.contained, other.contained),
            not_values=_both(self.not_values, other.not_values),
            not_prefixes=_both(self.not_prefixes, other.not_prefixes),
            not_suffixes=_both(self.not_suffixes, other.not_suffixes),
            not_contained=_both(self.not_contained, other.not_contained),
        ).simplified()

    def simplified(self) -> Pattern:
        """Without the parts that the rest implies, so that equal patterns have equal form more often."""
        fixed = (self.prefix, self.suffix)
        contained = _maximal(text for text in self.contained if not any(text in part for part in fixed))
        rest = self._replace(not_values=())
        return Pattern(
            prefix=self.prefix,
            suffix=self.suffix,
            contained=contained,
            not_values=tuple(text for text in self.not_values if rest.holds(text)),
            not_prefixes=tuple(
                text
                for text in self.not_prefixes
                if (text.startswith(self.prefix) or self.prefix.startswith(text))
                and not any(text != other and text.startswith(other) for other in self.not_prefixes)
            ),
            not_suffixes=tuple(
                text
                for text in self.not_suffixes
                if (text.endswith(self.suffix) or self.suffix.endswith(text))
                and not any(text != other and text.endswith(other) for other in self.not_suffixes)
            ),
            not_contained=tuple(
                text
                for text in self.not_contained
                if not any(text != other and other in text for other in self.not_contained)
            ),
        )

    def covers(self, other: ValueSet) -> bool:
        if isinstance(other, Words):
            return all(self.holds(value) for value in other.values)
        if other.is_empty:
            return True
        return (
            isinstance(other, Pattern)
            and other.prefix.startswith(self.prefix)
            and other.suffix.endswith(self.suffix)
            and all(other._forces(text) for text in self.contained)
            and not any(other.holds(value) for value in self.not_values)
            and not any(other._can_begin(text) for text in self.not_prefixes)
            and not any(other._can_end(text) for text in self.not_suffixes)
            and not any(other._can_contain(text) for text in self.not_contained)
        )

    # What the strings of a non-empty pattern must or can contain: an intersection with the pattern of the text, done
    # directly.

    def _forces(self, text: str) -> bool:
        return text in self.prefix or text in self.suffix or any(text in part for part in self.contained)

    def _can_begin(self, text: str) -> bool:
        shorter, longer = sorted((text, self.prefix), key=len)
        return longer.startswith(shorter) and not longer.startswith(self.not_prefixes) and self._can_contain(longer)

    def _can_end(self, text: str) -> bool:
        shorter, longer = sorted((text, self.suffix), key=len)
        return longer.endswith(shorter) and not longer.endswith(self.not_suffixes) and self._can_contain(longer)

    def _can_contain(self, text: str) -> bool:
        return not any(excluded in text for excluded in self.not_contained)


ValueSet = Numbers | Words | Pattern


def successor(value: Number, integral: bool) -> Number:
    """The next number above."""
    return value + 1 if integral else math.nextafter(value, math.inf) + 0.0


def predecessor(value: Number, integral: bool) -> Number:
    """The next number below."""
    return value - 1 if integral else math.nextafter(value, -math.inf) + 0.0


def number_text(value: Number) -> str:
    """Without an exponent, as XPath and `xs:decimal` write numbers; reads back as the same number."""
    text = format(Decimal(repr(value)), "f")
    return text.removesuffix(".0")


def _both(ours: tuple[str, ...], theirs: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(sorted({*ours, *theirs}))


def _maximal(texts: Iterable[str]) -> tuple[str, ...]:
    """Without those that are part of another."""
    kept = list(texts)
    return tuple(text for text in kept if not any(text != other and text in other for other in kept))
