"""Flood Watch: its land and weather, a team on live nodes, and its page clicked through in a headless Chromium."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, expect

import roamcast
from roamcast.apps.flood_watch.demo import PLACES, RANGE_M, recorded_page
from roamcast.apps.flood_watch.network import RAIN, RAIN_S, STATION_ADDRESS, STEPS, TEAM_ADDRESSES, parameters
from roamcast.apps.flood_watch.storms import Storms
from roamcast.apps.flood_watch.team import Team
from roamcast.apps.flood_watch.terrain import AREA_M, SIZE, terrain
from roamcast.apps.flood_watch.vehicle import run_vehicle
from roamcast.apps.server import PageServer
from roamcast.protocols.overlays.modulators.runoff import Grid, Runoff

PATIENCE_S = 60.0
SEED = 7


def test_land_follows_from_its_seed_and_has_a_valley() -> None:
    ground = terrain(SEED)
    assert ground.shape == (SIZE, SIZE)
    assert np.array_equal(ground, terrain(SEED))
    assert not np.array_equal(ground, terrain(SEED + 1))
    assert ground.min() == 0.0
    assert 60 < ground.max() < 400
    bed = ground.argmin(axis=1)
    assert np.abs(np.diff(bed[5:-5])).max() < 15  # the river winds and does not jump


def test_storms_follow_from_their_seed_and_move() -> None:
    early, late = Storms(SEED).rain(10.0), Storms(SEED).rain(30.0)
    assert np.array_equal(early, Storms(SEED).rain(10.0))
    assert 5 < early.max() < 400
    assert early.min() == 0.0
    assert not np.array_equal(early, late)
    assert all(Storms(SEED).rain(minute).max() > 1 for minute in range(0, 240, 4))  # it never stays dry for long


def test_nobody_in_the_demonstration_is_ever_out_of_reach() -> None:
    """At any time the links make one network; otherwise teams would wait for data."""
    for time_s in range(0, 600, 2):
        places = {address: place(time_s) for address, place in PLACES.items()}
        assert all(0 <= x <= AREA_M and 0 <= y <= AREA_M for x, y in places.values())
        reached, waiting = set(), [STATION_ADDRESS]
        while waiting:
            here = waiting.pop()
            reached.add(here)
            near = [other for other in places if np.hypot(*np.subtract(places[here], places[other])) <= RANGE_M]
            waiting += [other for other in near if other not in reached]
        assert reached == set(PLACES)


class Field:
    """A station, a vehicle and a team on loopback, in an event loop of their own; the test says when it rains."""

    def __init__(self) -> None:
        self.url = ""
        self.team: Team
        self.station: roamcast.Node
        self.published: list[int] = []  # numbers of the grids of rain
        self._storms = Storms(SEED)
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._over = asyncio.Event()
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._live(),), daemon=True)

    def __enter__(self) -> "Field":
        self._thread.start()
        assert self._ready.wait(PATIENCE_S)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join(PATIENCE_S)

    def call(self, work: Callable[[], Awaitable[Any]]) -> Any:
        async def run() -> Any:
            return await work()

        return asyncio.run_coroutine_threadsafe(run(), self._loop).result(PATIENCE_S)

    def rain(self) -> None:
        """The next grid of rain."""

        async def publish() -> None:
            grid = self._storms.rain(len(self.published) * RAIN_S / 60)
            told = await self.station.publish(RAIN, grid.astype("<f8").tobytes())
            self.published.append(told.event.number)

        self.call(publish)

    def due(self) -> int:
        """Grids of rain that the team has had since the first."""
        return len(self.published) - self.published.index(int(self.team._first or 0))

    def depths(self) -> Grid:
        """What the team's broker should have computed by now, computed here."""
        model = Runoff(terrain(SEED))
        first = self.published.index(int(self.team._first or 0))
        for number in range(first, first + self.team._grids):
            model.advance(self._storms.rain(number * RAIN_S / 60), RAIN_S, STEPS)
        return model.depth_m

    async def _live(self) -> None:
        settings: dict[str, Any] = {"protocol": "overlays", "listen": "127.0.0.1:0", "peers": ["127.0.0.1:9"]}
        nodes = [
            roamcast.Node(address, parameters=parameters(vehicle=address == 1, one_computer=True), **settings)
            for address in (1, STATION_ADDRESS, TEAM_ADDRESSES[0])
        ]
        async with nodes[0] as vehicle, nodes[1] as self.station, nodes[2] as node:
            for each in nodes:
                each.link([other.endpoint for other in nodes if other is not each])
            self.team = Team(node, "Team Test", terrain(SEED), (30, 30, 70, 60), level_m=50.0)
            self.team.place = lambda: (2000.0, 3000.0)
            server = PageServer("127.0.0.1:0")
            self.team.serve(server)
            async with server:
                self.url = server.url
                works = [
                    asyncio.ensure_future(self.team.run()),
                    asyncio.ensure_future(run_vehicle(vehicle, lambda: (2500.0, 2500.0))),
                ]
                self._ready.set()
                await self._over.wait()
                for work in works:
                    work.cancel()
                await asyncio.gather(*works, return_exceptions=True)


@pytest.fixture(scope="module")
def field() -> Iterator[Field]:
    with Field() as running:
        yield running


def until(page: Page, condition: Callable[[], bool], meanwhile: Callable[[], None] = lambda: None) -> None:
    for _ in range(int(PATIENCE_S * 4)):
        if condition():
            return
        meanwhile()
        page.wait_for_timeout(250)
    pytest.fail("it never came about")


def note_outside(url: str, allowed: tuple[str, ...], outside: list[str]) -> None:
    if not url.startswith(allowed):
        outside.append(url)


def known(page: Page, what: str) -> Any:
    return page.evaluate(f"floodWatch.known.{what}")


def deepest(grid: Grid, box: list[int]) -> float:
    left, top, right, bottom = box
    return float(grid[top:bottom, left:right].max())


def test_a_team_sees_the_water_rise_drags_its_box_and_is_alarmed(field: Field, browser: Browser) -> None:
    mishaps: list[str] = []
    page = browser.new_page(viewport={"width": 1400, "height": 900})
    page.on("pageerror", lambda error: mishaps.append(str(error)))
    page.on("console", lambda message: mishaps.append(message.text) if message.type == "error" else None)
    page.on("request", lambda request: note_outside(request.url, (field.url, "data:"), mishaps))
    page.goto(field.url)
    page.wait_for_selector("html[data-ready=yes]")
    expect(page.locator("#team")).to_have_text(f"Team Test · node {TEAM_ADDRESSES[0]}")
    until(page, lambda: known(page, "depths") is not None, field.rain)
    for _ in range(6):
        field.rain()
    until(page, lambda: bool(known(page, "state.received") == field.due()))
    expect(page.locator("#broker")).to_have_text("vehicle 1")
    assert known(page, "map.vehicles")["1"]["x_m"] == 2500.0

    # The number on the page is the depth that the model says, to the millimetre, and so is every cell of the map.
    expected = field.depths()
    expect(page.locator("#deepest")).to_have_text(f"{deepest(expected, [30, 30, 70, 60]):.2f} m")
    shown = np.array(known(page, "depths.mm")).reshape(30, 40)
    assert np.abs(shown - expected[30:60, 30:70] * 1000).max() <= 0.5
    state = known(page, "state")
    assert state["received_bytes"] == state["received"] * 40 * 30 * 8
    assert state["taken_bytes"] == state["grids"] * 80_000
    expect(page.locator("#saved")).to_have_text("88 %")
    assert known(page, "state.latency_ms")[-1] > 0
    expect(page.locator("#status")).to_have_text("Calm")

    # The box is dragged by half its width. The broker's model goes on, so the depths are those of all the rain.
    frame = page.locator("#map").bounding_box()
    assert frame is not None
    cell = frame["width"] / SIZE
    page.mouse.move(frame["x"] + 50 * cell, frame["y"] + 45 * cell)
    page.mouse.down()
    page.mouse.move(frame["x"] + 60 * cell, frame["y"] + 65 * cell, steps=5)
    page.mouse.up()
    until(page, lambda: bool(known(page, "state.box") == [40, 50, 80, 80]))
    until(page, lambda: bool(known(page, "depths.box") == [40, 50, 80, 80]), field.rain)
    until(page, lambda: bool(known(page, "state.grids") == field.due()))
    page.wait_for_timeout(100)
    expect(page.locator("#deepest")).to_have_text(f"{deepest(field.depths(), [40, 50, 80, 80]):.2f} m")

    # A level below what is there makes an alarm with the next grid.
    page.locator("#level").fill("0.05")
    page.get_by_role("button", name="Set").click()
    until(page, lambda: page.locator("#status").inner_text() == "Alarm", field.rain)
    expect(page.locator("#alarms li.now")).to_have_count(1)
    page.locator("#level").fill("0.001")
    page.get_by_role("button", name="Set").click()
    assert known(page, "state.level_m") == 0.05  # the browser itself refuses what is below the minimum

    # The keyboard moves the box as well.
    page.locator("#map").press("ArrowLeft")
    until(page, lambda: bool(known(page, "state.box") == [39, 50, 79, 80]))
    page.close()
    assert mishaps == []


def test_the_page_fits_a_phone_in_both_themes(field: Field, browser: Browser) -> None:
    for scheme in ("light", "dark"):
        page = browser.new_page(viewport={"width": 400, "height": 800}, color_scheme=scheme)
        page.goto(field.url)
        page.wait_for_selector("html[data-ready=yes]")
        assert page.evaluate("document.documentElement.scrollWidth") <= 400
        page.close()


def test_what_makes_no_sense_is_refused_by_the_node(field: Field, browser: Browser) -> None:
    page = browser.new_page()
    page.goto(field.url)
    page.wait_for_selector("html[data-ready=yes]")
    post = """([path, body]) => fetch(path, {method: "POST", headers: {"Content-Type": "application/json"},
        body: JSON.stringify(body)}).then(async (answer) => [answer.status, (await answer.json()).error])"""
    for path, body in (
        ("/box", {"box": [0, 0, 101, 5]}),
        ("/box", {"box": [5, 5, 5, 9]}),
        ("/box", {"box": [1, 2, 3]}),
        ("/box", {}),
        ("/level", {"level_m": 0}),
        ("/level", {"level_m": "deep"}),
    ):
        status, error = page.evaluate(post, [path, body])
        assert status == 400
        assert error
    page.close()


def test_a_recording_plays_without_a_node(field: Field, browser: Browser, tmp_path: Path) -> None:
    async def snapshot() -> list[dict[str, Any]]:
        return field.team.snapshot()

    messages = field.call(snapshot)
    path = tmp_path / "flood.html"
    later = [(5.0, message | {"name": "later"}) for message in messages if message["kind"] == "state"]
    path.write_text(recorded_page([(0.0, message) for message in messages] + later), encoding="utf-8")
    page = browser.new_page(viewport={"width": 1000, "height": 800})
    outside: list[str] = []
    page.on("request", lambda request: note_outside(request.url, ("file:", "data:"), outside))
    page.goto(path.as_uri())
    page.wait_for_selector("html[data-ready=yes]")
    expect(page.locator("#team")).to_contain_text("Team Test")
    page.locator("#seek").fill("5")
    expect(page.locator("#team")).to_contain_text("later")
    expect(page.get_by_role("button", name="Play")).to_be_visible()
    page.close()
    assert outside == []
