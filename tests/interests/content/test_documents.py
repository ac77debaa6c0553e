"""Events as XML: what is read is what was written, what the schema forbids is refused, and hostile input at once."""

from importlib.resources import files
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree  # type: ignore[import-untyped]

from roamcast.errors import ConfigurationError
from roamcast.interests.content import load_schema, read, record_of, write
from roamcast.interests.content.schema import SCHEMA_CHARACTERS_MAX, event_types

GOLF = files("roamcast.interests.content").joinpath("golf.xsd").read_text("utf-8")
VALIDATOR = etree.XMLSchema(etree.fromstring(GOLF.encode()))
NAMESPACE = "http://www.cl.cam.ac.uk/~ey204/lib/"

quick = settings(deadline=None, derandomize=True, max_examples=100)

players = st.sampled_from(["woods", "palmer", "els"])
texts = st.text(alphabet=st.characters(exclude_categories=["Cs", "Cc"]), max_size=20)
values = st.fixed_dictionaries(
    {
        "@id": texts,
        "player": players,
        "hole": st.integers(1, 18),
        "holescore": st.integers(1, 12),
        "totalscore": st.integers(1, 120),
        "currentrank": st.integers(1, 100),
    },
    optional={"remark": texts, "@timestamp": st.sampled_from(["2003-02-27T12:00:00Z", "2004-02-29T23:59:59.5+01:00"])},
)


@given(values)
@quick
def test_reads_what_it_writes(record: dict[str, int | str]) -> None:
    document = write("PGMFORUM", record)
    assert read(document).values == record
    assert VALIDATOR.validate(etree.fromstring(document))


parts = st.lists(
    st.sampled_from(
        [
            "<player>woods</player>",
            "<player>nobody</player>",
            "<hole> 7 </hole>",
            "<hole>19</hole>",
            "<hole>7.0</hole>",
            "<hole/>",
            "<holescore>4</holescore>",
            "<totalscore>+9</totalscore>",
            "<currentrank>1</currentrank>",
            "<remark>a<b/></remark>",
            "<remark/>",
            "<caddie/>",
            "text",
            "<!-- remark -->",
        ]
    ),
    min_size=4,
    max_size=7,
).map("".join)
GOOD = (
    "<player>woods</player><hole>7</hole><holescore>4</holescore><totalscore>9</totalscore><currentrank>1</currentrank>"
)
bodies = st.one_of(parts, st.sampled_from(["", "<remark/>", "<hole>1</hole>", "x"]).map(lambda extra: GOOD + extra))
attributes = st.sampled_from(
    [
        'id="1"',
        "",
        'id="1" other="2"',
        'id="1" timestamp="2003-02-27T12:00:00Z"',
        'id="1" timestamp="2003-02-30T12:00:00Z"',
    ]
)


@given(bodies, attributes)
@quick
def test_takes_what_a_validating_parser_takes(body: str, attribute: str) -> None:
    document = f'<PGMFORUM {attribute} xmlns="{NAMESPACE}">{body}</PGMFORUM>'
    assert (record_of(document) is not None) == VALIDATOR.validate(etree.fromstring(document))


def bomb() -> str:
    entities = "".join(f'<!ENTITY a{i} "{f"&a{i - 1};" * 10}">' for i in range(1, 10))
    return f'<!DOCTYPE x [<!ENTITY a0 "ha">{entities}]><PGMFORUM id="&a9;" xmlns="{NAMESPACE}"/>'


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        (bomb(), "DOCTYPE"),
        ('<!DOCTYPE x SYSTEM "file:///etc/passwd"><x/>', "DOCTYPE"),
        ("<a>" * 1500 + "</a>" * 500, "not XML"),
        ("<a>" * 1000 + "</a>" * 1000, "not XML"),
        ("x" * 10_000, "at most 8192"),
        ("<PGMFORUM", "not XML"),
        ("<PGMFORUM id='\ud800'/>", "not XML"),
        ("<PGMFORUM id='1'/>", "no event type"),
        (f'<other xmlns="{NAMESPACE}"/>', "no event type"),
        (f'<PGMFORUM xmlns="{NAMESPACE}">{GOOD}</PGMFORUM>', "lacks its attribute 'id'"),
        (f'<PGMFORUM id="1" xmlns="{NAMESPACE}"><player>woods</player></PGMFORUM>', "lacks its element 'hole'"),
        (f'<PGMFORUM id="1" xmlns="{NAMESPACE}">{GOOD}</PGMFORUM>'.replace(">7<", ">x<"), "whole number from 1 to 18"),
        (f'<PGMFORUM id="1" xmlns="{NAMESPACE}">{GOOD}</PGMFORUM>'.replace("woods", "&undefined;"), "not XML"),
    ],
)
def test_refuses_with_a_reason_after_little_work(document: str, reason: str, little_work: Any) -> None:
    with little_work(), pytest.raises(ConfigurationError, match="event: ") as refusal:
        read(document)
    assert reason in str(refusal.value)
    assert record_of(document) is None


@given(st.text(alphabet="<>/&;!='\" PGMFORUMx[]-?", max_size=60))
@quick
def test_any_text_is_a_document_or_refused(text: str) -> None:
    assert record_of(text) is None


def test_writes_only_what_the_type_knows() -> None:
    with pytest.raises(ConfigurationError, match="'caddie'"):
        write("PGMFORUM", {"caddie": "x"})
    with pytest.raises(ConfigurationError, match="'X' is unknown; allowed: PGMFORUM"):
        write("X", {})
    with pytest.raises(ConfigurationError, match="lacks"):
        write("PGMFORUM", {"@id": "1"})


def schema(body: str, attributes: str = "") -> str:
    return f'<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" {attributes}>{body}</xs:schema>'


def record(inside: str) -> str:
    return schema(f'<xs:element name="r"><xs:complexType><xs:all>{inside}</xs:all></xs:complexType></xs:element>')


RECURSIVE = schema(
    '<xs:complexType name="T"><xs:all><xs:element name="a" type="T"/><xs:element name="b" type="T"/></xs:all>'
    '</xs:complexType><xs:element name="r" type="T"/>'
)


TYPE = '<xs:complexType name="T"><xs:attribute name="a" type="xs:string"/></xs:complexType>'
UNUSED = '<xs:complexType name="U"><xs:choice maxOccurs="99999"/></xs:complexType>'
BOUNDED = (
    '<xs:element name="a"><xs:simpleType><xs:restriction base="xs:integer"><xs:minInclusive value="{}"/>'
    "</xs:restriction></xs:simpleType></xs:element>"
)
UNFOLDING = schema(  # 40 to the power of 6 elements, without a single value
    '<xs:element name="r" type="T0"/><xs:complexType name="T6"/>'
    + "".join(
        f'<xs:complexType name="T{level}"><xs:sequence>'
        + "".join(f'<xs:element name="e{i}" type="T{level + 1}"/>' for i in range(40))
        + "</xs:sequence></xs:complexType>"
        for level in range(6)
    )
)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("<x/>", "root element"),
        ("<!DOCTYPE x><x/>", "DOCTYPE"),
        (" " * (SCHEMA_CHARACTERS_MAX + 1), "characters"),
        (schema(""), "no global element"),
        (schema('<xs:import schemaLocation="http://example.org/x.xsd"/>'), "'import' is outside"),
        (schema('<xs:element name="r" type="xs:string"/>'), "no complex type"),
        (schema('<xs:element name="r"/>'), "no type"),
        (schema('<xs:element name="r" type="T"/>'), "not defined"),
        (RECURSIVE, "nested too deeply"),
        (record('<xs:element name="a" type="xs:duration"/>'), "'duration'"),
        (record('<xs:element name="a" type="xs:int" maxOccurs="1000000"/>'), "more than once"),
        (record('<xs:element ref="r"/>'), "'ref' of 'element'"),
        (record('<xs:any/>'), "'any' is outside"),
        (record('<xs:element name="ä" type="xs:int"/>'), "ASCII"),
        (record("".join(f'<xs:element name="a{i}" type="xs:int"/>' for i in range(65))), "more than 64"),
        (
            record(
                '<xs:element name="a"><xs:simpleType><xs:restriction base="xs:string"><xs:pattern value="(a+)+b"/>'
                "</xs:restriction></xs:simpleType></xs:element>"
            ),
            "'pattern' is outside",
        ),
        (
            record(
                '<xs:element name="a"><xs:simpleType><xs:restriction base="xs:int"><xs:minInclusive value="5"/>'
                '<xs:maxInclusive value="4"/></xs:restriction></xs:simpleType></xs:element>'
            ),
            "can hold nothing",
        ),
        (schema('<xs:element name="r"><xs:complexType/></xs:element>', 'targetNamespace="urn:x"'), "qualified"),
        (schema("".join(f'<xs:element name="r{i}" type="T"/>' for i in range(99)) + TYPE), "more than 64 event types"),
        (UNFOLDING, "more than 64 elements"),
        (schema(f'<xs:element name="r" type="T"/>{TYPE}{UNUSED}'), "'choice' is outside"),
        (schema(f'<xs:element name="r" type="T"/>{TYPE}{UNUSED.replace("choice", "all")}'), "more than once"),
        (record(BOUNDED.format("9" * 5000)), "numbers up to"),
    ],
)
def test_schemas_outside_the_subset_are_refused_after_little_work(text: str, reason: str, little_work: Any) -> None:
    with little_work(), pytest.raises(ConfigurationError, match="schema: ") as refusal:
        load_schema(text)
    assert len(str(refusal.value)) < 400
    assert reason in str(refusal.value)


def test_reads_a_schema() -> None:
    [kind] = load_schema(GOLF)
    assert kind == event_types()["PGMFORUM"]
    assert list(kind.leaves) == [
        "player", "hole", "holescore", "totalscore", "currentrank", "remark", "@id", "@timestamp",
    ]  # fmt: skip
    assert kind.leaves["remark"].optional
    assert not kind.leaves["@id"].optional
    assert kind.leaves["@timestamp"].kind == "instant"
