"""The content language against two general XPath engines, and its comparisons against listing all records."""

import itertools
from collections.abc import Iterator
from typing import Any

import elementpath
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree  # type: ignore[import-untyped]

from roamcast.errors import ConfigurationError, PeerError
from roamcast.events import Event
from roamcast.interests import Interest, Intervals, XPaths, parse_interest, union_all
from roamcast.interests.content import event_types, load_schema, read, register, write

quick = settings(deadline=None, derandomize=True, max_examples=150)

SCHEMA = """
<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema">
  <xs:simpleType name="Small"><xs:restriction base="xs:integer">
    <xs:minInclusive value="0"/><xs:maxInclusive value="3"/>
  </xs:restriction></xs:simpleType>
  <xs:simpleType name="Colour"><xs:restriction base="xs:string">
    <xs:enumeration value="red"/><xs:enumeration value="green"/><xs:enumeration value="grey"/>
  </xs:restriction></xs:simpleType>
  <xs:element name="sample"><xs:complexType>
    <xs:all>
      <xs:element name="n" type="Small"/>
      <xs:element name="colour" type="Colour" minOccurs="0"/>
      <xs:element name="text" type="xs:string" minOccurs="0"/>
      <xs:element name="box" minOccurs="0"><xs:complexType><xs:sequence>
        <xs:element name="depth" type="Small"/>
      </xs:sequence></xs:complexType></xs:element>
    </xs:all>
    <xs:attribute name="half" type="xs:decimal"/>
  </xs:complexType></xs:element>
</xs:schema>
"""
register(SCHEMA)

TEXTS = (None, "", "a", "ab", "ba", "aba", "xyz")
RECORDS: list[dict[str, int | float | str]] = [
    {
        "n": n,
        **({} if colour is None else {"colour": colour}),
        **({} if text is None else {"text": text}),
        **({} if depth is None else {"box": True, "box/depth": depth}),
        **({} if half is None else {"@half": half}),
    }
    for n, colour, text, depth, half in itertools.product(
        (0, 1, 3), (None, "red", "grey"), TEXTS, (None, 0, 3), (None, 0.5, 1.0)
    )
]
DOCUMENTS = [write("sample", values) for values in RECORDS]
TREES = [etree.fromstring(document) for document in DOCUMENTS]

numbers = st.sampled_from(["0", "1", "2", "3", "4", "-1", "0.5", "1.5"])
words = st.sampled_from(["''", "'a'", "'b'", "'ab'", "'ba'", '"x"'])
signs = st.sampled_from(["=", "!=", "<", "<=", ">", ">="])
comparisons = st.one_of(
    st.builds("{} {} {}".format, st.sampled_from(["n", "@half", "box/depth"]), signs, numbers),
    st.builds("{2} {1} {0}".format, st.sampled_from(["n", "@half"]), signs, numbers),
    st.builds("{} {} {}".format, st.just("text"), st.sampled_from(["=", "!="]), words),
    st.builds(
        "{} {} {}".format, st.just("colour"), st.sampled_from(["=", "!="]), st.sampled_from(["'red'", "'grey'", "'no'"])
    ),
    st.builds("{}(text, {})".format, st.sampled_from(["starts-with", "contains"]), words.filter(lambda w: w != "''")),
    st.builds("starts-with(colour, {})".format, st.sampled_from(["'g'", "'gre'", "'x'"])),
    st.sampled_from(["text", "colour", "box", "box/depth", "@half", "n", "box[depth > 0]", "text[. = 'ab']"]),
)
ends = st.builds("ends-with(text, {})".format, words.filter(lambda w: w != "''"))


def conditions(atoms: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.recursive(
        atoms,
        lambda inner: st.one_of(
            st.builds("({} and {})".format, inner, inner),
            st.builds("({} or {})".format, inner, inner),
            st.builds("not({})".format, inner),
        ),
        max_leaves=4,
    )


locations = st.one_of(
    st.builds("/sample[{}]".format, conditions(comparisons)),
    st.builds("/sample[{}][{}]".format, comparisons, comparisons),
    st.builds("/sample[{}]/text".format, comparisons),
    st.builds("/sample/n[. {} {}]".format, signs, numbers),
    st.builds("//depth[. {} {}]".format, signs, numbers),
    st.builds("/sample/box[depth {} {}]/depth".format, signs, numbers),
)
expressions = st.lists(locations, min_size=1, max_size=2).map(" | ".join)
with_ends = st.builds("/sample[{}]".format, conditions(st.one_of(comparisons, ends)))


def matching(interest: XPaths) -> set[int]:
    return {at for at, document in enumerate(DOCUMENTS) if interest.contains(document)}


@given(expressions)
@quick
def test_selects_what_lxml_selects(expression: str) -> None:
    search = etree.XPath(expression)
    assert matching(XPaths.parse(expression)) == {at for at, tree in enumerate(TREES) if search(tree)}


@given(with_ends)
@settings(quick, max_examples=30)
def test_selects_what_a_second_engine_selects(expression: str) -> None:
    search = elementpath.Selector(expression, parser=elementpath.XPath2Parser)
    some = range(0, len(TREES), 17)
    expected = {at for at in some if search.select(TREES[at])}
    assert {at for at in some if XPaths.parse(expression).contains(DOCUMENTS[at])} == expected


@given(with_ends)
@quick
def test_normal_form_is_read_back_and_means_the_same(expression: str) -> None:
    interest = XPaths.parse(expression)
    again = XPaths.parse(str(interest))
    assert again == interest
    assert str(again) == str(interest)
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(interest), type=Interest) == interest


@given(with_ends, with_ends)
@quick
def test_comparisons_agree_with_listing_all_records(one: str, other: str) -> None:
    a, b = XPaths.parse(one), XPaths.parse(other)
    in_a, in_b = matching(a), matching(b)
    if a.covers(b):
        assert in_a >= in_b
    if in_a & in_b:
        assert a.overlaps(b)
        assert b.overlaps(a)
    assert a.covers(a)
    union = a.union(b)
    assert matching(union) == in_a | in_b
    assert union.covers(a) or len(union.expressions) < len(a.expressions) + len(b.expressions)
    assert 0 <= a.extra_share(b, 1000) <= a.extra_share(None, 1000) <= 1


@pytest.mark.parametrize(
    ("one", "other", "covers", "overlaps"),
    [
        ("hole > 9", "hole >= 10", True, True),
        ("hole >= 10", "hole > 10", True, True),
        ("hole > 10", "hole >= 10", False, True),
        ("hole < 5", "hole > 5", False, False),
        ("hole != 5", "hole = 5", False, False),
        ("hole != 5", "hole > 5", True, True),
        ("player = 'woods' or player = 'els'", "player = 'woods'", True, True),
        ("hole < 10", "player = 'woods' and hole = 3", True, True),
        ("player = 'woods' and hole = 3", "hole < 10", False, True),
        ("starts-with(remark, 'a')", "remark = 'abc'", True, True),
        ("starts-with(remark, 'a')", "starts-with(remark, 'ab')", True, True),
        ("starts-with(remark, 'a')", "starts-with(remark, 'b')", False, False),
        ("contains(remark, 'b')", "starts-with(remark, 'abc')", True, True),
        ("contains(remark, 'b')", "ends-with(remark, 'a')", False, True),
        ("not(contains(remark, 'b'))", "remark = 'aa'", True, True),
        ("not(contains(remark, 'b'))", "ends-with(remark, 'ab')", False, False),
        ("remark", "remark != 'a'", True, True),
        ("not(remark)", "remark", False, False),
        ("not(remark = 'a')", "not(remark)", True, True),
        ("player", "hole", True, True),
    ],
)
def test_comparisons_in_the_golf_forum(one: str, other: str, covers: bool, overlaps: bool) -> None:
    a, b = XPaths.parse(f"/PGMFORUM[{one}]"), XPaths.parse(f"/PGMFORUM[{other}]")
    assert a.covers(b) == covers
    assert a.overlaps(b) == b.overlaps(a) == overlaps


@pytest.mark.parametrize(
    ("written", "normal"),
    [
        ("/PGMFORUM[hole > 9.5]", "/PGMFORUM[hole>=10]"),
        ("//player[. = 'woods']", "/PGMFORUM[player='woods']"),
        ("/PGMFORUM/hole[. = 3]", "/PGMFORUM[hole=3]"),
        ("/PGMFORUM[hole = 2 or hole = 3]", "/PGMFORUM[hole>=2 and hole<=3]"),
        ("/PGMFORUM[not(hole > 3 and player = 'els')]", "/PGMFORUM[hole<=3] | /PGMFORUM[player!='els']"),
        ("/PGMFORUM[hole <= 18]", "/PGMFORUM"),
        ("/PGMFORUM[hole > 18]", ""),
        ("/PGMFORUM[hole = 1] | /PGMFORUM[hole < 4]", "/PGMFORUM[hole<=3]"),
        ("/*[half]", ""),
    ],
)
def test_simplifies(written: str, normal: str) -> None:
    if normal or "half" not in written:
        assert str(parse_interest("content", written)) == normal
    else:
        with pytest.raises(ConfigurationError, match="'half' is not in"):
            parse_interest("content", written)


def hostile() -> Iterator[tuple[str, str]]:
    yield "/PGMFORUM[//hole//hole]", "// is not allowed there"
    yield "/PGMFORUM[hole[//player[//hole]]]", "// is not allowed there"
    yield "/PGMFORUM[.//hole = 3]", "nothing may follow"
    yield "/PGMFORUM[player//x = 3]", "// is allowed only"
    yield "/PGMFORUM[" + "(" * 1000 + "hole" + ")" * 1000 + "]", "nested more than"
    yield "/PGMFORUM[" + "not(" * 700 + "hole" + ")" * 700 + "]", "nested more than"
    yield "/PGMFORUM[" + " or ".join(["hole = 1"] * 1000) + "]", "characters"
    # 3 to the power of 6 alternatives, if it were multiplied out
    parts = [f"(contains(remark, '{c}') or contains(@id, '{c}') or remark = '{c}')" for c in "abcdef"]
    yield f"/PGMFORUM[{' and '.join(parts)}]", "too many alternatives"
    yield "/PGMFORUM[" + " or ".join(f"contains(remark, '{n}')" for n in range(150)) + "]", "too many alternatives"
    yield "/PGMFORUM[" + " and ".join(f"contains(@id, '{n}')" for n in range(150)) + "]", "too many conditions on '@id'"
    yield "/PGMFORUM[" + " and ".join(f"@id != '{n}'" for n in range(230)) + "]", "too many conditions on '@id'"
    yield "/PGMFORUM[not(" + " or ".join(f"starts-with(@id, '{n}x')" for n in range(130)) + ")]", "too many conditions"
    yield "/PGMFORUM[1]", "positions"
    yield "/PGMFORUM[contains(remark, '')]", "not empty"
    yield "/PGMFORUM[last()]", "function"
    yield "/PGMFORUM[count(//*) > 1]", "function"
    yield "/PGMFORUM[hole + 1 = 2]", "arithmetic"
    yield "/PGMFORUM[$x = 2]", "variables"
    yield "/PGMFORUM[../hole]", "parents"
    yield "/PGMFORUM/child::hole", "axes"
    yield "/g:PGMFORUM", "prefixes"
    yield "/PGMFORUM[hole = 'three']", "whole number from 1 to 18"
    yield "/PGMFORUM[player > 3]", "one of"
    yield "/PGMFORUM[player < 'els']", "compared by"
    yield "/PGMFORUM[caddie = 'x']", "'caddie' is not in"
    yield "/PGMFORUM[hole = 1", "expected ']'"
    yield "/PGMFORUM[hole = 'x]", "no meaning"
    yield "/NOSUCH", "no event type"
    yield "hole = 1", "begins with /"
    yield "/PGMFORUM | ", "begins with /"
    yield "/PGMFORUM[hole = " + "9" * 401 + "]", "digits"


@pytest.mark.parametrize(("expression", "reason"), list(hostile()))
def test_refuses_with_a_reason_after_little_work(expression: str, reason: str, little_work: Any) -> None:
    with little_work(), pytest.raises(ConfigurationError, match="interest: ") as refusal:
        XPaths.parse(expression)
    assert reason in str(refusal.value)
    assert len(str(refusal.value)) < 400


@given(st.text(alphabet="/[]()=<>!'\"@.|*- abhn01", max_size=40))
@quick
def test_any_text_is_an_interest_or_refused(text: str) -> None:
    try:
        interest = XPaths.parse(text)
    except ConfigurationError:
        return
    assert XPaths.parse(str(interest)) == interest


def test_what_peers_send_must_be_normal() -> None:
    for expressions in (("/PGMFORUM[hole > 3]",), ("/PGMFORUM[",), ("/PGMFORUM[hole=4]", "/PGMFORUM[hole=3]"), ("",)):
        with pytest.raises(PeerError):
            XPaths(expressions)


def test_other_languages_are_strangers() -> None:
    golf = XPaths.parse("/PGMFORUM")
    numbers = Intervals.of((0, 10))
    assert not golf.covers(numbers)
    assert not golf.overlaps(numbers)
    assert not golf.contains(7)
    assert not golf.matches(Event(1, 0.0, "not XML"))
    with pytest.raises(PeerError):
        golf.union(numbers)


def test_the_example_of_the_paper() -> None:
    """Section 3.1, figure 3."""
    document = (
        '<?xml version="1.0" encoding="UTF-8"?>'
        '<PGMFORUM id="001" timestamp="1003-02-27T12:00:00.000-00:00" xmlns="http://www.cl.cam.ac.uk/~ey204/lib/">'
        "<player>woods</player><hole>15</hole><holescore>4</holescore><totalscore>52</totalscore>"
        "<currentrank>2</currentrank></PGMFORUM>"
    )
    assert read(document).values["totalscore"] == 52
    assert XPaths.parse("/PGMFORUM[player = 'woods' and hole > 9]").contains(document)
    assert not XPaths.parse("/PGMFORUM[player = 'palmer']").contains(document)


def test_a_registered_type_cannot_change() -> None:
    assert register(SCHEMA) == load_schema(SCHEMA)
    with pytest.raises(ConfigurationError, match="known already"):
        register(SCHEMA.replace('"3"', '"4"'))
    assert {"PGMFORUM", "sample"} <= set(event_types())


def test_a_union_of_many_terms_is_bounded() -> None:
    """Comparing all terms with all others would take minutes."""
    term = "/PGMFORUM[remark = '{0}' and hole = {1} and totalscore = {2}]"
    texts = [" | ".join(term.format(60 * p + n, p + 1, n) for n in range(60)) for p in range(6)]
    parts = [parse_interest("content", text) for text in texts]
    united = union_all(parts)
    assert str(united) == "/PGMFORUM"
    expressions = tuple(sorted({each for part in parts for each in part.expressions}))  # type: ignore[union-attr]
    with pytest.raises(PeerError, match="allowed: at most 256"):
        XPaths(expressions)
