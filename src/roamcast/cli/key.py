"""`roamcast key`: the key file that the members of a network share (`live/keys.py`)."""

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from roamcast.cli.output import console, print_json
from roamcast.errors import ConfigurationError
from roamcast.live.keys import KeyRing, fingerprint, new_ring, read_ring, write_ring

app = typer.Typer(add_completion=False, no_args_is_help=True, help="Make and change the key of a live network.")

AsJson = Annotated[bool, typer.Option("--json", help="Answer with one JSON object.")]
File = Annotated[Path, typer.Argument(help="The key file.")]


@app.command()
def new(
    file: File,
    network: Annotated[str, typer.Option(help="The network's name, as in roamcast node --network.")] = "roamcast",
    as_json: AsJson = False,
) -> None:
    """Make a key for a new network. Copy the file to every node, by a channel you trust.

    Example: roamcast key new rescue.key --network rescue
    """
    ring = new_ring(network, time.time())
    write_ring(file, ring)
    _tell(file, ring, as_json)


@app.command()
def rotate(
    file: File,
    after_s: Annotated[float, typer.Option("--after", help="Seconds until nodes send with the new key.")] = 86_400.0,
    as_json: AsJson = False,
) -> None:
    """Add a key that comes into use later. Copy the file to every node before then, and send each node a SIGHUP.

    Nodes accept the keys before it as well, so no frame is lost on the way. The oldest key goes with the second
    rotation after its own.
    """
    if not 0 <= after_s <= 10 * 365 * 86_400:
        raise ConfigurationError(f"--after = {after_s:g}: must be between 0 s and ten years")
    ring = read_ring(file).rotated(time.time() + after_s)
    write_ring(file, ring, replace=True)
    _tell(file, ring, as_json)


@app.command()
def show(file: File, as_json: AsJson = False) -> None:
    """Show what a key file holds, without its secrets."""
    _tell(file, read_ring(file), as_json)


def _tell(file: Path, ring: KeyRing, as_json: bool) -> None:
    sending = ring.sending(time.time())
    keys: list[dict[str, Any]] = [
        {
            "id": key.id,
            "fingerprint": fingerprint(key),
            "sends_from": datetime.fromtimestamp(key.sends_from_s, UTC).isoformat(timespec="seconds"),
            "in_use": key is sending,
        }
        for key in ring.keys
    ]
    if as_json:
        print_json({"file": str(file), "network": ring.network, "keys": keys})
        return
    console().print(f"{file}: network {ring.network!r}", highlight=False)
    for key in keys:
        use = "in use" if key["in_use"] else "accepted"
        console().print(
            f"  key {key['id']}  {key['fingerprint']}  sends from {key['sends_from']}  {use}", highlight=False
        )
