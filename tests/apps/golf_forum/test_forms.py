"""What users enter, as XPath, as wishes without XPath, and as documents."""

from typing import Any

import pytest

from roamcast.apps.golf_forum import forms
from roamcast.apps.golf_forum.tournament import RIDE_WISHES, WISHES
from roamcast.errors import ConfigurationError
from roamcast.interests import XPaths
from roamcast.interests.content import read
from roamcast.protocols.odmrp.encoding import term_of_pairs
from roamcast.seeds import derive
from roamcast.world.golf import golf_event

forms.register_types()


def score(**fields: Any) -> forms.Form:
    return forms.form_of({"type": forms.SCORE, **fields})


@pytest.mark.parametrize(
    ("form", "expression"),
    [
        (score(), "/PGMFORUM"),
        (score(official=True), "/PGMFORUM[starts-with(@id, 'O')]"),
        (score(fields={"player": ["woods"]}), "/PGMFORUM[player = 'woods']"),
        (score(fields={"player": ["woods", "els"]}), "/PGMFORUM[(player = 'els' or player = 'woods')]"),
        (score(fields={"hole": [15, 15]}), "/PGMFORUM[hole = 15]"),
        (score(fields={"hole": [10, None]}), "/PGMFORUM[hole >= 10]"),
        (score(fields={"hole": [1, 18], "currentrank": [None, 3]}), "/PGMFORUM[currentrank <= 3]"),
        (score(fields={"player": ["els"], "hole": [7, 9]}), "/PGMFORUM[player = 'els' and hole >= 7 and hole <= 9]"),
        (
            score(fields={"player": ["els"], "hole": [7, 9]}, combine="any"),
            "/PGMFORUM[player = 'els' or hole >= 7 and hole <= 9]",
        ),
        (
            score(fields={"player": ["els"], "holescore": [None, 3]}, combine="any", official=True),
            "/PGMFORUM[starts-with(@id, 'O') and (player = 'els' or holescore <= 3)]",
        ),
        (score(fields={"remark": "it's"}), '/PGMFORUM[starts-with(remark, "it\'s")]'),
        (score(xpath="/PGMFORUM[hole = 3]"), "/PGMFORUM[hole = 3]"),
        (
            forms.form_of({"type": forms.TAXI, "fields": {"destination": ["old town"], "seats": [2, None]}}),
            "/TAXISHARE[destination = 'old town' and seats >= 2]",
        ),
    ],
)
def test_a_form_is_written_as_xpath(form: forms.Form, expression: str) -> None:
    assert forms.expression(form) == expression
    assert not XPaths.parse(expression).is_empty


@pytest.mark.parametrize("entered", [{"type": forms.SCORE, **each} for each in WISHES])
def test_wishes_without_xpath_ask_for_the_same(entered: dict[str, Any]) -> None:
    form = forms.form_of(entered)
    written = XPaths.parse(forms.expression(form))
    entered_directly = [XPaths.of(term_of_pairs(form.type, wishes)) for wishes in forms.wishes(form)]
    random = derive(1, "documents")
    wanted = 0
    for number in range(300):
        text = golf_event(random).replace('id="', 'id="O' if number % 2 else 'id="G')
        assert written.contains(text) == any(each.contains(text) for each in entered_directly)
        wanted += written.contains(text)
    assert 0 < wanted < 300 or "remark" in entered["fields"]  # random events have no remarks


def test_the_rides_of_the_demonstration_can_be_asked_for() -> None:
    for entered in RIDE_WISHES:
        assert not XPaths.parse(forms.expression(forms.form_of({"type": forms.TAXI, **entered}))).is_empty


@pytest.mark.parametrize(
    ("entered", "mistake"),
    [
        ({"type": "NEWS"}, "type: 'NEWS' is unknown"),
        ({"type": forms.SCORE, "fields": {"hole": [0, 5]}}, "hole: must be from and to, between 1 and 18"),
        ({"type": forms.SCORE, "fields": {"hole": [5, 4]}}, "hole: must be"),
        ({"type": forms.SCORE, "fields": {"hole": "5"}}, "hole: must be"),
        ({"type": forms.SCORE, "fields": {"hole": [1.5, 2]}}, "hole: must be"),
        ({"type": forms.SCORE, "fields": {"player": ["nobody"]}}, "player: must be some of"),
        ({"type": forms.SCORE, "fields": {"weather": ["rain"]}}, "weather: is no field"),
        ({"type": forms.SCORE, "fields": {"remark": "'\""}}, "remark: must be text"),
        ({"type": forms.SCORE, "combine": "none"}, "subscription: Invalid enum value 'none'"),
        ({"type": forms.SCORE, "more": 1}, "subscription: Object contains unknown field"),
        ([], "subscription: Expected `object`"),
    ],
)
def test_nonsense_is_refused(entered: Any, mistake: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        forms.expression(forms.form_of(entered))
    assert str(refused.value).startswith(mistake)


def test_a_document_follows_the_schema() -> None:
    values = {"player": "els", "hole": 3, "holescore": 4, "totalscore": 9, "currentrank": 2, "remark": ""}
    text = forms.document(forms.SCORE, values, "O3-1")
    assert read(text).values["player"] == "els"
    assert forms.published_values(text)["official"]
    assert "remark" not in read(text).values
    for wrong, mistake in (({"hole": 19}, "hole"), ({"player": "x" * 201}, "player: must be"), ({"@id": "O1"}, "@id")):
        with pytest.raises(ConfigurationError, match=mistake):
            forms.document(forms.SCORE, values | wrong, "G1-1")


def test_every_field_of_a_form_has_a_label() -> None:
    scores, rides = forms.described_types()
    assert [field["path"] for field in scores["fields"]] == [
        *("player", "hole", "holescore", "totalscore", "currentrank", "remark")
    ]
    assert rides["fields"][1] == {
        "path": "seats",
        "label": "Free seats",
        "optional": False,
        "kind": "numbers",
        "low": 1,
        "high": 6,
    }
