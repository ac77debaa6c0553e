"""Scenarios beyond what was validated get a warning each."""

from roamcast.advise.validity import warnings
from roamcast.world.scenario import Scenario
from roamcast.world.scenario_file import Tables, run_from_tables


def warned(**scenario: object) -> str:
    tables: Tables = {"scenario": scenario}
    return " ".join(warnings(run_from_tables(tables).scenario))


def test_the_default_scenario_is_within_what_was_validated() -> None:
    assert warnings(Scenario()) == ()


def test_what_no_measurement_backs_is_named() -> None:
    assert "LoRa" in warned(radio={"model": "lora"})
    assert "ideal" in warned(radio={"model": "ideal"})
    assert "on discs only" in warned(radio={"model": "802.11b", "signal": {"model": "two-ray"}})
    assert "8 dB" in warned(radio={"model": "802.11g", "signal": {"model": "log-distance", "shadowing_db": 8}})
    assert "Fading" in warned(radio={"model": "802.11g", "signal": {"model": "log-distance", "fading": "rayleigh"}})
    assert "here there are 300" in warned(nodes=300)
    assert "up to 30 m/s" in warned(mobility={"speed_max_mps": 30})
    assert warned(mobility={"model": "static", "speed_max_mps": 30}) == ""
