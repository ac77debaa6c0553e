"""Devices of the forum over loopback: a broker, a client and a constrained client around an official."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack

import pytest

from roamcast.apps.golf_forum import forms
from roamcast.apps.golf_forum.participant import Device, Participant
from roamcast.errors import ConfigurationError

PATIENCE_S = 60
RESULT = {"player": "woods", "hole": 3, "holescore": 4, "totalscore": 52, "currentrank": 2}
PARAMETERS = {"client_refresh_s": 0.5, "refresh_interval_s": 1.0, "search_pause_s": 0.5}
OFFICIAL = Device("Hole 15", 1, hole=15)


def run(work: Callable[..., Awaitable[None]], *devices: Device) -> None:
    """Runs `work` with devices that all hear each other."""

    async def connected() -> None:
        async with AsyncExitStack() as stack:
            participants = []
            for device in devices:
                made = Participant(device, parameters=PARAMETERS, listen="127.0.0.1:0", discover=False)
                participants.append(await stack.enter_async_context(made))
            for one in participants:
                one.node.link([other.node.endpoint for other in participants if other is not one])
            await asyncio.wait_for(work(*participants), PATIENCE_S)

    asyncio.run(connected())


async def published_until_noticed(publisher: Participant, reader: Participant, **values: int | str) -> None:
    """Publishes until the subscription is known to the network."""
    while not reader.notices:
        await publisher.publish(forms.SCORE, RESULT | values)
        for _ in range(20):
            await asyncio.sleep(0.02)
            if reader.notices:
                break


@pytest.mark.parametrize(
    "device", [Device("Ann", 2), Device("Ben", 2, broker=False), Device("Cleo", 2, broker=False, constrained=True)]
)
def test_register_publish_notify(device: Device) -> None:
    async def work(official: Participant, reader: Participant) -> None:
        reader.subscribe(forms.form_of({"type": forms.SCORE, "fields": {"hole": [10, 18], "currentrank": [None, 3]}}))
        await published_until_noticed(official, reader)
        notice = reader.notices[0]
        assert (notice["from"], notice["official"], notice["values"]["hole"]) == (1, True, 15)
        (match,) = notice["matches"]
        assert match["xpath"] == "/PGMFORUM[hole >= 10 and currentrank <= 3]"
        assert [(each["condition"], each["value"]) for each in match["reasons"]] == [
            ("hole>=10", 15),
            ("currentrank<=3", 2),
        ]
        assert reader.home == (None if device.broker else 1)

    run(work, OFFICIAL, device)


def test_one_event_that_two_subscriptions_match_is_one_notification() -> None:
    async def work(official: Participant, reader: Participant) -> None:
        for fields in ({"player": ["woods"]}, {"hole": [15, 15]}, {"hole": [1, 2]}):
            reader.subscribe(forms.form_of({"type": forms.SCORE, "fields": fields}))
        await published_until_noticed(official, reader)
        while len(reader.notices[0]["matches"]) < 2:
            await asyncio.sleep(0.02)
        assert sorted(each["subscription"] for each in reader.notices[0]["matches"]) == [1, 2]
        assert [each.matched for each in reader.wanted][2] == 0

    run(work, OFFICIAL, Device("Ann", 2))


def test_the_gallery_publishes_too_and_shares_taxis() -> None:
    async def work(one: Participant, other: Participant) -> None:
        other.subscribe(forms.form_of({"type": forms.SCORE, "official": True}))
        other.subscribe(forms.form_of({"type": forms.TAXI, "fields": {"destination": ["airport"]}}))
        while not other.notices:
            await one.publish(forms.SCORE, RESULT)
            await one.publish(forms.TAXI, {"destination": "harbour", "seats": 1, "minutes": 5})
            await one.publish(forms.TAXI, {"destination": "airport", "seats": 2, "minutes": 5})
            await asyncio.sleep(0.3)
        assert {notice["type"] for notice in other.notices} == {forms.TAXI}
        assert {notice["values"]["destination"] for notice in other.notices} == {"airport"}
        assert other.notices[0]["values"]["@id"].startswith("G1-")

    run(work, Device("Ann", 1), Device("Ben", 2))


def test_the_owner_decides_what_the_device_is() -> None:
    async def work(official: Participant, reader: Participant) -> None:
        reader.subscribe(forms.form_of({"type": forms.SCORE}))
        reader.change(broker=False, constrained=True)
        while reader.home != 1:
            await asyncio.sleep(0.02)
        await published_until_noticed(official, reader)
        with pytest.raises(ConfigurationError, match="constrained: such a device cannot be a broker"):
            reader.change(broker=True, constrained=True)
        with pytest.raises(ConfigurationError, match="xpath: this device sends Bloom filters"):
            reader.subscribe(forms.form_of({"type": forms.SCORE, "xpath": "/PGMFORUM"}))
        reader.change(broker=True, constrained=False)
        assert reader.status()["home"] is None

    run(work, OFFICIAL, Device("Ann", 2))


def test_a_subscription_that_is_removed_notifies_no_more() -> None:
    async def work(official: Participant, reader: Participant) -> None:
        wanted = reader.subscribe(forms.form_of({"type": forms.SCORE}))
        await published_until_noticed(official, reader)
        reader.unsubscribe(wanted.number)
        count = len(reader.notices)
        reader.subscribe(forms.form_of({"type": forms.SCORE, "fields": {"player": ["els"]}}))
        await official.publish(forms.SCORE, RESULT)
        while len(reader.notices) == count:
            await official.publish(forms.SCORE, RESULT | {"player": "els"})
            await asyncio.sleep(0.2)
        assert {notice["values"]["player"] for notice in reader.notices[count:]} == {"els"}
        with pytest.raises(ConfigurationError, match="subscription: 7 is not there"):
            reader.unsubscribe(7)

    run(work, OFFICIAL, Device("Ann", 2))
