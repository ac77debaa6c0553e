"""Live nodes with a journal: restarts, absences, a full disk. Nothing acknowledged is lost, nothing comes twice."""

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

import roamcast
from roamcast.checkers.receipts import judge
from roamcast.delivery.settings import DeliverySettings
from roamcast.errors import ConfigurationError
from roamcast.live.endpoints import open_socket
from roamcast.live.keys import new_ring, write_ring
from roamcast.live.settings import LISTEN

PATIENCE_S = 60.0
QUICK = DeliverySettings(beat_period_s=0.2, patience_s=0.05)


def run(scenario: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(scenario, PATIENCE_S))


def free_ports(count: int) -> list[str]:
    sockets = [open_socket(LISTEN, None) for _ in range(count)]
    places = [f"127.0.0.1:{each.getsockname()[1]}" for each in sockets]
    for each in sockets:
        each.close()
    return places


def pair(places: list[str], tmp_path: Path, **options: Any) -> tuple[Callable[..., roamcast.Node], ...]:
    """Two nodes with journals that know each other, each to be made as often as needed."""

    def maker(own: int, other: int) -> Callable[..., roamcast.Node]:
        def make(**more: Any) -> roamcast.Node:
            settings: dict[str, Any] = {"protocol": "flooding", "journal": tmp_path / str(own), "delivery": QUICK}
            settings |= options | more
            return roamcast.Node(own + 1, listen=places[own], peers=[places[other]], **settings)

        return make

    return maker(0, 1), maker(1, 0)


async def take(subscription: roamcast.Subscription, count: int) -> list[roamcast.Delivery]:
    taken: list[roamcast.Delivery] = []
    async for delivery in subscription:
        taken.append(delivery)
        subscription.acknowledge(delivery)
        if len(taken) == count:
            break
    return taken


def test_a_durable_subscription_gets_what_was_published_while_it_was_down(tmp_path: Path) -> None:
    async def scenario() -> None:
        publisher, subscriber = pair(free_ports(2), tmp_path)
        async with publisher() as alice:
            async with subscriber() as bob:
                alarms = bob.subscribe("fire/**", durable="alarms")
                first = await alice.publish("fire/north", b"1", custody=1)
                assert first.stored
                assert first.custody == 1
                got = [each.event.id for each in await take(alarms, 1)]
            missed = [(await alice.publish("fire/north", str(each).encode())).event.id for each in range(20)]
            async with subscriber() as bob:
                got += [each.event.id for each in await take(bob.subscribe("fire/**", durable="alarms"), 20)]
        assert judge({2: [first.event.id, *missed]}, {2: got})._replace(disordered=0).is_perfect

    run(scenario())


def test_a_publisher_that_restarts_at_once_repeats_no_number(tmp_path: Path) -> None:
    """Found live: 1,000 published, restart, 0 of the next 300 delivered."""

    async def scenario() -> None:
        publisher, subscriber = pair(free_ports(2), tmp_path)
        wanted: list[int] = []
        async with subscriber() as bob:
            alarms = bob.subscribe("fire/**", durable="alarms")
            for _ in range(3):
                async with publisher() as alice:
                    wanted += [(await alice.publish("fire/north")).event.id for _ in range(300)]
                    await alice.publish("fire/south", custody=1)
            got = [each.event.id for each in await take(alarms, 903) if each.event.content == "fire/north"]
        assert len(set(wanted)) == 900
        assert judge({2: wanted}, {2: got})._replace(disordered=0).is_perfect

    run(scenario())


def test_a_clock_that_goes_back_an_hour_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Found live: Overlays delivered 0 of 60 after that."""
    import time

    true_time = time.time

    async def scenario() -> None:
        publisher, subscriber = pair(free_ports(2), tmp_path, protocol="overlays")
        wanted: list[int] = []
        async with subscriber() as bob:
            alarms = bob.subscribe("fire/**", durable="alarms", ordered=True)
            for jump_s in (0.0, -3600.0, 3600.0, 0.0):
                with monkeypatch.context() as patch:
                    patch.setattr(time, "time", lambda jump_s=jump_s: true_time() + jump_s)
                    async with publisher() as alice:
                        wanted += [(await alice.publish("fire/north")).event.id for _ in range(15)]
                        wanted.append((await alice.publish("fire/north", custody=1, timeout_s=30)).event.id)
            got = [each.event.id for each in await take(alarms, 64)]
        assert judge({2: wanted}, {2: got}).is_perfect

    run(scenario())


@pytest.mark.parametrize(
    ("protocol", "parameters"), [("flooding", {}), ("overlays", {"brokers": "2", "machine_load": False})]
)
def test_a_node_without_any_option_survives_quick_restarts_and_clocks_that_go_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, protocol: str, parameters: dict[str, Any]
) -> None:
    """Found live: 1,000 published, restart, 0 of the next 300 delivered; 0 of 60 after a clock that went back."""
    import time

    true_time = time.time
    key = tmp_path / "key"
    write_ring(key, new_ring("roamcast", 0.0))

    async def scenario() -> None:
        options = {"protocol": protocol, "parameters": parameters, "journal": None, "key": key}
        publisher, subscriber = pair(free_ports(2), tmp_path, **options)
        async with subscriber() as bob:
            found = bob.subscribe("fire/**")
            for jump_s in (0.0, 0.0, -3600.0, 3600.0):
                with monkeypatch.context() as patch:
                    patch.setattr(time, "time", lambda jump_s=jump_s: true_time() + jump_s)
                    async with publisher() as alice:
                        while not found._waiting:  # until the two know each other
                            await alice.publish("fire/north")
                            await asyncio.sleep(0.05)
                        wanted = {(await alice.publish("fire/north")).event.id for _ in range(200)}
                        while wanted:
                            wanted.discard((await anext(found)).event.id)

    run(scenario())


def test_an_event_that_was_not_acknowledged_comes_again_and_says_so(tmp_path: Path) -> None:
    async def scenario() -> None:
        publisher, subscriber = pair(free_ports(2), tmp_path)
        async with publisher() as alice:
            async with subscriber() as bob:
                alarms = bob.subscribe("fire/**", durable="alarms")
                for each in range(2):
                    await alice.publish("fire/north", str(each).encode(), custody=1)
                first = await anext(alarms)
                second = await anext(alarms)  # which acknowledges the first
                assert (first.again, second.again) == (False, False)
            async with subscriber() as bob:
                (repeated,) = await take(bob.subscribe("fire/**", durable="alarms"), 1)
        assert repeated.event == second.event
        assert repeated.again

    run(scenario())


@pytest.mark.parametrize("protocol", ["flooding", "waymark"])
def test_300_disjoint_intervals_per_node(tmp_path: Path, protocol: str) -> None:
    """Found live: they vanished as `oversized`."""

    async def scenario() -> None:
        publisher, subscriber = pair(free_ports(2), tmp_path, protocol=protocol, language="intervals")
        async with publisher() as alice, subscriber() as bob:
            for node, own in ((alice, 0), (bob, 10)):
                node.subscribe(" ".join(f"{1000 * each + own}..{1000 * each + own + 5}" for each in range(300)))
            await alice.publish(150_012.0, custody=1)
            (found,) = bob._subscriptions
            assert (await anext(found)).event.content == 150_012.0
            assert "oversized" not in alice.counters["frames_lost"]

    run(scenario())


def test_a_full_disk_is_said_in_one_line_and_loses_nothing_acknowledged(tmp_path: Path) -> None:
    async def scenario() -> None:
        publisher, subscriber = pair(free_ports(2), tmp_path)
        async with publisher() as alice, subscriber() as bob:
            alarms = bob.subscribe("fire/**", durable="alarms")
            storage: Any = bob._running.durability._storage
            storage._connection.execute("PRAGMA max_page_count = 1")  # not one page more: as if the disk were full
            accepted = [(await alice.publish("fire/north", bytes(3000))).event.id for _ in range(40)]
            while not bob.counters["delivery"]["storage_errors"]:
                await asyncio.sleep(0.05)
            storage._connection.execute("PRAGMA max_page_count = 100000")  # somebody has made room
            got = [each.event.id for each in await take(alarms, 40)]
            assert judge({2: accepted}, {2: got})._replace(disordered=0).is_perfect
            own: Any = alice._running.durability._storage
            own._connection.execute("PRAGMA max_page_count = 1")
            with pytest.raises(ConfigurationError, match=r"^publish: journal: cannot write .*full.*not published$"):
                await alice.publish("fire/north", bytes(100_000))

    run(scenario())


def test_a_journal_has_one_owner(tmp_path: Path) -> None:
    async def scenario() -> None:
        publisher, _ = pair(free_ports(2), tmp_path)
        async with publisher():
            with pytest.raises(ConfigurationError, match="in use by another node"):
                async with roamcast.Node(1, peers=["127.0.0.1:9"], protocol="flooding", journal=tmp_path / "0"):
                    pass
        damaged = tmp_path / "0" / "roamcast-1.sqlite"
        damaged.write_bytes(b"no database at all" * 1000)
        with pytest.raises(ConfigurationError, match="is damaged"):
            async with publisher():
                pass

    run(scenario())


def test_what_a_node_without_a_journal_cannot_do_is_refused() -> None:
    async def scenario() -> None:
        async with roamcast.Node(1, peers=["127.0.0.1:9"], protocol="flooding") as node:
            with pytest.raises(ConfigurationError, match="--repair"):
                node.subscribe("fire/**", ordered=True)
            with pytest.raises(ConfigurationError, match="--repair"):
                await node.publish("fire/north", custody=1)
        async with roamcast.Node(1, peers=["127.0.0.1:9"], protocol="flooding", repair=True) as node:
            with pytest.raises(ConfigurationError, match="needs a journal"):
                node.subscribe("fire/**", durable="alarms")
            with pytest.raises(ConfigurationError, match="priority"):
                await node.publish("fire/north", priority=-1)

    run(scenario())
