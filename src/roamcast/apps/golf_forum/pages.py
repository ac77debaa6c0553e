"""The page of a participant, and its requests."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from roamcast.apps.golf_forum import forms
from roamcast.apps.golf_forum.participant import Participant
from roamcast.apps.server import PageServer, Request

WEB = Path(__file__).parent / "web"
STATUS_PERIOD_S = 1.0


def serve_files(server: PageServer) -> None:
    server.files("/web", WEB)


def serve_participant(server: PageServer, participant: Participant, prefix: str) -> None:
    """Puts its page at `prefix`, which ends without a slash; "" is the root."""
    page = _Page(participant)
    server.page(f"{prefix}/", WEB / "forum.html")
    server.answer("GET", f"{prefix}/forms", lambda request: forms.described_types())
    server.answer("POST", f"{prefix}/xpath", page.xpath)
    server.answer("POST", f"{prefix}/subscribe", page.subscribe)
    server.answer("POST", f"{prefix}/unsubscribe", page.unsubscribe)
    server.answer("POST", f"{prefix}/publish", page.publish)
    server.answer("POST", f"{prefix}/device", page.device)
    participant.listeners.append(server.feed(f"{prefix}/feed", participant.snapshot).send)


@contextlib.asynccontextmanager
async def serving(participant: Participant, listen: str) -> AsyncIterator[PageServer]:
    """One device with its page, as on a machine of its own. Both run inside the context."""
    server = PageServer(listen)
    serve_files(server)
    serve_participant(server, participant, "")
    async with participant, server:
        telling = asyncio.create_task(tell_status([participant]))
        try:
            yield server
        finally:
            telling.cancel()


async def tell_status(participants: list[Participant]) -> None:
    while True:
        await asyncio.sleep(STATUS_PERIOD_S)
        for participant in participants:
            participant.tell_status()


class _Page:
    def __init__(self, participant: Participant) -> None:
        self._participant = participant

    def xpath(self, request: Request) -> dict[str, Any]:
        """What the form says so far, in XPath. It is not subscribed to."""
        return {"xpath": forms.expression(forms.form_of(request.body))}

    def subscribe(self, request: Request) -> dict[str, Any]:
        return self._participant.subscribe(forms.form_of(request.body)).shown()

    def unsubscribe(self, request: Request) -> dict[str, Any]:
        self._participant.unsubscribe(request.field("number", int))
        return {}

    async def publish(self, request: Request) -> dict[str, Any]:
        return await self._participant.publish(request.field("type", str), request.field("values", dict))

    def device(self, request: Request) -> dict[str, Any]:
        self._participant.change(broker=request.field("broker", bool), constrained=request.field("constrained", bool))
        return self._participant.status()
