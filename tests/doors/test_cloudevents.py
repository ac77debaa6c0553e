"""CloudEvents 1.0 in both HTTP modes, across two nodes."""

import json
from typing import Any

import aiohttp
import pytest
from tests.doors.nodes import ANYWHERE, row, run
from tests.doors.test_http import subscribed

from roamcast.doors.cloudevents import checked_traceparent, from_binary, from_structured
from roamcast.errors import ConfigurationError

OPEN = {"http": {"listen": ANYWHERE}}
TRACEPARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
MINIMAL = {"specversion": "1.0", "id": "a1", "source": "/sensors/7", "type": "smoke"}


def structured(**fields: Any) -> bytes:
    return json.dumps({**MINIMAL, **fields}).encode()


def test_both_modes_arrive_as_the_event_that_was_sent() -> None:
    async def work() -> None:
        async with row(OPEN, OPEN) as (here, there), aiohttp.ClientSession() as client:
            stream = await subscribed(client, there, "subscribe=fire/**&format=cloudevents")
            where = f"{here.places['http']}/events"
            body = structured(
                subject="fire/north", data={"level": 3}, traceparent=TRACEPARENT, datacontenttype="application/json"
            )
            headers = {"Content-Type": "application/cloudevents+json; charset=utf-8"}
            async with client.post(where, data=body, headers=headers) as answer:
                assert answer.status == 202, await answer.text()
            event = await stream.next()
            assert isinstance(event.pop("time"), str)
            assert event == json.loads(body)

            headers = {f"ce-{name}": value for name, value in MINIMAL.items()}
            headers |= {"ce-subject": "fire/south", "ce-sensor": "caf%C3%A9", "Content-Type": "image/jpeg"}
            headers["traceparent"] = TRACEPARENT
            async with client.post(where, data=b"\xff\xd8", headers=headers) as answer:
                assert answer.status == 202, await answer.text()
            event = await stream.next()
            assert (event["subject"], event["sensor"], event["type"]) == ("fire/south", "café", "smoke")
            assert (event["data_base64"], event["datacontenttype"]) == ("/9g=", "image/jpeg")
            assert event["traceparent"] == TRACEPARENT

    run(work)


def test_an_event_of_a_plain_publisher_becomes_a_cloud_event() -> None:
    async def work() -> None:
        async with row({}, OPEN) as (here, there), aiohttp.ClientSession() as client:
            stream = await subscribed(client, there, "subscribe=**&format=cloudevents")
            published = await here.gate.node.publish("fire/north", b"smoke")
            event = await stream.next()
            assert event["id"] == f"1/{published.event.number}"
            assert (event["source"], event["type"]) == ("roamcast://roamcast/1", "roamcast.event")
            assert (event["subject"], event["data"]) == ("fire/north", "smoke")
            assert set(event) == {
                *("specversion", "id", "source", "type", "time", "subject", "datacontenttype", "data")
            }

    run(work)


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b"\xff", "not JSON"),
        (b"[1]", "not a JSON object"),
        (b"[" * 100_000, "not JSON"),
        (structured(specversion="0.3"), "specversion"),
        (structured(id=""), "id is missing"),
        (structured(source=None), "source is neither"),
        (structured(data=1, data_base64=""), "both"),
        (structured(data_base64="?"), "base64"),
        (structured(data_base64=7), "base64"),
        (structured(Upper="x"), "'Upper' is not a name"),
        (structured(nested={"a": 1}), "nested is neither"),
        (structured(traceparent="00-0"), "traceparent"),
    ],
)
def test_what_is_not_a_cloud_event_is_refused(body: bytes, text: str) -> None:
    with pytest.raises(ConfigurationError, match=text) as caught:
        from_structured(body)
    assert "\n" not in str(caught.value)


def test_binary_mode_needs_its_headers() -> None:
    with pytest.raises(ConfigurationError, match="type is missing"):
        from_binary({"ce-specversion": "1.0", "ce-id": "1", "ce-source": "x"}, b"")


@pytest.mark.parametrize(
    "text",
    [
        "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
        "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
        TRACEPARENT + "0",
    ],
)
def test_a_broken_traceparent_is_refused(text: str) -> None:
    assert checked_traceparent(TRACEPARENT) == TRACEPARENT
    with pytest.raises(ConfigurationError, match="traceparent"):
        checked_traceparent(text)
