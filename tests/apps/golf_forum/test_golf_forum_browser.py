"""The forum in a headless Chromium: register, publish, be notified; and the map of a tournament."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from roamcast.apps.golf_forum.course import Course
from roamcast.apps.golf_forum.demo import DemoOutcome, GolfForumDemo
from roamcast.apps.golf_forum.pages import serving
from roamcast.apps.golf_forum.participant import Device, Participant
from roamcast.apps.golf_forum.simulated import simulated_story
from roamcast.apps.golf_forum.story import recorded_page

PARAMETERS = {"client_refresh_s": 0.5, "refresh_interval_s": 1.0, "search_pause_s": 0.5}
RESULT = {"holescore": "4", "totalscore": "52", "currentrank": "2"}

Forum = Callable[..., list[tuple[Participant, str]]]


@pytest.fixture
def forum(beside: Any) -> Forum:
    """Starts devices that hear each other; each has a page of its own, as on a machine of its own."""

    def start(*devices: Device) -> list[tuple[Participant, str]]:
        made = [Participant(each, parameters=PARAMETERS, listen="127.0.0.1:0", discover=False) for each in devices]
        urls = [beside.enter(serving(participant, "127.0.0.1:0")).url for participant in made]

        async def link() -> None:
            for one in made:
                one.node.link([other.node.endpoint for other in made if other is not one])

        beside.run(link())
        return list(zip(made, urls, strict=True))

    return start


def publish(page: Page, player: str, **fields: str) -> None:
    report = page.locator("#report")
    report.get_by_label("Player").select_option(player)
    for name, value in (RESULT | fields).items():
        report.locator(f"input[name={name}]").fill(value)
    report.get_by_role("button", name="Publish").click()
    expect(report.locator(".done")).to_contain_text(f"Published: {player}.")


def until(page: Page, holds: Callable[[], bool]) -> None:
    """Waits for what the page and its node agree on; an event may still be on its way."""
    for _ in range(600):
        if holds():
            return
        page.wait_for_timeout(100)
    pytest.fail("the page and its node never agree")


def publish_until_noticed(source: Page, reader: Page, player: str, **fields: str) -> None:
    """A subscription takes a moment to become known."""
    for _ in range(100):
        publish(source, player, **fields)
        reader.wait_for_timeout(300)
        if reader.locator(".notice").count():
            return
    pytest.fail("no notification")


@pytest.mark.parametrize(
    "device", [Device("Ann", 2), Device("Ben", 2, broker=False), Device("Cleo", 2, broker=False, constrained=True)]
)
def test_register_publish_notify(opened: Any, forum: Forum, device: Device) -> None:
    (_, official_url), (reader, reader_url) = forum(Device("Hole 15", 1, hole=15), device)
    page, official = opened(reader_url), opened(official_url)
    expect(page.locator("#name")).to_have_text(device.name)
    expect(official.locator("#role")).to_have_text("official announcer, hole 15")
    expect(official.locator("#report input[name=hole]")).to_have_value("15")  # an official's is fixed

    page.locator("#follow").get_by_text("woods", exact=True).click()
    page.locator("#follow").get_by_text("els", exact=True).click()
    page.get_by_label("Hole, from", exact=True).fill("10")
    page.get_by_label("Rank, to").fill("3")
    xpath = "/PGMFORUM[(player = 'els' or player = 'woods') and hole >= 10 and currentrank <= 3]"
    expect(page.locator("#xpath")).to_have_text(xpath)
    page.get_by_role("button", name="Register").click()
    expect(page.locator(".subscription code")).to_have_text(xpath)

    if not device.broker:  # it says who serves it
        expect(page.locator("#facts")).to_contain_text("node 1")
    publish(official, "faldo")
    publish_until_noticed(official, page, "woods")
    notice = page.locator(".notice").first
    expect(notice).to_contain_text("Hole 15: 4 strokes, 52 in total, rank 2")
    expect(notice.locator(".badge")).to_have_text("official")
    reasons = [re.sub(r"\s+", " ", text) for text in notice.locator(".why > div").all_inner_texts()]
    assert reasons == [
        "Subscription 1:",
        "(player='els' or player='woods') is met by woods",
        "hole>=10 is met by 15",
        "currentrank<=3 is met by 2",
    ]
    expect(page.locator(".notice", has_text="faldo")).to_have_count(0)
    until(page, lambda: page.locator(".notice").count() == len(reader.notices))
    until(page, lambda: page.locator(".subscription .badge").inner_text() == f"{len(reader.notices)} matched")

    page.get_by_role("button", name="Remove subscription 1").click()
    expect(page.locator("#subscriptions")).to_have_text("None yet.")
    assert reader.wanted == []


def test_the_form_tells_mistakes_and_combines(opened: Any, forum: Forum) -> None:
    ((participant, url),) = forum(Device("Ann", 1))
    page = opened(url)
    follow = page.locator("#follow")
    page.get_by_label("Hole, from", exact=True).fill("19")
    expect(follow.locator(".mistake")).to_have_text("hole: must be from and to, between 1 and 18")
    page.get_by_label("Hole, from", exact=True).fill("7")
    follow.get_by_text("garcia", exact=True).click()
    follow.get_by_text("meets any of these").click()
    follow.get_by_text("officials only").click()
    xpath = "/PGMFORUM[starts-with(@id, 'O') and (player = 'garcia' or hole >= 7)]"
    expect(page.locator("#xpath")).to_have_text(xpath)
    page.get_by_role("button", name="Write it by hand").click()
    expect(page.locator("#by-hand")).to_have_value(xpath)
    page.locator("#by-hand").fill("/PGMFORUM[par = 3]")
    page.get_by_role("button", name="Register").click()
    expect(follow.locator(".mistake")).to_contain_text("'par' is not in 'PGMFORUM'")
    page.locator("#by-hand").fill("/PGMFORUM[not(hole = 3)]")
    page.get_by_role("button", name="Register").click()
    expect(page.locator(".subscription code")).to_have_text("/PGMFORUM[not(hole = 3)]")
    follow.get_by_role("button", name="Taxi sharing").click()
    expect(page.locator("#xpath")).to_have_text("/TAXISHARE")
    expect(follow.get_by_text("officials only")).to_be_hidden()
    assert len(participant.wanted) == 1


def test_on_a_phone_everything_is_in_reach(opened: Any, forum: Forum) -> None:
    (_, first_url), (second, second_url) = forum(Device("Ann", 1), Device("Ben", 2))
    page, other = opened(second_url, width=400, height=800, scheme="dark"), opened(first_url)
    expect(page.locator("#news")).to_be_visible()
    expect(page.locator("#follow")).to_be_hidden()
    page.get_by_role("tab", name="Follow").click()
    page.locator("#follow").get_by_role("button", name="Taxi sharing").click()
    page.locator("#follow").get_by_text("airport", exact=True).click()
    page.get_by_role("button", name="Register").click()
    expect(page.locator(".subscription code")).to_have_text("/TAXISHARE[destination = 'airport']")
    page.get_by_role("tab", name="Device").click()
    page.get_by_label("Constrained device").check()
    expect(page.locator("#facts")).to_contain_text("node 1")
    expect(page.get_by_label("Broker for others")).not_to_be_checked()
    assert second.device.constrained
    report = other.locator("#report")
    report.get_by_role("button", name="Taxi sharing").click()
    page.get_by_role("tab", name="News").click()
    for _ in range(100):
        report.get_by_label("Going to").select_option("airport")
        report.locator("input[name=seats]").fill("2")
        report.locator("input[name=minutes]").fill("20")
        report.get_by_role("button", name="Publish").click()
        page.wait_for_timeout(300)
        if page.locator(".notice").count():
            break
    expect(page.locator(".notice").first).to_contain_text("Taxi to the airport")
    expect(page.locator(".notice .why").first).to_contain_text("destination='airport'")
    for tab in ("News", "Follow", "Publish", "Device"):
        page.get_by_role("tab", name=tab).click()
        width = page.evaluate("document.documentElement.scrollWidth")
        assert width <= 400, f"{tab} is wider than the screen: {width}"


def test_a_tournament_of_live_nodes_on_the_map(opened: Any, beside: Any) -> None:
    demo = GolfForumDemo(Course(holes=4, visitors=5))
    beside.enter(demo.running())
    page = opened(demo.server.url)
    expect(page.locator("#mode")).to_have_text("live nodes")
    outcome: DemoOutcome = beside.run(demo.play(11.0))
    assert outcome.nodes == 9
    assert outcome.published >= 4
    assert outcome.delivered >= 1
    count = page.locator("#count")
    story = demo.story
    until(page, lambda: count.inner_text() == f"{story.published} published, {story.delivered} delivered")
    expect(page.locator("#devices a")).to_have_count(9)
    taxis = page.locator(".event", has_text="taxi")
    expect(taxis).to_have_count(3)
    taxis.first.click()
    expect(page.locator(".reasons")).to_contain_text("(visitor)")
    page.locator("#slider").fill("0")  # back to the beginning
    expect(page.locator("#count")).to_have_text("0 published, 0 delivered")
    page.get_by_role("link", name="Ann").click()
    expect(page.locator("#name")).to_have_text("Ann")


def test_a_simulated_tournament_is_one_file(opened: Any, tmp_path: Path) -> None:
    messages, summary = simulated_story(Course(holes=4, visitors=6), duration_s=20.0, seed=2)
    path = tmp_path / "tournament.html"
    path.write_text(recorded_page(messages), encoding="utf-8")
    page = opened(path.as_uri(), width=400, height=800)
    expect(page.locator("#mode")).to_have_text("simulated")
    page.locator("#slider").fill("1000")
    delivered = sum(message["kind"] == "delivered" for message in messages)
    expect(page.locator("#count")).to_have_text(f"{summary['published']} published, {delivered} delivered")
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
