"""The page in a headless Chromium: clicked, pressed and dragged as a user would, and asked what it knows."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from roamcast.protocols.api import NOBODY
from roamcast.report.replay.data import replay_data
from roamcast.report.replay.page import replay_page
from roamcast.report.replay.recordings import RecordedRun, Recording
from roamcast.trace.schema import Record
from roamcast.world.contacts import scenario_contacts
from roamcast.world.mobility import scenario_movements
from roamcast.world.radio.models.ideal import Ideal
from roamcast.world.scenario import Faults, Run, Scenario
from roamcast.world.simulator import simulate

Opened = Callable[[Recording], Page]


@pytest.fixture
def opened(browser: Browser, tmp_path: Path) -> Iterator[Opened]:
    """Opens a recording from a file, paused at the beginning; nothing may go wrong or over the network meanwhile."""
    mishaps: list[str] = []
    pages: list[Page] = []

    def requested(url: str) -> None:
        if not url.startswith(("file:", "data:", "blob:")):
            mishaps.append(f"request: {url}")

    def open_page(recording: Recording, motion: str = "reduce") -> Page:
        path = tmp_path / f"page-{len(pages)}.html"
        path.write_text(replay_page(replay_data(recording).packed), encoding="utf-8")
        page = browser.new_page(viewport={"width": 1200, "height": 800}, reduced_motion=motion)  # type: ignore[arg-type]
        pages.append(page)
        page.on("request", lambda request: requested(request.url))
        page.on("pageerror", lambda error: mishaps.append(str(error)))
        page.on("console", lambda message: mishaps.append(message.text) if message.type == "error" else None)
        page.goto(path.as_uri())
        page.wait_for_selector("html[data-ready]")
        return page

    yield open_page
    for page in pages:
        page.close()
    assert mishaps == []


def of(run: Run, raw_frames: bool = False) -> Recording:
    known = RecordedRun("run", run.protocol, run.seed, run=run)
    return Recording(known, simulate(run, raw_frames=raw_frames).recorder.table(), [known])


def clock_s(page: Page) -> float:
    return float(page.locator("#clock").inner_text().split()[0])


def until(page: Page, condition: str) -> None:
    """Waits for it. (Playwright's own way evaluates text inside the page, which the page forbids.)"""
    for _ in range(500):
        if page.evaluate(condition):
            return
        page.wait_for_timeout(10)
    pytest.fail(f"never: {condition}")


def click_node(page: Page, node: int) -> None:
    place = page.evaluate(f"replay.place({node})")
    page.locator("#network").click(position=place)


def picture(page: Page) -> str:
    """The network canvas as it is drawn now."""
    drawn: str = page.evaluate("(replay.draw(), replay.view.canvas.toDataURL())")
    return drawn


def test_it_plays_pauses_and_obeys_the_slider(opened: Opened, line: Recording) -> None:
    page = opened(line)
    expect(page.locator("#title")).to_have_text("flooding, seed 1")
    assert clock_s(page) == 0
    page.get_by_role("button", name="Play").click()
    until(page, "replay.t > 0.2")
    page.get_by_role("button", name="Pause").click()
    paused_at = page.evaluate("replay.t")
    page.wait_for_timeout(80)
    assert page.evaluate("replay.t") == paused_at
    page.locator("#slider").fill("500000")
    until(page, "replay.t === 6")
    expect(page.locator("#clock")).to_have_text("6.000 s")
    page.locator("#speed").select_option("10")
    page.get_by_role("button", name="Play").click()
    until(page, "replay.t >= 12 && !replay.playing")  # stops at the end


def test_it_starts_playing_unless_motion_is_unwelcome(opened: Any, line: Recording) -> None:
    assert opened(line, motion="no-preference").evaluate("replay.playing") is True
    assert opened(line, motion="reduce").evaluate("replay.playing") is False


def test_keys(opened: Opened, line: Recording) -> None:
    page = opened(line)
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Shift+ArrowRight")
    assert page.evaluate("replay.t") == pytest.approx(11)
    page.keyboard.press("ArrowLeft")
    assert page.evaluate("replay.t") == pytest.approx(10)
    page.keyboard.press("ArrowDown")
    until(page, "document.getElementById('speed').value === '0.5'")
    page.keyboard.press("Home")
    page.keyboard.press("Space")
    assert page.evaluate("replay.playing") is True
    page.keyboard.press("Space")
    assert page.evaluate("replay.playing") is False
    page.keyboard.press("n")
    expect(page.locator("#story h2")).to_contain_text("Event")
    page.keyboard.press("Escape")
    assert page.evaluate("replay.selection") is None
    page.keyboard.press("t")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.keyboard.press("?")
    expect(page.locator("#keys")).to_be_visible()


def test_a_click_on_a_node_tells_its_story(opened: Opened, chain: Recording) -> None:
    page = opened(chain)
    page.evaluate("replay.seek(1.55)")
    until(page, "!replay.stale")
    click_node(page, 2)
    story = page.locator("#story")
    expect(story.locator("h2")).to_have_text("Node 2")
    expect(story).to_contain_text("parentnode 1 · 0 · 2")
    expect(story).to_contain_text("neighbours1")
    expect(story).to_contain_text("got 0#1 after 200.0 ms")
    expect(story.locator(".row.later")).to_contain_text(["return", "crash", "published 2#1 c"])
    story.get_by_role("button", name="got 0#1").click()
    expect(story.locator("h2")).to_have_text("Event 0#1")
    page.locator("#network").click(position={"x": 5, "y": 5})  # beside everything
    expect(story).to_contain_text("Click a node")


def test_a_click_on_an_event_tells_its_causal_chain(opened: Opened, chain: Recording) -> None:
    page = opened(chain)
    page.evaluate("replay.seek(4)")
    page.get_by_role("tab", name="Events").click()
    rows = page.locator("#events .row")
    expect(rows).to_have_count(4)
    rows.nth(2).click()  # newest first: the second of the chain
    story = page.locator("#story")
    expect(story.locator("h2")).to_have_text("Event 1#1")
    expect(story.locator(".chain .row")).to_contain_text(["0#1 a", "1#1 </script><img", "2#1 c"])
    expect(story.locator(".chain .chain .chain .row")).to_have_count(1)
    story.locator(".chain .row").first.click()
    expect(story.locator("h2")).to_have_text("Event 0#1")
    expect(story.locator(".arrival")).to_have_count(2)
    page.keyboard.press("End")
    page.get_by_role("button", name="Follow in slow motion").click()
    assert page.evaluate("replay.playing && replay.speed < 0.2 && replay.t < 1.1") is True


def test_who_never_got_an_event_is_named(opened: Opened, chain: Recording) -> None:
    page = opened(chain)
    page.evaluate("replay.select({kind: 'event', event: 3})")
    expect(page.locator("#story")).to_contain_text("Never got it (1)")
    expect(page.locator("#story .tags")).to_have_text("2 (no path)")


def test_texts_of_a_trace_stay_text(opened: Opened, chain: Recording) -> None:
    page = opened(chain)
    page.evaluate("replay.select({kind: 'event', event: 1})")
    expect(page.locator("#story")).to_contain_text("onerror")
    assert page.locator("img").count() == 0
    assert "owned" not in page.title()


def test_layers_can_be_switched(opened: Opened, chain: Recording) -> None:
    page = opened(chain)
    page.evaluate("replay.seek(1.15)")
    shown = picture(page)
    for layer in ("links", "aspect:parent", "deliveries", "publishers", "names"):
        box = page.locator(f'[data-layer="{layer}"]')
        box.uncheck()
        assert picture(page) != shown, layer
        box.check()
        assert picture(page) == shown, layer


def test_the_map_zooms_and_moves(opened: Opened, line: Recording) -> None:
    page = opened(line)
    page.evaluate("replay.draw()")
    before = page.evaluate("replay.place(3)")
    page.locator("#network").hover(position=before)
    expect(page.locator("#tip")).to_contain_text("node 3")
    page.mouse.wheel(0, -300)
    until(page, "replay.view.zoom > 1.5 && !replay.stale")
    assert page.evaluate("replay.place(3)") == pytest.approx(before, abs=0.5)  # the place under the pointer stays
    page.mouse.down()
    page.mouse.move(*_shifted(page, before, -60), steps=3)
    page.mouse.up()
    until(page, "!replay.stale")
    assert page.evaluate("replay.place(3).x") == pytest.approx(before["x"] - 60, abs=1)
    assert page.evaluate("replay.selection") is None  # a drag chooses nothing
    page.keyboard.press("0")
    until(page, "replay.view.zoom === 1")


def _shifted(page: Page, place: dict[str, float], right_px: float) -> tuple[float, float]:
    box = page.locator("#network").bounding_box()
    assert box is not None
    return box["x"] + place["x"] + right_px, box["y"] + place["y"]


def test_raw_frames_show_the_route_hop_by_hop(opened: Opened, line: Recording) -> None:
    page = opened(line)
    hops = page.evaluate("replay.scene.traffic.journey(0).hops.map((hop) => [hop.from, hop.to, hop.useful])")
    publisher = page.evaluate("replay.recording.event.node[0]")
    away = [[node, node + 1, True] for node in range(publisher, 3)]
    back = [[node, node - 1, True] for node in range(publisher, 0, -1)]
    assert sorted(hops) == sorted(away + back)


def test_without_raw_frames_an_arc_is_no_route(opened: Opened, chain: Recording) -> None:
    page = opened(chain)
    journey = page.evaluate("replay.scene.traffic.journey(0)")
    assert not journey["isRoute"]
    assert [[hop["from"], hop["to"]] for hop in journey["hops"]] == [[0, 1], [0, 2]]


def test_every_instant_agrees_with_the_simulator_however_one_gets_there(opened: Opened) -> None:
    run = Run(
        scenario=Scenario(
            nodes=30,
            duration_s=40.0,
            radio=Ideal(),
            faults=Faults(crash_share=0.1, return_share=0.2, join_share=0.1, return_after_s=8.0),
        )
    )
    recording = of(run)
    page = opened(recording)
    truth = scenario_movements(run.scenario, run.seed)
    assert truth is not None
    plan = scenario_contacts(run.scenario, truth)
    faults = [row for row in recording.trace.to_pylist() if row["kind"] == "fault"]
    for t_s in (30.0, 3.0, 39.5, 12.25, 12.5, 0.0):
        seen = page.evaluate(
            """(t) => {
                const { moment, recording } = replay;
                moment.seek(t);
                const pairs = recording.pairA.map((a, pair) => [a, recording.pairB[pair], moment.met[pair]]);
                return { up: [...moment.up], met: pairs.filter((pair) => pair[2]).map(([a, b]) => [a, b]),
                         asked: pairs.every(([a, b, met]) => recording.inContact(a, b, t) === Boolean(met)),
                         places: [...recording.placesAt(t)] };
            }""",
            t_s,
        )
        up = [not any(fault["node"] == node and fault["detail"] == "join" for fault in faults) for node in range(30)]
        for fault in faults:
            if fault["t"] <= t_s:
                up[fault["node"]] = fault["detail"] in ("join", "return")
        assert [bool(each) for each in seen["up"]] == up
        assert sorted(map(tuple, seen["met"])) == sorted(zip(*(ends.tolist() for ends in plan.at(t_s)), strict=True))
        assert seen["asked"]
        assert seen["places"] == pytest.approx(truth.positions(t_s).flatten().tolist(), abs=0.01)


def test_structure_is_told_apart_without_knowing_the_protocol(opened: Opened, record: Any) -> None:
    def row(t: float, node: int, aspect: str, peer: int = NOBODY, value: float = 0.0, detail: str = "") -> Record:
        known = None if peer == NOBODY else peer
        return Record(t, "structure", node, known, value=value, category=aspect, detail=detail)

    rows = [
        row(0.0, 0, "parent", 1, 1.0, "5"), row(1.0, 0, "parent", 2, 2.0, "5"), row(2.0, 0, "parent", detail="lost"),
        row(0.0, 0, "link", 1, 1.0), row(0.5, 0, "link", 2, 1.0), row(1.5, 0, "link", 1, 0.0),
        row(0.0, 0, "forwarding", 2, 1.0), row(1.0, 0, "forwarding", 2, 0.0),
        row(0.0, 0, "load", value=0.1), row(0.5, 1, "load", value=0.5), row(1.0, 2, "load", value=0.9),
        row(0.0, 1, "cell", value=100.0, detail="0 0"), row(0.0, 2, "cell", value=100.0, detail="-1 2"),
        row(0.2, 1, "home", 2), row(0.8, 1, "home"),
    ]  # fmt: skip
    page = opened(record([*rows, Record(3.0, "end", count=3)]))
    kinds = ("isLink", "isSet", "isGroup", "isScale", "isGround")
    told = page.evaluate(f"replay.aspects.map((a) => [a.name, {json.dumps(kinds)}.filter((kind) => a[kind])])")
    assert dict(told) == {
        "cell": ["isGround"],
        "forwarding": ["isSet", "isGroup"],
        "home": ["isLink"],
        "link": ["isLink", "isSet"],
        "load": ["isScale"],
        "parent": ["isLink"],
    }

    def peers(t: float, aspect: str, node: int) -> list[int]:
        script = """([t, name, node]) => {
            replay.moment.seek(t);
            const aspect = replay.aspects.find((each) => each.name === name);
            return replay.moment.rowsAt(aspect, node).map((row) => replay.recording.structure.peer[row]);
        }"""
        found: list[int] = page.evaluate(script, [t, aspect, node])
        return found

    assert [peers(t, "parent", 0) for t in (0.9, 1.9, 2.9)] == [[1], [2], [-1]]
    assert [peers(t, "link", 0) for t in (0.2, 1.0, 2.0)] == [[1], [1, 2], [2]]
    assert [peers(t, "forwarding", 0) for t in (0.5, 1.5)] == [[2], []]
    assert [peers(t, "home", 1) for t in (0.1, 0.5, 1.0)] == [[], [2], []]


def test_a_crash_makes_a_node_forget_what_it_was(opened: Opened, chain: Recording) -> None:
    page = opened(chain)
    rows = "replay.moment.rowsAt(replay.aspects[0], 2).length"
    assert page.evaluate(f"(replay.moment.seek(1.9), [{rows}, replay.moment.up[2]])") == [1, 1]
    assert page.evaluate(f"(replay.moment.seek(2.1), [{rows}, replay.moment.up[2]])") == [0, 0]
    assert page.evaluate(f"(replay.moment.seek(3.1), [{rows}, replay.moment.up[2]])") == [0, 1]


def test_places_that_are_invented_are_called_so(opened: Opened, record: Any) -> None:
    page = opened(record([Record(0.0, "contact", 0, 1, value=1.0), Record(9.0, "end", count=4)]))
    expect(page.locator("#subtitle")).to_contain_text("places invented")
    page.get_by_role("tab", name="Events").click()
    expect(page.locator("#events")).to_contain_text("No event was published")


def test_250_nodes_are_drawn_well_within_a_frame(opened: Opened) -> None:
    scenario = Scenario(nodes=250, area_m=(2000.0, 2000.0), duration_s=12.0)
    page = opened(of(Run(scenario=scenario, protocol="gossip"), raw_frames=True))
    draw_ms = page.evaluate(
        """() => {
            const spent = [];
            for (let step = 0; step < 40; step += 1) {
                const began = performance.now();
                replay.seek(5.5 + step / 60);
                replay.draw();
                spent.push(performance.now() - began);
            }
            return spent.sort((one, other) => one - other)[4];  // what it takes when nobody else wants the core
        }"""
    )
    assert draw_ms < 12  # of the 16.7 that there are at 60 frames a second


def test_narrow_screens_get_everything_below_each_other(opened: Opened, line: Recording) -> None:
    page = opened(line)
    page.set_viewport_size({"width": 400, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") == 400
    network, panel = page.locator("#stage").bounding_box(), page.locator("#panel").bounding_box()
    assert network is not None
    assert panel is not None
    assert panel["y"] >= network["y"] + network["height"]
    assert network["height"] > 250
