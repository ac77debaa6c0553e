"""Runs of a campaign with real nodes."""

import msgspec
import pyarrow as pa
import pytest

from roamcast.campaign.emulated import emulating
from roamcast.emulator.emulation import USUAL
from roamcast.world.scenario import Faults, Run, Scenario


def test_a_run_that_cannot_be_emulated_fails_alone_with_the_reason() -> None:
    run = Run(scenario=Scenario(nodes=3, duration_s=5.0, faults=Faults(dropper_share=0.5)))
    batch = pa.RecordBatch.from_pydict({"run_id": ["a1"], "run": [msgspec.json.encode(run).decode()]})
    [outcome] = [each.to_pylist() for each in emulating(USUAL)(iter([batch]))]
    assert outcome[0]["category"] == "failed"
    assert "dropper_share: is simulated only" in outcome[0]["detail"]


def test_settings_of_machines_are_checked() -> None:
    for wrong in ({"rate_mbps": 0.0}, {"shared_mbps": -1.0}, {"cpu_share": 1.5}):
        with pytest.raises(Exception, match="must be above 0"):
            msgspec.structs.replace(USUAL, **wrong)
