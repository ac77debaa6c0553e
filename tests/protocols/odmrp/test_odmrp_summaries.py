"""Summaries and digests: never a false negative, false positives as the formula has it, and the index like its twin."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roamcast.errors import CallerError, ConfigurationError, PeerError
from roamcast.interests import Interest, Intervals, Topics, XPaths
from roamcast.protocols.odmrp.bloom import BITS_MAX, false_positive_rate, mask, positions, token
from roamcast.protocols.odmrp.encoding import Encoder, Wish
from roamcast.protocols.odmrp.index import EntryIndex, rows
from roamcast.protocols.odmrp.packed import Digest, JoinQuestion, PackedEntry
from roamcast.protocols.odmrp.summaries import Family, SummaryEntry, aggregated
from roamcast.seeds import Random
from roamcast.world.golf import golf_event, golf_interest

quick = settings(deadline=None, derandomize=True, max_examples=120)

encoders = st.builds(
    Encoder,
    st.builds(Family, st.sampled_from([8, 64, 256]), st.integers(1, 6)),
    st.integers(1, 40),
    st.integers(1, 9),
    st.sampled_from([10.0, 100.0, 10_000.0]),
    st.integers(1, 12),  # how deep topics may be
)
seeds = st.integers(0, 2**32)
numbers = st.one_of(st.integers(-20, 120), st.floats(-20, 120))
intervals = st.lists(st.tuples(numbers, numbers), min_size=1, max_size=3).map(lambda parts: Intervals.of(*parts))
levels = st.sampled_from(["a", "b", "*", "**"])
topics = st.lists(st.lists(levels, min_size=1, max_size=10).map("/".join), min_size=1, max_size=3).map(
    lambda patterns: Topics.of(*patterns)
)
paths = st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=12).map("/".join)

TEXTS = ["", "a", "ab", "birdie", "what a birdie", "albatross at last"]
strings = st.sampled_from(TEXTS)
functions = st.sampled_from(["starts-with", "ends-with", "contains"])
text_conditions = st.one_of(
    st.builds("{}({}, '{}')".format, functions, st.sampled_from(["remark", "@id"]), strings.filter(bool)),
    st.builds("{} {} '{}'".format, st.sampled_from(["remark", "@id"]), st.sampled_from(["=", "!="]), strings),
    st.sampled_from(["remark", "not(remark)", "hole < 5", "player = 'woods'"]),
)
conditions = st.recursive(
    text_conditions,
    lambda inner: st.one_of(
        st.builds("({} and {})".format, inner, inner),
        st.builds("({} or {})".format, inner, inner),
        st.builds("not({})".format, inner),
    ),
    max_leaves=3,
)


def document(identity: str, remark: str | None, hole: int = 3) -> str:
    told = "" if remark is None else f"<remark>{remark}</remark>"
    return (
        f'<PGMFORUM id="{identity}" xmlns="http://www.cl.cam.ac.uk/~ey204/lib/"><player>woods</player>'
        f"<hole>{hole}</hole><holescore>4</holescore><totalscore>9</totalscore><currentrank>1</currentrank>{told}"
        "</PGMFORUM>"
    )


def check(encoder: Encoder, interest: Interest, content: int | float | str) -> None:
    """If the interest matches, so does each way of summarising it."""
    digest = encoder.digest(content)
    assert digest is not None
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(digest), type=Digest) == digest
    entries = encoder.entries(interest)
    family = encoder.family
    for entry in entries:
        packed = msgspec.msgpack.decode(msgspec.msgpack.encode(family.packed(entry)), type=PackedEntry)
        assert family.unpacked(packed) == entry
        assert family.matches(entry, Digest(digest.type))  # an advertisement reaches everybody
    question = family.question(digest, bits_per_token=6.0)
    demands = [each.demand for each in encoder.summarised(interest)]
    assert all(family.satisfies(JoinQuestion(digest.type), demand) for demand in demands)
    if interest.contains(content):
        assert family.matches_any(entries, digest)
        assert family.matches_any(aggregated(entries, 1), digest)
        assert any(family.satisfies(question, demand) for demand in demands)


@given(encoders, intervals, numbers)
@quick
def test_no_false_negative_of_intervals(encoder: Encoder, interest: Intervals, number: float) -> None:
    check(encoder, interest, number)
    for low, high in interest.ranges:
        check(encoder, interest, low)
        check(encoder, interest, (low + high) / 2)


@given(encoders, topics, paths)
@quick
def test_no_false_negative_of_topics(encoder: Encoder, interest: Topics, topic: str) -> None:
    check(encoder, interest, topic)


@given(encoders, conditions, strings, st.one_of(st.none(), strings), st.integers(1, 18))
@quick
def test_no_false_negative_of_strings(
    encoder: Encoder, condition: str, identity: str, remark: str | None, hole: int
) -> None:
    check(encoder, XPaths.parse(f"/PGMFORUM[{condition}]"), document(identity, remark, hole))


@given(encoders, seeds, st.sampled_from([0.01, 0.1, 0.6]))
@settings(quick, max_examples=40)
def test_no_false_negative_of_the_golf_forum(encoder: Encoder, seed: int, selectivity: float) -> None:
    random = Random(seed)
    interest = golf_interest(selectivity, random)
    for _ in range(10):
        check(encoder, interest, golf_event(random))


@pytest.mark.parametrize(("bits_per_token", "share_max"), [(8.0, 0.7), (16.0, 0.45)])
def test_the_larger_a_digest_the_fewer_subscriptions_answer_in_vain(bits_per_token: float, share_max: float) -> None:
    """Section 3.5.1: the digest in a Join Request is a Bloom filter."""
    random = Random(3)
    encoder = Encoder()
    interests = [golf_interest(0.05, random) for _ in range(60)]
    wrong = right = 0
    for _ in range(60):
        content = golf_event(random)
        digest = encoder.digest(content)
        assert digest is not None
        question = encoder.family.question(digest, bits_per_token)
        for interest in interests:
            hit = any(encoder.family.satisfies(question, each.demand) for each in encoder.summarised(interest))
            right += hit and interest.contains(content)
            wrong += hit and not interest.contains(content)
    assert right > 100
    assert wrong / (right + wrong) < share_max


@pytest.mark.parametrize("tokens", [10, 40, 80])
@pytest.mark.parametrize(("bits", "hashes"), [(256, 2), (256, 4), (1024, 4)])
def test_false_positives_follow_the_formula(tokens: int, bits: int, hashes: int) -> None:
    family = Family(bits, hashes)
    probes = [token("probe", str(number)) for number in range(2000)]
    hits = 0
    for filled in range(10):
        held = family.filled(token(f"held {filled}", str(number)) for number in range(tokens))
        hits += sum(family.holds(held, probe) for probe in probes)
    expected = false_positive_rate(tokens, bits, hashes)
    assert hits / 20_000 == pytest.approx(expected, rel=0.25, abs=0.002)


@given(st.integers(0, 2**32 - 1), st.integers(8, BITS_MAX), st.integers(1, 8))
@quick
def test_positions_are_the_bits_of_the_mask(one: int, bits: int, hashes: int) -> None:
    bits = bits % 512 + 8
    assert sum(1 << at for at in set(positions(one, bits, hashes))) == mask(one, bits, hashes)
    assert 1 <= len(positions(one, bits, hashes)) <= hashes


def test_each_constraint_is_tested_by_itself() -> None:
    """All tokens of an event are in the filter, but not each where it is wanted."""
    encoder = Encoder()
    entry = encoder.entry_of_pairs("PGMFORUM", {"hole": 4, "holescore": 3})
    near = encoder.digest_of_values("PGMFORUM", {"player": "woods", "hole": 3, "holescore": 4})
    right = encoder.digest_of_values("PGMFORUM", {"player": "woods", "hole": 4, "holescore": 3})
    assert not encoder.family.matches(entry, near)
    assert encoder.family.matches(entry, right)


@pytest.mark.parametrize(
    ("wishes", "expression"),
    [
        ({"player": "woods"}, "player = 'woods'"),
        ({"player": ["woods", "els"], "hole": (10, 18)}, "(player = 'woods' or player = 'els') and hole >= 10"),
        ({"currentrank": 3}, "currentrank = 3"),
        ({"remark": "what*birdie"}, "starts-with(remark, 'what') and ends-with(remark, 'birdie')"),
        ({"remark": "*birdie"}, "ends-with(remark, 'birdie')"),
        ({"remark": "birdie"}, "remark = 'birdie'"),
        ({}, "player"),
    ],
)
def test_attributes_and_values_give_the_same_as_xpath(wishes: dict[str, Wish], expression: str) -> None:
    encoder = Encoder()
    assert encoder.entries(XPaths.parse(f"/PGMFORUM[{expression}]")) == [encoder.entry_of_pairs("PGMFORUM", wishes)]


def test_refuses_wishes_that_make_no_sense() -> None:
    wrong: list[tuple[str, dict[str, Wish]]] = [
        ("OTHER", {}),
        ("PGMFORUM", {"caddie": "x"}),
        ("PGMFORUM", {"hole": "three"}),
        ("PGMFORUM", {"player": 3}),
    ]
    for kind, wishes in wrong:
        with pytest.raises(ConfigurationError):
            Encoder().entry_of_pairs(kind, wishes)


def test_an_event_in_no_language_has_no_digest() -> None:
    assert Encoder().digest("<x/>") is None
    assert Encoder().digest("a/b") is not None


def test_foreign_filters_are_refused() -> None:
    entry = Encoder().entry_of_pairs("PGMFORUM", {"remark": "a*b"})
    packed = Family(256, 4).packed(entry)
    with pytest.raises(PeerError, match="32 bytes; must be 8"):
        Family(64, 4).unpacked(packed)
    with pytest.raises(PeerError, match="not marked"):
        Family(256, 4).unpacked(PackedEntry(1, 0, b"", b"", packed.texts))
    with pytest.raises(PeerError, match="marks of"):
        Family(256, 4).unpacked(PackedEntry(1, 1 << 64, b"", b""))
    with pytest.raises(PeerError, match="leaf 64"):
        Digest(1, enumerated=((64, 0),))


@given(seeds, st.integers(1, 4))
@settings(quick, max_examples=20)
def test_aggregation_only_widens(seed: int, entries_max: int) -> None:
    random = Random(seed)
    encoder = Encoder()
    entries = [entry for _ in range(8) for entry in encoder.entries(golf_interest(0.1, random))]
    summary = aggregated(entries, entries_max)
    assert len(summary) <= entries_max
    assert summary == aggregated(reversed(entries), entries_max) or entries_max < 4
    for entry in entries:
        assert any(each.covers(entry) for each in summary)
    for _ in range(10):
        digest = encoder.digest(golf_event(random))
        assert digest is not None
        if encoder.family.matches_any(entries, digest):
            assert encoder.family.matches_any(summary, digest)


@given(seeds)
@settings(quick, max_examples=10)
def test_the_index_answers_like_asking_each_entry(seed: int) -> None:
    random = Random(seed)
    encoder = Encoder()
    index = EntryIndex(encoder.family)
    held: dict[int, SummaryEntry] = {}
    wishes = [XPaths.parse(f"/PGMFORUM[{text}]") for text in ("starts-with(@id, '0')", "ends-with(@id, '7')", "remark")]
    for _ in range(40):
        if held and random.random() < 0.3:
            row = random.choice(sorted(held))
            index.remove(row)
            del held[row]
        else:
            interests: list[Interest] = [golf_interest(0.2, random), *wishes, Topics.of("a/*")]
            entry = encoder.entries(random.choice(interests))[0]
            row = index.add(entry)
            assert row not in held
            held[row] = entry
        digest = encoder.digest(random.choice([golf_event(random), "a/b"]))
        assert digest is not None
        expected = [row for row in sorted(held) if encoder.family.matches(held[row], digest)]
        assert list(rows(index.matches(digest))) == expected
    assert len(index) == len(held)


@given(st.lists(st.tuples(conditions, st.booleans()), min_size=1, max_size=8), strings, st.one_of(st.none(), strings))
@settings(quick, max_examples=60)
def test_the_index_misses_no_text_whether_it_knows_demands_or_only_filters(
    subscribed: list[tuple[str, bool]], identity: str, remark: str | None
) -> None:
    encoder = Encoder()
    index = EntryIndex(encoder.family)
    content = document(identity, remark)
    digest = encoder.digest(content)
    assert digest is not None
    expected: set[int] = set()
    hits_at_most: set[int] = set()
    added: list[int] = []
    for condition, knows in subscribed:
        interest = XPaths.parse(f"/PGMFORUM[{condition}]")
        for each in encoder.summarised(interest):
            row = index.add(each.entry, each.demand if knows else None)
            added.append(row)
            hits_at_most |= {row} if encoder.family.matches(each.entry, digest) else set()
        if interest.contains(content):
            expected |= {row for row in added[-len(encoder.entries(interest)) :] if row in hits_at_most}
    found = set(rows(index.matches(digest)))
    assert found <= hits_at_most
    if len(subscribed) == 1 and expected:
        assert found
    for row in added:
        index.remove(row)
    assert index.matches(digest) == 0


def test_the_index_knows_its_rows() -> None:
    with pytest.raises(CallerError):
        EntryIndex(Family()).remove(0)
