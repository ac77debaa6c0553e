"""`roamcast watch`: the replay page of a network that still runs.

Reads the trace that an emulation (`roamcast emulate --out DIR`) or live nodes (`roamcast node --trace DIR/1`) write,
again and again, and serves the page with what is there so far. When all is over, the page is that of `roamcast replay`.
"""

import time
import webbrowser
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import Annotated

import typer

from roamcast.errors import ConfigurationError
from roamcast.report.replay.data import ReplayData, replay_data
from roamcast.report.replay.page import replay_page
from roamcast.report.replay.recordings import open_live
from roamcast.report.replay.server import ReplayServer


def watch(
    directory: Annotated[
        Path,
        typer.Argument(
            help="Directory of an emulation, of a node's trace, or of several nodes' traces.", metavar="DIR"
        ),
    ],
    port: Annotated[int, typer.Option(help="Of the local server; 0 takes a free one.", min=0, max=65535)] = 0,
    every_s: Annotated[float, typer.Option("--every", min=0.5, max=60, help="Seconds between looks.")] = 2.0,
    patience_s: Annotated[float, typer.Option("--patience", min=0, help="Seconds to wait for the first rows.")] = 120.0,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page.")] = True,
) -> None:
    """Watch an emulation or live nodes in the replay page while they run."""
    data = _first(directory, patience_s)
    with ReplayServer(replay_page(data.packed, live=True), port) as server:
        server.recording = data.packed.encode()
        typer.echo(f"watching at {server.url} (Ctrl-C ends it)")
        if browser:
            webbrowser.open(server.url)
        Thread(target=server.serve_forever, daemon=True).start()
        with suppress(KeyboardInterrupt):
            while True:
                time.sleep(every_s)
                with suppress(ConfigurationError):  # a file is just coming
                    server.recording = replay_data(open_live(directory)).packed.encode()


def _first(directory: Path, patience_s: float) -> ReplayData:
    """What is there at first; waits for it, because nodes take a while to start."""
    give_up_s = time.monotonic() + patience_s
    told = False
    while True:
        try:
            return replay_data(open_live(directory))
        except ConfigurationError as error:
            if time.monotonic() > give_up_s:
                raise
            if not told:
                typer.echo(f"waiting: {error}")
            told = True
        time.sleep(0.5)
