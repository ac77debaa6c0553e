"""What the tests of applications share: a browser, and an event loop in a thread beside it."""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

PATIENCE_S = 60

Opened = Callable[..., Page]


@pytest.fixture
def opened(browser: Browser) -> Iterator[Opened]:
    """Opens an address; nothing may go wrong on its page, or go over another network than loopback."""
    mishaps: list[str] = []
    pages: list[Page] = []

    def requested(url: str) -> None:
        if not url.startswith(("http://127.0.0.1:", "data:", "file:")):
            mishaps.append(f"request: {url}")

    def told(kind: str, text: str) -> None:
        if kind == "error" and "status of 400" not in text:  # which refuses what a user entered
            mishaps.append(text)

    def open_page(url: str, width: int = 1400, height: int = 900, scheme: str = "light") -> Page:
        page = browser.new_page(
            viewport={"width": width, "height": height},
            color_scheme=scheme,  # type: ignore[arg-type]
            reduced_motion="reduce",
        )
        pages.append(page)
        page.set_default_timeout(1000 * PATIENCE_S)
        page.on("request", lambda request: requested(request.url))
        page.on("pageerror", lambda error: mishaps.append(str(error)))
        page.on("console", lambda message: told(message.type, message.text))
        page.goto(url)
        page.wait_for_selector("html[data-ready]")
        return page

    yield open_page
    for page in pages:
        page.close()
    assert mishaps == []


class Beside:
    """An event loop in another thread: nodes run there while the test drives the browser."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._ends: list[tuple[Future[None], asyncio.Event]] = []
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        """The result of a coroutine that runs there."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE_S)

    def enter(self, context: Any) -> Any:
        """Enters an asynchronous context there; it is left at the end of the test, by the task that entered it."""
        entered: Future[Any] = Future()
        end = asyncio.Event()

        async def hold() -> None:
            try:
                async with context as value:
                    entered.set_result(value)
                    await end.wait()
            except BaseException as error:
                if entered.done():
                    raise
                entered.set_exception(error)

        self._ends.append((asyncio.run_coroutine_threadsafe(hold(), self._loop), end))
        return entered.result(PATIENCE_S)

    def close(self) -> None:
        try:
            for ended, end in reversed(self._ends):
                self._loop.call_soon_threadsafe(end.set)
                ended.result(PATIENCE_S)
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(PATIENCE_S)
            self._loop.close()


@pytest.fixture
def beside() -> Iterator[Beside]:
    made = Beside()
    yield made
    made.close()
