"""`roamcast replay`: plays a recorded run in a web page, here or in a file for a colleague."""

import webbrowser
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from roamcast.cli.output import print_json
from roamcast.report.replay.data import replay_data
from roamcast.report.replay.page import replay_page
from roamcast.report.replay.recordings import Recording, open_recording
from roamcast.report.replay.server import ReplayServer
from roamcast.world.files import write_whole


def replay(
    directory: Annotated[Path, typer.Argument(help="A trace (simulate --trace) or a campaign.", metavar="DIR")],
    run: Annotated[str | None, typer.Option(help="Of several runs, the one whose id begins like this.")] = None,
    export: Annotated[Path | None, typer.Option(help="Write one self-contained HTML file instead of serving.")] = None,
    port: Annotated[int, typer.Option(help="Of the local server; 0 takes a free one.", min=0, max=65535)] = 0,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page.")] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Answer with one JSON object, and do not serve.")] = False,
) -> None:
    """Play a recorded run in a web page: nodes, links, structure, events and faults over time."""
    recording = open_recording(directory, run)
    data = replay_data(recording)
    page = replay_page(data.packed)
    if export is not None:
        write_whole(export, page)
    answer = _answer(recording, data.found._asdict(), len(page.encode()), export)
    if as_json:
        print_json(answer)
        return
    typer.echo(_told(answer))
    if export is None:
        _serve(page, port, browser)


def _answer(recording: Recording, found: dict[str, Any], page_bytes: int, export: Path | None) -> dict[str, Any]:
    known = recording.known
    return {
        "run_id": known.run_id,
        "protocol": known.protocol,
        "seed": known.seed,
        "settings": known.settings,
        **found,
        "page_bytes": page_bytes,
        "exported": None if export is None else str(export),
        "runs": [
            {"run_id": each.run_id, "protocol": each.protocol, "seed": each.seed, "settings": each.settings}
            for each in recording.others
        ],
    }


def _told(answer: dict[str, Any]) -> str:
    name = " ".join(str(part) for part in (answer["protocol"], answer["run_id"]) if part)
    lines = [
        f"{name}: {answer['nodes']} nodes, {answer['duration_s']:g} s, {answer['publications']:,} events, "
        f"{answer['deliveries']:,} deliveries, {answer['faults']} faults"
    ]
    more = len(answer["runs"]) - 1
    if more:
        example = next(run["run_id"] for run in answer["runs"] if run["run_id"] != answer["run_id"])
        lines.append(f"{more} more runs here; choose with --run, for example --run {example}")
    if answer["exported"]:
        lines.append(f"written to {answer['exported']} ({answer['page_bytes'] / 1e6:.1f} MB)")
    return "\n".join(lines)


def _serve(page: str, port: int, browser: bool) -> None:
    with ReplayServer(page, port) as server:
        typer.echo(f"playing at {server.url} (Ctrl-C ends it)")
        if browser:
            webbrowser.open(server.url)
        with suppress(KeyboardInterrupt):
            server.serve_forever()
