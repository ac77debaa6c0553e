"""How a figure tells its curves apart."""

from roamcast.papers.page import families


def test_settings_of_one_protocol_share_its_colour() -> None:
    assert families(["SOMER", "DSAPST, table", "DSAPST, tuned"]) == {
        "SOMER": ("SOMER", ""),
        "DSAPST, table": ("DSAPST", "table"),
        "DSAPST, tuned": ("DSAPST", "tuned"),
    }


def test_curves_that_share_nothing_have_colours_of_their_own() -> None:
    assert families(["600 nodes", "3000 nodes"]) == {
        "600 nodes": ("600 nodes", ""),
        "3000 nodes": ("3000 nodes", ""),
    }
    assert families(["SOMER, table"]) == {"SOMER, table": ("SOMER, table", "")}


def test_more_dashes_than_can_be_told_apart_are_not_drawn() -> None:
    curves = [f"measured, k = {k}" for k in range(5)]
    assert families(curves) == {curve: (curve, "") for curve in curves}
