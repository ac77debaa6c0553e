"""The price of security in the simulator: bytes per frame, per event and per record, and time."""

from typing import Any

import msgspec
import pytest

from roamcast.events import Event, event_id
from roamcast.live.identity import SIGNATURE_BYTES
from roamcast.live.sealing import SEAL_BYTES
from roamcast.world import scenario as scenario_module
from roamcast.world.scenario import Run, Scenario, Security
from roamcast.world.simulator import simulate


def bytes_and_frames(protocol: str, **security: Any) -> tuple[int, int, float]:
    """Bytes and frames that were sent, and the mean latency."""
    scenario = Scenario(nodes=12, area_m=(400.0, 400.0), duration_s=40.0, security=Security(**security))
    rows = simulate(Run(scenario=scenario, protocol=protocol)).recorder.table().to_pylist()
    load = [row for row in rows if row["kind"] == "load"]
    latencies = [row["value"] for row in rows if row["kind"] == "delivered"]
    return sum(row["bytes"] for row in load), sum(row["count"] for row in load), sum(latencies) / len(latencies)


def test_the_simulator_and_live_nodes_agree_on_sizes() -> None:
    assert (scenario_module.SEAL_BYTES, scenario_module.SIGNATURE_BYTES) == (SEAL_BYTES, SIGNATURE_BYTES)
    assert Security(protection="signed").frame_bytes == SEAL_BYTES + SIGNATURE_BYTES
    event = Event(event_id(1, 1), 0.5, 7)
    signed = msgspec.structs.replace(event, signature=bytes(SIGNATURE_BYTES))
    assert len(msgspec.msgpack.encode(signed)) == len(msgspec.msgpack.encode(event)) + SIGNATURE_BYTES + 1


def test_each_frame_and_each_event_pays() -> None:
    plain, frames, _ = bytes_and_frames("flooding")
    sealed, sealed_frames, _ = bytes_and_frames("flooding", protection="sealed")
    assert sealed / sealed_frames == pytest.approx(plain / frames + SEAL_BYTES)
    signed, signed_frames, _ = bytes_and_frames("flooding", protection="signed")
    assert signed / signed_frames == pytest.approx(plain / frames + SEAL_BYTES + 2 * SIGNATURE_BYTES + 1)


def test_records_pay_too() -> None:
    plain, frames, _ = bytes_and_frames("waymark", protection="sealed")
    signed, signed_frames, _ = bytes_and_frames("waymark", protection="signed")
    assert signed / signed_frames > plain / frames + SIGNATURE_BYTES


def test_signatures_take_time() -> None:
    *_, quick_s = bytes_and_frames("flooding", protection="signed")
    *_, slow_s = bytes_and_frames("flooding", protection="signed", signature_s=0.02)
    assert slow_s > quick_s + 0.02
    with pytest.raises(ValueError, match="signature_s"):
        Security(signature_s=-1.0)
