"""Subscription summaries and event digests: what brokers tell each other instead of subscriptions and events.

A *summary* is an array of entries. An entry stands for one or several subscriptions and has the five parts of the
paper, section 3.3 (no hierarchy, as there):

- EN: the hash of the event type's name.
- EL: which elements and attributes are constrained, a bit per leaf of the type. Exact, since a leaf that seemed to be
  constrained but is not would let events be missed.
- EC, AC: Bloom filters of the allowed values of enumerated and arithmetic leaves. A range of numbers is the set of
  buckets that it touches (`encoding.py`).
- SC: for each constrained string leaf three Bloom filters: SC_X of whole strings, SC_L and SC_R of what stands left and
  right of the `*` in a pattern. A pattern that begins with `*` has the empty string on its left, so every string has
  that prefix.

A *digest* is an event in the same terms: EN and for each leaf the tokens to look for. A string leaf brings a token for
each prefix and suffix up to a fixed length.

Matching goes both ways, always leaf by leaf, never on the union of all bits:

- *An event against a summary*, where the event is at hand: at its publisher and at relays. Of each leaf that EL marks
  and the digest lists, the token must be in the filter; of a string leaf either its whole string in SC_X, or a prefix
  in SC_L and a suffix in SC_R. A leaf that the digest does not list passes.
- *A subscription against a digest*, where only the digest is at hand: at a broker that gets a Join Request. The digest
  travels as a Bloom filter of all tokens of the event. A subscription is a *demand*: for each leaf that it constrains,
  the alternatives, each of which is one token or several that must all be there. Of each leaf one alternative must be
  in the filter. An empty filter asks for all events of the type: an advertisement.

Two entries of a type merge by ORing the filters and keeping the marks that both have. All of this only ever widens: a
digest never misses a subscription that matches its event. It may hit one that does not, so the last word is always the
subscription's own.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import ceil
from typing import NamedTuple

from roamcast.errors import PeerError
from roamcast.protocols.odmrp.bloom import mask
from roamcast.protocols.odmrp.packed import FILTER_BYTES_MAX, LEAF_MAX, Digest, JoinQuestion, PackedEntry

Demand = tuple[tuple[tuple[int, ...], ...], ...]
"""Leaves, alternatives, tokens: of each leaf all tokens of one alternative."""


class Texts(NamedTuple):
    """SC of one leaf."""

    leaf: int
    left: int
    right: int
    exact: int


class SummaryEntry(NamedTuple):
    """One entry of a summary; the filters are integers."""

    type: int  # EN
    leaves: int  # EL
    enumerated: int = 0  # EC
    arithmetic: int = 0  # AC
    texts: tuple[Texts, ...] = ()  # SC, by leaf

    def merged(self, other: SummaryEntry) -> SummaryEntry:
        leaves = self.leaves & other.leaves
        theirs = {each.leaf: each for each in other.texts}
        texts = [
            Texts(each.leaf, *(ours | their for ours, their in zip(each[1:], theirs[each.leaf][1:], strict=True)))
            for each in self.texts
            if leaves >> each.leaf & 1 and each.leaf in theirs
        ]
        return SummaryEntry(
            self.type,
            leaves,
            self.enumerated | other.enumerated,
            self.arithmetic | other.arithmetic,
            tuple(texts),
        )

    def covers(self, other: SummaryEntry) -> bool:
        """Whether every digest that matches `other` matches this entry: it constrains less and allows more."""
        return self.type == other.type and self.leaves & ~other.leaves == 0 and self.merged(other) == self


class Family(NamedTuple):
    """The filters of a network: all nodes use the same size and number of positions."""

    bits: int = 256
    hashes: int = 4

    def mask(self, token: int) -> int:
        return mask(token, self.bits, self.hashes)

    def filled(self, tokens: Iterable[int]) -> int:
        bits = 0
        for token in tokens:
            bits |= mask(token, self.bits, self.hashes)
        return bits

    def holds(self, filter_bits: int, token: int) -> bool:
        wanted = mask(token, self.bits, self.hashes)
        return filter_bits & wanted == wanted

    def matches(self, entry: SummaryEntry, digest: Digest) -> bool:
        if entry.type != digest.type:
            return False
        leaves = entry.leaves
        for part, bits in ((digest.enumerated, entry.enumerated), (digest.arithmetic, entry.arithmetic)):
            for leaf, token in part:
                if leaves >> leaf & 1 and not self.holds(bits, token):
                    return False
        if entry.texts:
            listed = {each[0]: each for each in digest.texts}
            for text in entry.texts:
                if text.leaf in listed and not self._matches_text(text, *listed[text.leaf][1:]):
                    return False
        return True

    def _matches_text(self, text: Texts, whole: int, prefixes: tuple[int, ...], suffixes: tuple[int, ...]) -> bool:
        return self.holds(text.exact, whole) or (
            any(self.holds(text.left, prefix) for prefix in prefixes)
            and any(self.holds(text.right, suffix) for suffix in suffixes)
        )

    def matches_any(self, entries: Iterable[SummaryEntry], digest: Digest) -> bool:
        return any(self.matches(entry, digest) for entry in entries)

    # -- Digests as filters --------------------------------------------------------------------------------------

    def question(self, digest: Digest, bits_per_token: float) -> JoinQuestion:
        """A digest as it travels: a Bloom filter with this many bits for each of its tokens."""
        tokens = [token for part in (digest.enumerated, digest.arithmetic) for _, token in part]
        for _, whole, prefixes, suffixes in digest.texts:
            tokens += [whole, *prefixes, *suffixes]
        if not tokens:
            return JoinQuestion(digest.type)
        size = min(FILTER_BYTES_MAX, max(1, ceil(len(tokens) * bits_per_token / 8)))
        bits = 0
        for one in tokens:
            bits |= mask(one, 8 * size, self.hashes)
        return JoinQuestion(digest.type, bits.to_bytes(size, "big"))

    def satisfies(self, question: JoinQuestion, demand: Demand) -> bool:
        """Whether an event with this digest may meet a demand."""
        size = 8 * len(question.filter)
        if not size:
            return True
        bits = int.from_bytes(question.filter, "big")
        return all(
            any(_all_in(bits, tokens, size, self.hashes) for tokens in alternatives) for alternatives in demand
        )

    # -- On the wire ---------------------------------------------------------------------------------------------

    def packed(self, entry: SummaryEntry) -> PackedEntry:
        size = (self.bits + 7) // 8
        texts = tuple(
            (each.leaf, _bytes(each.left, size), _bytes(each.right, size), _bytes(each.exact, size))
            for each in entry.texts
        )
        return PackedEntry(
            entry.type, entry.leaves, _bytes(entry.enumerated, size), _bytes(entry.arithmetic, size), texts
        )

    def unpacked(self, packed: PackedEntry) -> SummaryEntry:
        """The entry; `PeerError` if its filters are not of this family."""
        size = (self.bits + 7) // 8
        texts = []
        if not 0 <= packed.leaves < 1 << LEAF_MAX + 1:
            raise PeerError(f"summary: leaves {packed.leaves}: must be marks of {LEAF_MAX + 1} leaves")
        for leaf, left, right, exact in packed.texts:
            if not (0 <= leaf <= LEAF_MAX and packed.leaves >> leaf & 1):
                raise PeerError(f"summary: a string filter for leaf {leaf}, which is not marked")
            texts.append(Texts(leaf, _bits(left, size), _bits(right, size), _bits(exact, size)))
        return SummaryEntry(
            packed.type, packed.leaves, _bits(packed.enumerated, size), _bits(packed.arithmetic, size), tuple(texts)
        )


def aggregated(entries: Iterable[SummaryEntry], entries_max: int) -> tuple[SummaryEntry, ...]:
    """A summary of at most `entries_max` entries, or one of each type if that is more.

    Entries with the same type and marks become one. While there are still too many, neighbours in the order of their
    marks are merged, those that lose the fewest marks first, in rounds that each remove at least half of the excess.
    Only neighbours are compared, so n entries take about n log n steps, whatever a peer has made of them.
    """
    kept = _by_marks(entries)
    while len(kept) > entries_max:
        pairs = sorted(
            [
                ((kept[at].leaves ^ kept[at + 1].leaves).bit_count(), at)
                for at in range(len(kept) - 1)
                if kept[at].type == kept[at + 1].type
            ]
        )
        if not pairs:
            break  # one for each type is the least there can be
        merges = (len(kept) - entries_max + 1) // 2
        taken: set[int] = set()
        merged: list[SummaryEntry] = []
        for _, at in pairs:
            if len(merged) == merges:
                break
            if at not in taken and at + 1 not in taken:
                taken.update((at, at + 1))
                merged.append(kept[at].merged(kept[at + 1]))
        kept = _by_marks([*merged, *(entry for at, entry in enumerate(kept) if at not in taken)])
    return tuple(kept)


def _by_marks(entries: Iterable[SummaryEntry]) -> list[SummaryEntry]:
    """One entry for each type and set of marks, sorted."""
    found: dict[tuple[int, int], SummaryEntry] = {}
    for entry in entries:
        key = entry.type, entry.leaves
        known = found.get(key)
        found[key] = entry if known is None else known.merged(entry)
    return sorted(found.values())


def _all_in(bits: int, tokens: tuple[int, ...], size: int, hashes: int) -> bool:
    for one in tokens:
        wanted = mask(one, size, hashes)
        if bits & wanted != wanted:
            return False
    return True


def _bytes(bits: int, size: int) -> bytes:
    return bits.to_bytes(size, "big") if bits else b""


def _bits(filter_bytes: bytes, size: int) -> int:
    if len(filter_bytes) not in (0, size):
        raise PeerError(f"summary: a filter of {len(filter_bytes)} bytes; must be {size}")
    return int.from_bytes(filter_bytes, "big")
