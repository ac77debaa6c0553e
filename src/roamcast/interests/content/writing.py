"""A term as text, in the normal form of the language."""

from roamcast.interests.content.schema import Leaf, event_types
from roamcast.interests.content.terms import Constraint, Term
from roamcast.interests.content.values import Number, Numbers, Pattern, Words, number_text, predecessor, successor


def term_text(term: Term) -> str:
    """Reads back as the same term."""
    kind = event_types()[term.type]
    parts = [constraint_text(kind.leaves[path], constraint) for path, constraint in term.constraints]
    return f"/{term.type}[{' and '.join(parts)}]" if parts else f"/{term.type}"


def constraint_text(leaf: Leaf, constraint: Constraint) -> str:
    """What is asked of one leaf."""
    path, values = leaf.path, constraint.values
    alternatives = [f"not({path})"] if constraint.absent and leaf.optional else []
    if values is None:
        return path  # a constraint that allows any value demands that there is one
    if isinstance(values, Numbers):
        assert isinstance(leaf.domain, Numbers)
        alternatives += _ranges(path, values, leaf.domain)
    elif isinstance(values, Words):
        domain = leaf.domain.values if isinstance(leaf.domain, Words) else ()
        if domain and 2 * len(values.values) > len(domain):
            others = [value for value in domain if value not in values.values]
            alternatives.append(" and ".join(f"{path}!={_quoted(value)}" for value in others))
        else:
            alternatives += [f"{path}={_quoted(value)}" for value in values.values]
    else:
        alternatives.append(_pattern(path, values))
    return alternatives[0] if len(alternatives) == 1 else f"({' or '.join(alternatives)})"


def _ranges(path: str, values: Numbers, domain: Numbers) -> list[str]:
    least, most = domain.ranges[0][0], domain.ranges[-1][1]
    texts = []
    for low, high in values.ranges:
        if low == high:
            texts.append(f"{path}={number_text(low)}")
            continue
        ends = []
        if low > least:
            ends.append(f"{path}{_end(low, predecessor(low, values.integral), '>', values.integral)}")
        if high < most:
            ends.append(f"{path}{_end(high, successor(high, values.integral), '<', values.integral)}")
        texts.append(" and ".join(ends) or path)
    return texts


def _end(bound: Number, beyond: Number, sign: str, integral: bool) -> str:
    """With the bound itself, or, for doubles, with its neighbour outside if that is the shorter number."""
    closed, opened = number_text(bound), number_text(beyond)
    return f"{sign}{opened}" if not integral and len(opened) < len(closed) else f"{sign}={closed}"


def _pattern(path: str, pattern: Pattern) -> str:
    parts = [f"starts-with({path},{_quoted(pattern.prefix)})"] if pattern.prefix else []
    parts += [f"ends-with({path},{_quoted(pattern.suffix)})"] if pattern.suffix else []
    parts += [f"contains({path},{_quoted(text)})" for text in pattern.contained]
    parts += [f"{path}!={_quoted(text)}" for text in pattern.not_values]
    for function, texts in (
        ("starts-with", pattern.not_prefixes),
        ("ends-with", pattern.not_suffixes),
        ("contains", pattern.not_contained),
    ):
        # A negated test also holds for a missing value; where that is not wanted, another part must demand presence.
        parts += [f"not({function}({path},{_quoted(text)}))" for text in texts]
    if not pattern.prefix and not pattern.suffix and not pattern.contained and not pattern.not_values:
        parts.insert(0, path)
    return " and ".join(parts)


def _quoted(text: str) -> str:
    return f'"{text}"' if "'" in text else f"'{text}'"
