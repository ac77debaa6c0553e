"""Why a document matches."""

import pytest

from roamcast.interests.content import Reason, XPaths, matches, write

WOODS = write(
    "PGMFORUM", {"@id": "1", "player": "woods", "hole": 15, "holescore": 4, "totalscore": 52, "currentrank": 2}
)


@pytest.mark.parametrize(
    ("expression", "reasons"),
    [
        ("/PGMFORUM", [()]),
        ("/PGMFORUM[player = 'els']", []),
        ("/PGMFORUM[hole > 9 and currentrank <= 3]", [(("hole", 15), ("currentrank", 2))]),
        ("/PGMFORUM[player = 'woods'] | /PGMFORUM[hole = 15]", [(("hole", 15),), (("player", "woods"),)]),
        ("/PGMFORUM[not(remark)]", [(("remark", None),)]),
    ],
)
def test_each_expression_that_matches_gives_its_reasons(expression: str, reasons: list[tuple[object, ...]]) -> None:
    found = matches(XPaths.parse(expression), WOODS)
    assert [tuple((reason.path, reason.value) for reason in match.reasons) for match in found] == reasons


def test_a_reason_is_a_condition_in_xpath() -> None:
    (match,) = matches(XPaths.parse("/PGMFORUM[(player='woods' or player='els') and hole>9 and hole<18]"), WOODS)
    assert match.reasons == (
        Reason("player", "(player='els' or player='woods')", "woods"),
        Reason("hole", "hole>=10 and hole<=17", 15),
    )


def test_what_is_no_document_has_no_reasons() -> None:
    assert matches(XPaths.parse("/PGMFORUM"), "<nothing/>") == matches(XPaths.parse("/PGMFORUM"), 3) == []
