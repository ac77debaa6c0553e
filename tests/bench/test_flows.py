"""AODV end to end stays as close to ns-3's as it is: averaged over the references and over seeds."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from roamcast.bench.flows import (
    Flow,
    Reference,
    compare,
    draw,
    is_reference,
    measured_by_ns3,
    read_reference,
    reference_text,
)
from roamcast.errors import ConfigurationError
from roamcast.world.files import ns2

REFERENCES = sorted((Path(__file__).parent.parent / "reference").glob("aodv-*.json"))


@pytest.fixture(scope="module")
def comparisons() -> list[dict[str, Any]]:
    return [compare(read_reference(path), seeds=2) for path in REFERENCES]


@pytest.mark.parametrize(("figure", "allowed"), [("delivery", 0.03), ("delay_ms_mean", 0.15), ("requests", 0.25)])
def test_aodv_agrees_with_ns3(comparisons: list[dict[str, Any]], figure: str, allowed: float) -> None:
    differences = [comparison["difference"][figure] for comparison in comparisons]
    assert len(differences) == 3
    assert abs(np.mean(differences)) <= allowed


def test_packets_follow_from_flows() -> None:
    reference = Reference(200.0, (9.0, 9.0), 2.0, 1.0, 64, (Flow(0, 1, 0.5, 1.0), Flow(1, 0, 0.0, 0.75)), "")
    assert reference.packets() == [(0.0, 1, 0), (0.5, 0, 1), (0.75, 1, 0), (1.5, 0, 1), (1.5, 1, 0)]


def test_what_is_drawn_is_a_file_that_ns2_and_we_read(tmp_path: Path) -> None:
    reference = draw(1, 5.0)
    recording = ns2.read(tmp_path, reference.movements)
    assert (len(recording.paths), recording.area_m, recording.duration_s) == (50, (1000.0, 1000.0), 100.0)
    assert reference.movements == read_reference(REFERENCES[0]).movements
    (tmp_path / "aodv.json").write_text(reference_text(reference))
    assert read_reference(tmp_path / "aodv.json") == reference


def test_ns3_gets_flows_and_movements_and_its_answer_is_kept(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_text(
        '#!/bin/sh\ngrep -c packet "$1" >&2\n'
        'echo "{\\"seed\\": $3, \\"packets\\": $(grep -c packet "$1"), \\"orders\\": $(grep -c setdest "$2")}"\n'
    )
    program.chmod(0o755)
    reference = draw(1, 5.0)
    answers = measured_by_ns3(reference, program, 2).ns3
    orders = reference.movements.count("setdest")
    packets = len(reference.packets())
    assert answers == tuple({"seed": seed, "packets": packets, "orders": orders} for seed in (1, 2))


def test_files_are_told_from_layouts_and_refused(tmp_path: Path) -> None:
    assert all(is_reference(path) for path in REFERENCES)
    assert not is_reference(REFERENCES[0].with_name("layout-1.json"))
    (tmp_path / "broken.json").write_text('{"flows": []}')
    with pytest.raises(ConfigurationError, match=r"broken.json: is not a reference of AODV"):
        read_reference(tmp_path / "broken.json")
    assert not is_reference(tmp_path / "absent.json")
