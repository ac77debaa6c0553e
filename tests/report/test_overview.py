"""The overview of a report counts differences that stay certain after Holm's correction for all that it shows."""

from pathlib import Path

import pandas as pd

from roamcast.campaign.file import load_campaign
from roamcast.report.tables import corrected, overview

PLACES = 144


def test_certain_is_certain_among_all_comparisons(tmp_path: Path) -> None:
    """100 of 144 differences have p = 0.04: a plain test would call them certain, and some are chance."""
    (tmp_path / "campaign.toml").write_text(
        'protocols = ["flooding", "gossip"]\nseeds = 8\nmeasures = ["delivery_ratio"]\n', encoding="utf-8"
    )
    p_values = [1e-6] * 30 + [0.04] * 70 + [0.5] * (PLACES - 100)
    differences = pd.DataFrame({"point": range(PLACES), "measure": "delivery_ratio", "p": p_values})
    differences = differences.assign(baseline=-1, mean=0.1, relative=0.1)
    plan = pd.DataFrame({"point": range(PLACES), "protocol": "gossip"})
    [row] = overview(load_campaign(tmp_path / "campaign.toml"), differences, plan).rows
    assert row[1].note == f"certain at 30 of {PLACES} places"
    # each comparison that is shown counts, also those in other measures
    more = differences.assign(measure="within_1s", p=1.0)
    both = corrected(pd.concat([differences.assign(p=[0.05 / PLACES] * PLACES), more]), ["delivery_ratio", "within_1s"])
    assert not both["certain"].any()
