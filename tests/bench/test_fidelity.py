"""The 802.11 radios stay as close to ns-3 as they are: averaged over the reference layouts."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from roamcast.bench.fidelity import compare, read_layout
from roamcast.errors import ConfigurationError

REFERENCE = Path(__file__).parent.parent / "reference"
LAYOUTS = sorted(REFERENCE.glob("layout-*.json"))


@pytest.fixture(scope="module")
def comparisons() -> list[dict[str, Any]]:
    return [compare(read_layout(path), seeds=1) for path in LAYOUTS]


def unicasts(comparisons: list[dict[str, Any]], *rates: float) -> list[dict[str, float]]:
    """How far we are off at these numbers of packets per second and node."""
    rows = [row for comparison in comparisons for row in comparison.get("unicast", [])]
    return [row["difference"] for row in rows if row["packets_per_s_per_node"] in rates]


@pytest.mark.parametrize(
    ("figure", "allowed"),
    [("reach", 0.02), ("hops_mean", 0.02), ("delay_ms_mean", 0.05), ("loss", 0.10), ("transmissions", 0.02)],
)
def test_floods_agree_with_ns3(comparisons: list[dict[str, Any]], figure: str, allowed: float) -> None:
    differences = [comparison["flood"]["difference"][figure] for comparison in comparisons]
    assert len(differences) == 3
    assert abs(np.mean(differences)) <= allowed


@pytest.mark.parametrize(("figure", "allowed"), [("data_frames_per_packet", 0.02), ("delay_ms_mean", 0.10)])
def test_unicasts_below_saturation_agree_with_ns3(
    comparisons: list[dict[str, Any]], figure: str, allowed: float
) -> None:
    differences = [difference[figure] for difference in unicasts(comparisons, 20, 40)]
    assert len(differences) == 4
    assert abs(np.mean(differences)) <= allowed


@pytest.mark.parametrize(("figure", "allowed"), [("data_frames_per_packet", 0.03), ("delay_ms_mean", 0.07)])
def test_unicasts_near_saturation_agree_with_ns3(
    comparisons: list[dict[str, Any]], figure: str, allowed: float
) -> None:
    """60 packets/s per node; with EIFS after broken frames the delay would be up to half as long again."""
    differences = [difference[figure] for difference in unicasts(comparisons, 60)]
    assert len(differences) == 2
    assert abs(np.mean(differences)) <= allowed


@pytest.fixture(scope="module")
def shadowed() -> list[dict[str, Any]]:
    """802.11g with log-distance path loss and shadowing, both simulators with the same links."""
    return [compare(read_layout(path), seeds=1) for path in sorted(REFERENCE.glob("g-layout-*.json"))]


@pytest.mark.parametrize(("figure", "allowed"), [("reach", 0.03), ("transmissions", 0.03), ("delay_ms_mean", 0.07)])
def test_floods_over_shadowed_links_agree_with_ns3(shadowed: list[dict[str, Any]], figure: str, allowed: float) -> None:
    differences = [comparison["flood"]["difference"][figure] for comparison in shadowed]
    assert len(differences) == 2
    assert abs(np.mean(differences)) <= allowed


@pytest.mark.parametrize("rate", [50, 120])
@pytest.mark.parametrize(("figure", "allowed"), [("data_frames_per_packet", 0.03), ("delay_ms_mean", 0.07)])
def test_unicasts_over_shadowed_links_agree_with_ns3(
    shadowed: list[dict[str, Any]], rate: int, figure: str, allowed: float
) -> None:
    """120 packets/s per node are close to saturation."""
    differences = [difference[figure] for difference in unicasts(shadowed, rate)]
    assert len(differences) == 2
    assert abs(np.mean(differences)) <= allowed


def test_a_file_that_is_no_layout_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "layout.json"
    path.write_text('{"positions_m": []}')
    with pytest.raises(ConfigurationError, match="'range_m' is missing"):
        read_layout(path)
