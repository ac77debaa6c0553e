"""The page about adversaries: what is compared is comparable, and the page says what was run."""

from roamcast.hunt.adversity import KINDS, Ordeal, OrdealOutcome, adversity_page, ordeals, scenario_of, undergo


def test_every_kind_share_and_protection_is_measured() -> None:
    asked = list(ordeals(("flooding",), seeds=(1,)))
    assert len(asked) == 1 + 5 * 3 + 2 * 3
    assert {ordeal.kind for ordeal in asked} == {"none", *KINDS}
    assert {ordeal.kind for ordeal in asked if ordeal.signed} == {"replayer", "sybil"}
    assert scenario_of(asked[-1]).security.protection == "signed"


def test_droppers_cost_a_tree_deliveries() -> None:
    sound = undergo(Ordeal("ps-maodv", "none", 0.0, signed=False, seed=1)).delivered
    troubled = undergo(Ordeal("ps-maodv", "dropper", 0.2, signed=False, seed=1)).delivered
    assert sound is not None
    assert troubled is not None
    assert troubled < sound - 0.05


def test_the_page_has_medians_and_ranges() -> None:
    outcomes = [
        OrdealOutcome(Ordeal("flooding", "dropper", 0.2, signed=False, seed=seed), delivered)
        for seed, delivered in ((1, 0.5), (2, 0.9), (3, 0.7))
    ]
    page = adversity_page(outcomes)
    assert "| flooding | – | – | – | 0.70 (0.50–0.90) |" in page
    assert "over 3 seeds" in page
