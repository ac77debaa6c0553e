"""Nodes with doors, on loopback, for tests."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from typing import Any

import roamcast
from roamcast.doors.opening import Doors, open_doors
from roamcast.doors.settings import door_settings
from roamcast.testing.endpoints import free_endpoints

PATIENCE_S = 60.0
ANYWHERE = "127.0.0.1:0"


def endpoints(count: int) -> list[str]:
    """Places on loopback that are free now."""
    return [f"{host}:{port}" for host, port in free_endpoints(count)]


def free_port() -> int:
    """A TCP port on loopback that is free now."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@contextlib.asynccontextmanager
async def row(*tables: dict[str, Any], **settings: Any) -> AsyncIterator[list[Doors]]:
    """Nodes 1, 2, ... in a row, each with the doors of its table."""
    *places, nobody = endpoints(len(tables) + 1)
    async with contextlib.AsyncExitStack() as stack:
        opened = []
        for index, table in enumerate(tables):
            peers = [places[other] for other in (index - 1, index + 1) if 0 <= other < len(places)]
            node = roamcast.Node(
                index + 1, **{"protocol": "flooding", "listen": places[index], "peers": peers or [nobody], **settings}
            )
            await stack.enter_async_context(node)
            opened.append(await stack.enter_async_context(open_doors(node, door_settings(table))))
        yield opened


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.01)


def run(work: Callable[[], Coroutine[Any, Any, None]] | Awaitable[None]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(PATIENCE_S):
            await (work() if callable(work) else work)

    asyncio.run(bounded())
