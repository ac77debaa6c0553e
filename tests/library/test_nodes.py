"""Live nodes from Python, over loopback."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import wasmtime

import roamcast
from roamcast.interests import Topics, parse_interest
from roamcast.interests.content import write
from roamcast.live.journal import ToldStanding
from roamcast.protocols.overlays.modulators.wasm_format import wasm_source
from roamcast.testing.endpoints import free_endpoints

PATIENCE_S = 60
HOLE_3 = write(
    "PGMFORUM", {"@id": "1", "player": "els", "hole": 3, "holescore": 4, "totalscore": 9, "currentrank": 2}
)
NOWHERE = ToldStanding(-1, 0.0, "")


async def until(holds: Callable[[], bool]) -> None:
    while not holds():
        await asyncio.sleep(0.02)


def endpoints(count: int) -> list[str]:
    """Places on loopback that are free now."""
    return [f"{host}:{port}" for host, port in free_endpoints(count)]


def talk(work: Callable[[roamcast.Node, roamcast.Node], Awaitable[None]], **settings: Any) -> None:
    """Runs `work` with two nodes that hear each other."""

    async def run() -> None:
        here, there = endpoints(2)
        settings.setdefault("protocol", "flooding")
        async with (
            roamcast.Node(1, listen=here, peers=[there], **settings) as a,
            roamcast.Node(2, listen=there, peers=[here], **settings) as b,
        ):
            await asyncio.wait_for(work(a, b), PATIENCE_S)

    asyncio.run(run())


@pytest.mark.parametrize("protocol", ["flooding", "waymark"])
def test_an_event_reaches_the_subscription_that_it_matches(protocol: str) -> None:
    async def work(a: roamcast.Node, b: roamcast.Node) -> None:
        fires = b.subscribe("fire/**")
        floods = b.subscribe(parse_interest("topics", "flood/*"))
        while a.counters["neighbours"] == 0 and protocol != "flooding":
            await asyncio.sleep(0.05)
        published = await a.publish("fire/north", b"smoke")
        await a.publish("flood/east", b"2 m")
        fire, flood = await anext(fires), await anext(floods)
        assert (fire.event.id, fire.event.content, fire.event.payload) == (published.event.id, "fire/north", b"smoke")
        assert (flood.event.content, flood.event.publisher) == ("flood/east", 1)
        assert 0 <= fire.latency_s < PATIENCE_S

    talk(work, protocol=protocol)


def test_a_closed_subscription_ends_its_loop() -> None:
    async def work(a: roamcast.Node, b: roamcast.Node) -> None:
        subscription = b.subscribe("fire/**")
        await a.publish("fire/north")
        seen = []
        async for delivery in subscription:
            seen.append(delivery.event.content)
            subscription.close()
        assert seen == ["fire/north"]
        assert b.counters["subscriptions"] == 0

    talk(work)


def test_a_slow_reader_loses_the_oldest_and_is_told() -> None:
    async def work(a: roamcast.Node, b: roamcast.Node) -> None:
        slow, quick = b.subscribe("n/*", queue_max=2), b.subscribe("n/*")
        for number in range(5):
            await a.publish(f"n/{number}")
            await anext(quick)
        assert slow.lost == 3
        assert [(await anext(slow)).event.content for _ in range(2)] == ["n/3", "n/4"]

    talk(work)


def test_leaving_the_node_ends_every_loop() -> None:
    async def run() -> list[roamcast.Delivery]:
        (here,) = endpoints(1)
        async with roamcast.Node(1, peers=[here]) as node:
            subscription = node.subscribe("a/**")
        return [delivery async for delivery in subscription]

    assert asyncio.run(run()) == []


@pytest.mark.parametrize(
    ("content", "payload", "language", "named"),
    [
        ("fire/north", "smoke", "topics", "payload: str is not bytes"),
        ("fire/*", b"", "topics", "is not a topic"),
        (3, b"", "topics", "is not text"),
        ("3", b"", "intervals", "is not a number"),
        (True, b"", "intervals", "is not a number"),
        (float("nan"), b"", "intervals", "is not a number"),
        ("x/y", b"0" * 300_000, "topics", "at most"),
    ],
)
def test_what_cannot_be_published_is_refused_at_the_call(content: Any, payload: Any, language: str, named: str) -> None:
    async def work(a: roamcast.Node, b: roamcast.Node) -> None:
        with pytest.raises(roamcast.ConfigurationError, match=named):
            await a.publish(content, payload)

    talk(work, language=language)


def test_interests_are_checked_at_the_call() -> None:
    async def work(a: roamcast.Node, b: roamcast.Node) -> None:
        with pytest.raises(roamcast.ConfigurationError, match="interest"):
            a.subscribe("fire//north")
        with pytest.raises(roamcast.ConfigurationError, match="not of the node's language"):
            a.subscribe(parse_interest("intervals", "1..2"))
        assert isinstance(a.subscribe("fire/**").interest, Topics)

    talk(work)


def test_a_node_that_does_not_run_says_so() -> None:
    node = roamcast.Node(1, peers=["127.0.0.1:9"])
    with pytest.raises(roamcast.ConfigurationError, match="not running"):
        node.subscribe("a")


def test_a_subscription_with_a_modulator_gets_what_its_broker_makes_of_events() -> None:
    async def work(a: roamcast.Node, b: roamcast.Node) -> None:
        deep = b.subscribe("depth/*", modulator="filter(level > 2) | project(level)")
        plain = b.subscribe("depth/north")
        await until(lambda: b.standing.get("home", NOWHERE).peer == 1)

        async def publish(*levels: int) -> None:
            for level in levels:
                await a.publish("depth/north", b'{"level": %d, "station": "north"}' % level)

        await publish(1, 3)
        assert (await anext(deep)).event.payload == b'{"level":3}'
        assert [(await anext(plain)).event.payload[:11] for _ in range(2)] == [b'{"level": 1', b'{"level": 3']
        deep.change(modulator="transform(level)")
        await asyncio.sleep(0)
        while True:  # the change is on its way to the broker
            await publish(5)
            changed = (await anext(deep)).event
            if changed.content == 5.0:
                break
        deep.close()
        assert b.counters["subscriptions"] == 1

    talk(work, protocol="overlays", parameters={"brokers": "1", "machine_load": False})


def test_a_modulator_needs_a_protocol_that_has_brokers_and_must_make_sense() -> None:
    async def work(a: roamcast.Node, b: roamcast.Node) -> None:
        with pytest.raises(roamcast.ConfigurationError, match="flooding runs none; overlays does"):
            b.subscribe("fire/**", modulator="sample(2)")

    async def nonsense(a: roamcast.Node, b: roamcast.Node) -> None:
        with pytest.raises(roamcast.ConfigurationError, match="one of filter"):
            b.subscribe("fire/**", modulator="explode(2)")
        assert b.counters["subscriptions"] == 0
        assert b.counters["restarts"] == 0

    talk(work)
    talk(nonsense, protocol="overlays", parameters={"brokers": "1"})


def test_a_node_hears_its_own_events_only_if_told() -> None:
    async def work(a: roamcast.Node, b: roamcast.Node) -> None:
        own = a.subscribe("fire/**")
        await a.publish("fire/north", b"unheard")
        heard = await a.publish("fire/north", b"heard", here=True)
        assert (await anext(own)).event == heard.event

    talk(work)


def test_a_subscription_can_change_and_an_event_has_a_cause() -> None:
    async def work(a: roamcast.Node, b: roamcast.Node) -> None:
        alarms = b.subscribe("fire/**")
        alarms.change("flood/**")
        assert b.counters["subscriptions"] == 1
        first = await a.publish("fire/north")
        await a.publish("flood/east", cause=first.event)
        assert (await anext(alarms)).event.cause == first.event.id

    talk(work)


def test_a_shared_node_is_the_node_it_is_made_of() -> None:
    async def work(a: roamcast.Node, b: roamcast.Node) -> None:
        shared = roamcast.Node.share(b._running)
        assert (shared.address, shared.language, shared.network) == (2, "topics", "roamcast")
        fires = shared.subscribe("fire/**")
        assert b.counters["subscriptions"] == 1
        fires.close()
        assert b.counters["subscriptions"] == 0

    talk(work)


def test_a_modulator_that_fails_is_a_refusal_with_its_reason() -> None:
    endless_loop = '(module (memory (export "memory") 1) (func (export "process") (loop $on (br $on))))'
    source = wasm_source(bytes(wasmtime.wat2wasm(endless_loop)))

    async def work(a: roamcast.Node, b: roamcast.Node) -> None:
        endless = b.subscribe("depth/*", modulator=source)
        await until(lambda: b.standing.get("home", NOWHERE).peer == 1)
        await a.publish("depth/north", b"1")
        with pytest.raises(roamcast.RefusedError, match="all fuel consumed"):
            await anext(endless)
        assert "fuel" in endless.refusal
        endless.change(modulator="events.every(1)")
        assert endless.refusal == ""
        arrival = asyncio.ensure_future(anext(endless))
        while not arrival.done():  # the change is on its way to the broker
            await a.publish("depth/north", b"2")
            await asyncio.sleep(0.05)
        assert arrival.result().event.payload == b"2"

    talk(work, protocol="overlays", parameters={"brokers": "1", "machine_load": False})


def test_links_come_and_go_while_the_node_runs() -> None:
    async def run() -> None:
        here, there = endpoints(2)
        apart: dict[str, Any] = {"protocol": "flooding", "discover": False}
        async with (
            roamcast.Node(1, listen=here, **apart) as a,
            roamcast.Node(2, listen=there, **apart) as b,
        ):
            subscription = b.subscribe("n/*")
            await a.publish("n/1")
            a.link([there])
            b.link([here])
            while a.neighbours != [2] or b.neighbours != [1]:
                await asyncio.sleep(0.02)
            await a.publish("n/2")
            assert (await anext(subscription)).event.content == "n/2"
            a.link([])
            b.link([])
            assert a.neighbours == []
            with pytest.raises(roamcast.ConfigurationError, match="key: none given"):
                a.link(["192.0.2.1:9000"])

    asyncio.run(asyncio.wait_for(run(), PATIENCE_S))


def test_a_program_may_watch_what_the_protocol_does() -> None:
    seen: list[roamcast.Activity] = []

    async def work(a: roamcast.Node, b: roamcast.Node) -> None:
        subscription = b.subscribe("n/*")
        published = await a.publish("n/1")
        await anext(subscription)
        heard = [each for each in seen if each.kind == "heard" and each.event_id == published.event.id]
        assert 1 in [each.peer for each in heard]  # node 2 heard it from node 1

    talk(work, on_activity=seen.append)


def test_new_parameters_keep_the_subscriptions() -> None:
    seen: list[roamcast.Activity] = []

    async def work(a: roamcast.Node, b: roamcast.Node) -> None:
        golf = "/PGMFORUM[hole = 3]"
        subscription = b.subscribe(golf)
        assert [each.label for each in seen if each.kind == "structure"] == ["broker", "broker"]
        b.set_parameters({"broker_share": 0.0})
        while "home" not in [each.label for each in seen]:  # node 2 is a client of node 1 now
            await asyncio.sleep(0.02)
        assert b.counters["subscriptions"] == 1
        while True:  # until its subscription has arrived there
            await a.publish(HOLE_3)
            try:
                delivery = await asyncio.wait_for(anext(subscription), 0.5)
                break
            except TimeoutError:
                continue
        assert delivery.event.content == HOLE_3
        with pytest.raises(roamcast.ConfigurationError):
            b.set_parameters({"broker_share": 2.0})

    talk(work, protocol="odmrp", language="content", on_activity=seen.append)


def test_a_form_needs_no_xpath() -> None:
    async def work(a: roamcast.Node, b: roamcast.Node) -> None:
        wishes: dict[str, Any] = {"hole": (2, 4), "player": ["woods", "els"]}
        subscription = b.subscribe_values("PGMFORUM", wishes)
        assert str(subscription.interest) == "/PGMFORUM[(player='els' or player='woods') and hole>=2 and hole<=4]"
        await a.publish(HOLE_3)
        assert (await anext(subscription)).event.content == HOLE_3
        with pytest.raises(roamcast.ConfigurationError, match="hole = 19"):
            b.subscribe_values("PGMFORUM", {"hole": 19})

    talk(work, protocol="flooding", language="content")
