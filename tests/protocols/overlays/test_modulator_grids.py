"""Grids: cropped, made coarse, smoothed, combined with static data; and water that runs off a terrain."""

import numpy as np
import pytest

from roamcast.errors import ConfigurationError, PeerError
from roamcast.events import Event, event_id
from roamcast.protocols.overlays.modulators import Outcome, compile_modulator
from roamcast.protocols.overlays.modulators.runoff import Grid, Runoff, plane


def event(grid: Grid | bytes, number: int = 1) -> Event:
    return Event(event_id(1, number), 0.0, 0.0, grid if isinstance(grid, bytes) else grid.astype("<f8").tobytes())


def cells(outcome: Outcome, columns: int) -> Grid:
    return np.frombuffer(outcome.outputs[0].payload, dtype="<f8").reshape(-1, columns)


GRID = np.arange(24, dtype=np.float64).reshape(4, 6)


def test_a_grid_is_made_coarse_at_its_edges_too() -> None:
    found = cells(compile_modulator("downsample(6, 4, max)").process(event(GRID)), 2)
    assert found.tolist() == [[21.0, 23.0]]
    found = cells(compile_modulator("downsample(6, 3, mean)").process(event(GRID)), 2)
    assert found.tolist() == [[7.0, 10.0], [19.0, 22.0]]


def test_a_stencil_weighs_neighbours() -> None:
    spike = np.zeros((5, 5))
    spike[2, 2] = 1.0
    found = cells(compile_modulator("stencil(5, 1, 0.5, 0.1, 0.025)").process(event(spike)), 5)
    assert found[1:4, 1:4].tolist() == [[0.025, 0.1, 0.025], [0.1, 0.5, 0.1], [0.025, 0.1, 0.025]]
    twice = cells(compile_modulator("stencil(5, 2, 0.5, 0.1, 0.025)").process(event(spike)), 5)
    assert twice.sum() == pytest.approx(1.0)
    laplace = cells(compile_modulator("stencil(6, 1, -4, 1, 0)").process(event(GRID)), 6)
    assert laplace[1:-1, 1:-1].tolist() == np.zeros((2, 4)).tolist()  # a plane is flat


def test_a_second_input_is_combined_cell_by_cell() -> None:
    ground = np.full((4, 6), 100.0).astype("<f8").tobytes()
    found = cells(compile_modulator("combine(add, ground)", {"ground": ground}).process(event(GRID)), 6)
    assert found.tolist() == (GRID + 100).tolist()
    assert compile_modulator("combine(add, ground)", {"ground": ground}).process(event(GRID[:2])) == Outcome(())


def test_a_measure_becomes_the_content_so_that_a_filter_can_look_at_it() -> None:
    alarm = compile_modulator("measure(max) | filter(content > 20)")
    assert alarm.process(event(GRID)).outputs[0].content == 23.0
    assert alarm.process(event(GRID - 10)).outputs == ()
    holes = np.where(GRID > 20, np.nan, GRID)
    assert compile_modulator("measure(max)").process(event(holes)).outputs[0].content == 20.0
    assert compile_modulator("measure(max)").process(event(np.full((2, 2), np.nan))).outputs == ()


def test_water_runs_into_the_valley_and_none_is_lost_or_made() -> None:
    model = Runoff(plane(30, 31))
    rain = np.full((30, 31), 60.0)
    for _ in range(20):
        model.advance(rain, seconds=60.0, steps=10)
    fallen_m = 20 * 60.0 * 60.0 / 3_600_000.0 * rain.size
    assert model.depth_m.sum() + model.left_m + model.soaked_m == pytest.approx(fallen_m, rel=1e-12)
    assert model.depth_m.min() >= 0.0
    middle, ridge = model.depth_m[15, 15], model.depth_m[15, 5]
    assert middle > 3 * ridge
    assert model.depth_m[25, 15] > model.depth_m[5, 15]  # more comes together downhill


def test_water_comes_to_rest_in_a_basin_with_a_level_surface() -> None:
    ground = np.full((9, 9), 10.0)
    ground[3:6, 3:6] = [[4.0, 3.0, 4.0], [3.0, 2.0, 3.0], [4.0, 3.0, 4.0]]
    model = Runoff(ground)
    model.depth_m[3, 3] = 20.0
    model.advance(np.zeros((9, 9)), seconds=3600.0, steps=5000)
    surface = (model.terrain_m + model.depth_m)[3:6, 3:6]
    assert np.ptp(surface) < 0.05


def test_the_run_off_modulator_computes_depths_and_takes_them_along() -> None:
    text, inputs = "runoff(20, terrain, 60, 10)", {"terrain": plane(20, 20).astype("<f8").tobytes()}
    rain = np.full((20, 20), 50.0)
    stays, first, second = (compile_modulator(text, inputs) for _ in range(3))
    for number in (1, 2):
        stays.process(event(rain, number))
        first.process(event(rain, number))
    second.restore(first.state())
    found = second.process(event(rain, 3))
    assert found == stays.process(event(rain, 3))
    assert cells(found, 20).max() > 0.001
    assert compile_modulator("runoff(20, plane, 60, 10)").process(event(rain)).outputs


@pytest.mark.parametrize("payload", [b"", bytes(7), np.full((20, 20), np.nan).tobytes()])
def test_a_payload_that_is_no_such_grid_is_dropped(payload: bytes) -> None:
    for text in ("runoff(20, plane, 60, 10)", "measure(max)", "runoff(20, plane, 60, 10) | downsample(20, 2, mean)"):
        assert compile_modulator(text).process(event(payload)).outputs == ()


@pytest.mark.parametrize(
    "text",
    [
        "runoff(20, terrain, 60, 10)",
        "runoff(20, plane, 0, 10)",
        "runoff(20, plane, 60, 65)",
        "runoff(0, plane, 60, 5)",
        "runoff(4096, plane, 60, 5)",
        "combine(divide, terrain)",
        "combine(add, odd)",
        "combine(add, empty)",
        "downsample(20, 0, mean)",
        "downsample(20, 2, count)",
        "stencil(20, 65, 1, 1, 1)",
        "stencil(20, 1, 1, 1)",
        "measure(count)",
    ],
)
def test_other_grids_are_refused(text: str) -> None:
    with pytest.raises(ConfigurationError, match="modulator: "):
        compile_modulator(text, {"odd": bytes(9), "empty": b""})


def test_depths_that_make_no_sense_are_a_peers_nonsense() -> None:
    modulator = compile_modulator("runoff(20, plane, 60, 10)")
    good = modulator.state()
    for bad in (good[:-8], good.replace(bytes(8), np.float64(-1.0).tobytes(), 1), b"\x91\xc4\x00", b""):
        with pytest.raises(PeerError):
            modulator.restore(bad)
