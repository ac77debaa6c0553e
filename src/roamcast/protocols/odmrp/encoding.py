"""From interests to summary entries and from events to digests, for every language.

| language | type | leaves |
|---|---|---|
| content | name of the root element | those of the event type, in the schema's order |
| topics | `topics` | 0: number of levels (AC); 2i+1 and 2i+2: level i from the front and from the back (EC) |
| intervals | `intervals` | 0: the number (AC) |

Numbers are put into buckets, each of which is one token: one per value where the domain is small, else equally wide
ones. Putting a number into its bucket keeps the order, so a range is the buckets from its first to its last number.
What lies outside the domain falls into the first or the last bucket.

Not everything can be summarised: of a string constraint only whole strings, prefixes and suffixes; nothing of instants;
nothing of a constraint that asks for mere presence, except of groups. What is left out is left unconstrained, so a
summary errs only on the wide side. Prefixes and suffixes are cut to `affix_characters` for the same reason.

`entry_of_pairs` makes an entry straight from attributes and values, for devices that can do no XML and no XPath.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Final, NamedTuple

from roamcast.errors import ConfigurationError
from roamcast.events import Content
from roamcast.interests import Interest, Intervals, Topics, XPaths
from roamcast.interests.content import Constraint, Leaf, Term, event_types, record_of
from roamcast.interests.content.documents import Value, describe
from roamcast.interests.content.values import Number, Numbers, Pattern, ValueSet, Words
from roamcast.protocols.odmrp.bloom import token
from roamcast.protocols.odmrp.packed import LEAF_MAX, Digest
from roamcast.protocols.odmrp.summaries import Demand, Family, SummaryEntry, Texts

_CACHED: Final = 1 << 12
_ABSENT: Final = "\x00absent"
_PRESENT: Final = "\x00present"

Wish = str | int | float | tuple[Number, Number] | list[str]
"""A value to ask for by attribute: a string (with `*` for what may stand there, if the leaf is free text), a number, a
range of numbers with both its ends, or a choice of strings."""


class Summarised(NamedTuple):
    """A subscription as an entry of a summary, and what it demands of a digest."""

    entry: SummaryEntry
    demand: Demand


class Encoder(NamedTuple):
    """How a network summarises; all its nodes must agree."""

    family: Family = Family()
    buckets: int = 24  # of a numeric leaf
    affix_characters: int = 8  # of prefixes and suffixes
    number_pool: float = 10_000  # intervals: numbers are expected in [0, number_pool)
    depth_max: int = 8  # topics: deeper ones count as this deep

    def summarised(self, interest: Interest) -> list[Summarised]:
        """One entry, with the demand behind it, for each term, pattern, or set of ranges."""
        if isinstance(interest, XPaths):
            return [self._of_term(term) for term in interest.terms]
        if isinstance(interest, Topics):
            return [self._of_pattern(pattern) for pattern in interest.patterns]
        return [self._of_ranges(interest)] if interest.ranges else []

    def entries(self, interest: Interest) -> list[SummaryEntry]:
        return [each.entry for each in self.summarised(interest)]

    def digest(self, content: Content) -> Digest | None:
        """The digest of an event's content; none if it is in no language."""
        if isinstance(content, (int, float)):
            pool = Numbers(((0, self.number_pool),), False)
            return Digest(token("EN", "intervals"), arithmetic=((0, self._arithmetic(0, content, pool)),))
        record = record_of(content)
        if record is not None:
            return self.digest_of_values(record.type, record.values)
        return None if content.lstrip().startswith("<") else self._digest_of_topic(content)

    # -- Content -------------------------------------------------------------------------------------------------

    def entry_of_pairs(self, type_name: str, wishes: Mapping[str, Wish]) -> SummaryEntry:
        """An entry straight from attributes and what is asked of them."""
        return self._of_term(term_of_pairs(type_name, wishes)).entry

    def digest_of_values(self, type_name: str, values: Mapping[str, Value]) -> Digest:
        """The digest of a record; `values` are by path."""
        enumerated: list[tuple[int, int]] = []
        arithmetic: list[tuple[int, int]] = []
        texts: list[tuple[int, int, tuple[int, ...], tuple[int, ...]]] = []
        for number, leaf in enumerate(event_types()[type_name].leaves.values()):
            value = values.get(leaf.path)
            if leaf.kind in ("integer", "decimal"):
                assert isinstance(leaf.domain, Numbers)
                assert value is None or not isinstance(value, str)
                arithmetic.append((number, self._arithmetic(number, value, leaf.domain)))
            elif leaf.kind in ("enumeration", "group"):
                text = _PRESENT if value is True else _ABSENT if value is None else str(value)
                enumerated.append((number, token(f"EC{number}", text)))
            elif leaf.kind == "string":
                texts.append((number, *self._affixes(number, None if value is None else str(value))))
        return Digest(token("EN", type_name), tuple(enumerated), tuple(arithmetic), tuple(texts))

    def _of_term(self, term: Term) -> Summarised:
        kind = event_types()[term.type]
        numbers = {path: number for number, path in enumerate(kind.leaves)}
        leaves = enumerated = arithmetic = 0
        texts: list[Texts] = []
        demand: list[tuple[tuple[int, ...], ...]] = []
        for path, constraint in term.constraints:
            number, leaf = numbers[path], kind.leaves[path]
            alternatives: list[tuple[int, ...]] = []
            if leaf.kind in ("integer", "decimal"):
                allowed = self._number_tokens(number, leaf, constraint)
                arithmetic |= self.family.filled(allowed)
                alternatives = [(each,) for each in allowed]
            elif leaf.kind in ("enumeration", "group"):
                allowed = _word_tokens(number, leaf, constraint)
                enumerated |= self.family.filled(allowed)
                alternatives = [(each,) for each in allowed]
            else:
                alternatives = self._text_alternatives(number, leaf, constraint)
                if alternatives:
                    texts.append(self._texts(number, alternatives))
            if alternatives:
                leaves |= 1 << number
                demand.append(tuple(alternatives))
        entry = SummaryEntry(token("EN", term.type), leaves, enumerated, arithmetic, tuple(texts))
        return Summarised(entry, tuple(demand))

    def _number_tokens(self, number: int, leaf: Leaf, constraint: Constraint) -> list[int]:
        if not isinstance(constraint.values, Numbers) or not isinstance(leaf.domain, Numbers):
            return [self._arithmetic(number, None, Numbers((), True))] if _only_absent(constraint) else []
        allowed = [
            token(f"AC{number}", str(bucket))
            for low, high in constraint.values.ranges
            for bucket in range(self._bucket(low, leaf.domain), self._bucket(high, leaf.domain) + 1)
        ]
        return allowed + ([token(f"AC{number}", _ABSENT)] if constraint.absent else [])

    def _arithmetic(self, number: int, value: Number | None, domain: Numbers) -> int:
        return token(f"AC{number}", _ABSENT if value is None else str(self._bucket(value, domain)))

    def _bucket(self, value: Number, domain: Numbers) -> int:
        low, high = domain.ranges[0][0], domain.ranges[-1][1]
        if value != value:
            return 0  # not a number: it matches no interest, but must be somewhere
        value = min(max(value, low), high)
        size = high - low + domain.integral
        if domain.integral and size <= self.buckets:
            return int(value - low)
        return min(self.buckets - 1, int((value - low) * self.buckets / size))

    def _text_alternatives(self, number: int, leaf: Leaf, constraint: Constraint) -> list[tuple[int, ...]]:
        """Whole strings as single tokens, a pattern as the pair of its prefix and its suffix."""
        values = constraint.values
        if leaf.kind != "string" or values is None:
            return []
        found: list[tuple[int, ...]] = []
        if isinstance(values, Pattern):
            if not values.prefix and not values.suffix:
                return []
            left = token(f"SL{number}", values.prefix[: self.affix_characters])
            right = token(f"SR{number}", values.suffix[-self.affix_characters :])
            found.append((left, right))
        elif isinstance(values, Words):
            found += [(token(f"SX{number}", value),) for value in values.values]
        if constraint.absent:
            found.append((token(f"SX{number}", _ABSENT),))
        return found

    def _texts(self, number: int, alternatives: list[tuple[int, ...]]) -> Texts:
        filled = self.family.filled
        pairs = [each for each in alternatives if len(each) == 2]
        return Texts(
            number,
            filled([each[0] for each in pairs]),
            filled([each[1] for each in pairs]),
            filled([each[0] for each in alternatives if len(each) == 1]),
        )

    def _affixes(self, number: int, value: str | None) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
        if value is None:
            return token(f"SX{number}", _ABSENT), (), ()
        lengths = range(min(len(value), self.affix_characters) + 1)
        return (
            token(f"SX{number}", value),
            tuple(token(f"SL{number}", value[:length]) for length in lengths),
            tuple(token(f"SR{number}", value[len(value) - length :]) for length in lengths),
        )

    # -- Topics and intervals ------------------------------------------------------------------------------------

    def _of_pattern(self, pattern: str) -> Summarised:
        levels = pattern.split("/")
        open_ended = "**" in levels
        front = levels[: levels.index("**")] if open_ended else levels
        back = levels[: -levels[::-1].index("**") - 1 : -1] if open_ended else levels[::-1]
        least = min(self.depth_max, sum(level != "**" for level in levels))
        depths = [token("AC0", str(depth)) for depth in (range(least, self.depth_max + 1) if open_ended else [least])]
        leaves = 1 if len(depths) < self.depth_max else 0
        demand: list[tuple[tuple[int, ...], ...]] = [tuple([(each,) for each in depths])] if leaves else []
        enumerated = 0
        for offset, names in ((1, front), (2, back)):
            for level, name in enumerate(names[: (LEAF_MAX - offset) // 2 + 1]):
                if name != "*":
                    number = 2 * level + offset
                    leaves |= 1 << number
                    one = token(f"EC{number}", name)
                    enumerated |= self.family.mask(one)
                    demand.append(((one,),))
        return Summarised(
            SummaryEntry(token("EN", "topics"), leaves, enumerated, self.family.filled(depths)), tuple(demand)
        )

    def _digest_of_topic(self, topic: str) -> Digest:
        levels = topic.split("/")
        enumerated = [
            (2 * level + offset, token(f"EC{2 * level + offset}", name))
            for offset, names in ((1, levels), (2, levels[::-1]))
            for level, name in enumerate(names[: (LEAF_MAX - offset) // 2 + 1])
        ]
        depth = token("AC0", str(min(self.depth_max, len(levels))))
        return Digest(token("EN", "topics"), tuple(enumerated), ((0, depth),))

    def _of_ranges(self, interest: Intervals) -> Summarised:
        pool = Numbers(((0, self.number_pool),), False)
        buckets = dict.fromkeys(
            bucket
            for low, high in interest.ranges
            for bucket in range(self._bucket(low, pool), self._bucket(math.nextafter(high, -math.inf), pool) + 1)
        )
        tokens = [token("AC0", str(bucket)) for bucket in buckets]
        entry = SummaryEntry(token("EN", "intervals"), 1, 0, self.family.filled(tokens))
        return Summarised(entry, (tuple([(each,) for each in tokens]),))


def term_of_pairs(type_name: str, wishes: Mapping[str, Wish]) -> Term:
    """What is asked of attributes, as a term of the content language; it takes neither XML nor XPath."""
    kind = event_types().get(type_name)
    if kind is None:
        raise ConfigurationError(f"event type: {type_name!r} is unknown; allowed: {', '.join(event_types())}")
    for path in wishes:
        if path not in kind.leaves:
            raise ConfigurationError(f"{type_name}: has no {path!r}; allowed: {', '.join(kind.leaves)}")
    constraints: list[tuple[str, Constraint]] = []
    for path, leaf in kind.leaves.items():  # a term has its constraints in this order
        if path in wishes:
            values = _wished(leaf, wishes[path])
            if values.is_empty:
                raise ConfigurationError(f"{path} = {wishes[path]!r}: must be {describe(leaf)}")
            constraints.append((path, Constraint(values, False)))
    return Term(type_name, tuple(constraints))


def _word_tokens(number: int, leaf: Leaf, constraint: Constraint) -> list[int]:
    names = list(constraint.values.values) if isinstance(constraint.values, Words) else []
    if constraint.values is None and leaf.kind == "group":
        names = [_PRESENT]
    elif constraint.values is None:
        return []
    return [token(f"EC{number}", name) for name in [*names, *([_ABSENT] if constraint.absent else [])]]


def _only_absent(constraint: Constraint) -> bool:
    return constraint.absent and constraint.values is not None and constraint.values.is_empty


def _wished(leaf: Leaf, wish: Wish) -> ValueSet:
    if isinstance(leaf.domain, Numbers) and not isinstance(wish, (str, list)):
        low, high = wish if isinstance(wish, tuple) else (wish, wish)
        return Numbers.of([(low, high)], leaf.domain.integral).meet(leaf.domain)
    names = [wish] if isinstance(wish, str) else wish
    if isinstance(names, list) and not isinstance(leaf.domain, Numbers) and leaf.kind != "group":
        if leaf.domain is None and isinstance(wish, str) and "*" in wish:
            left, _, right = wish.partition("*")
            return Pattern(prefix=left, suffix=right)
        chosen = Words.of(names)
        return chosen if leaf.domain is None else chosen.meet(leaf.domain)
    raise ConfigurationError(f"{leaf.path} = {wish!r}: must fit a leaf of the kind {leaf.kind!r}")


@lru_cache(_CACHED)
def cached_digest(encoder: Encoder, content: Content) -> Digest | None:
    """The digest of an event's content. In the simulator many nodes ask for the same one."""
    return encoder.digest(content)
