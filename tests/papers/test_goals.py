"""Waymark's page: goals are judged by pairs of runs in the same network."""

from pathlib import Path

import pytest

from roamcast.papers.goals import KEPT, write_goals

COLUMNS = (
    "run_id,place,point,protocol,seed,source,nodes,rate_per_s,shadowing_db,loss,bias_m,scenario_mobility_model,"
    "scenario_radio_model,delivery_ratio,delivery_ratio_reachable,within_100ms,latency_ms_p50,"
    "airtime_per_delivery_ms,maintenance_ms_per_node_s"
)


def run(place: int, protocol: str, seed: int, settings: str, delivery: float, airtime_ms: float) -> str:
    return f"{place}{protocol}{seed},{place},0,{protocol},{seed},{settings},{delivery},1,{delivery},2,{airtime_ms},0.1"


@pytest.fixture
def page(tmp_path: Path) -> str:
    usual, hidden = "exact,50,0.5,0,0,0,waypoint,802.11b", "none,50,0.5,0,0,0,waypoint,802.11b"
    shadowed = "exact,50,0.5,6,0,0,waypoint,802.11b"
    rows = [COLUMNS]
    for seed in (1, 2, 3):
        noise = seed / 1000
        rows += [run(0, "flooding", seed, usual, 0.9, 8.0), run(0, "waymark", seed, usual, 0.95 + noise, 1.5 + noise)]
        rows += [run(1, "flooding", seed, hidden, 0.9, 8.0), run(1, "waymark", seed, hidden, 0.8 + noise, 6 + noise)]
        rows += [run(2, "flooding", seed, shadowed, 0.9, 8.0), run(2, "waymark", seed, shadowed, 0.9, 4.7 + noise)]
    kept = tmp_path / KEPT
    kept.mkdir(parents=True)
    (kept / "runs.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    (kept / "command.txt").write_text("roamcast campaign run\n", encoding="utf-8")
    return write_goals(tmp_path).read_text(encoding="utf-8")


def verdict(page: str, place: str, measure: str) -> str:
    (line,) = (line for line in page.splitlines() if line.startswith(f"| {place} | {measure} |"))
    return line.split(" | ")[-1].strip(" |*")


def test_each_goal_has_its_verdict(page: str) -> None:
    assert verdict(page, "base point", "delivery") == "holds"
    assert verdict(page, "base point", "airtime per delivery") == "holds"
    assert verdict(page, "no positions", "delivery") == "fails"
    assert verdict(page, "no positions", "airtime per delivery") == "fails"
    assert verdict(page, "no positions", "within 100 ms") == "fails"


def test_harder_worlds_have_easier_goals(page: str) -> None:
    assert verdict(page, "shadowing db 6", "airtime per delivery") == "holds"
    assert "| shadowing db 6 | within 100 ms" not in page
