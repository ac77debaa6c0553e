"""`roamcast why`: explains why a node did not get an event."""

from pathlib import Path
from typing import Annotated

import msgspec
import typer

from roamcast.cli.output import print_json
from roamcast.errors import ConfigurationError
from roamcast.events import NUMBER_BITS, event_id
from roamcast.report.replay.recordings import open_recording
from roamcast.trace.why import Why, explain

SHOWN = 12  # frames and drops in the answer for readers


def why(
    directory: Annotated[Path, typer.Argument(help="A trace (simulate --trace) or a campaign.", metavar="TRACE")],
    event: Annotated[str, typer.Argument(help="The event: its id, or PUBLISHER/NUMBER.", metavar="EVENT")],
    node: Annotated[int, typer.Argument(help="The node that did not get it.", metavar="NODE", min=0)],
    run: Annotated[str | None, typer.Option(help="Of several runs, the one whose id begins like this.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Answer with one JSON object.")] = False,
) -> None:
    """Explain why a node did not get an event. Traces with --raw-frames say more."""
    found = explain(open_recording(directory, run).trace, _event_id(event), node)
    if as_json:
        print_json(msgspec.to_builtins(found))
    else:
        typer.echo("\n".join(told(found)))


def _event_id(text: str) -> int:
    publisher, separator, number = text.partition("/")
    try:
        return event_id(int(publisher), int(number)) if separator else int(text)
    except ValueError:
        raise ConfigurationError(f"EVENT: {text!r} is neither an id nor PUBLISHER/NUMBER") from None


def told(why: Why) -> list[str]:
    """The answer in words: the verdict first, then the facts."""
    name = f"{why.event_id >> NUMBER_BITS}/{why.event_id & (1 << NUMBER_BITS) - 1}"
    lines = [f"event {name}, published by {why.publisher} at {why.published_s:.3f} s: {_sentence(why)}"]
    others = len(why.delivered_to)
    lines.append(f"delivered to {others} other node{'' if others == 1 else 's'}: {_listed(why.delivered_to)}")
    after_ms = [1000 * (frame.t - why.published_s) for frame in why.sent]
    for frame, ms in list(zip(why.sent, after_ms, strict=True))[:SHOWN]:
        peer = "all" if frame.peer is None else str(frame.peer)
        note = f"  <- in range of {why.node}" if frame.in_range else ""
        lines.append(f"{ms:+11.1f} ms  {frame.node} -> {peer}  {frame.label}{note}")
    if len(why.sent) > SHOWN:
        lines.append(f"            and {len(why.sent) - SHOWN} more frames")
    for drop in why.dropped[:SHOWN]:
        lines.append(f"{1000 * (drop.t - why.published_s):+11.1f} ms  {drop.node} drops it: {drop.reason}")
    if len(why.dropped) > SHOWN:
        lines.append(f"            and {len(why.dropped) - SHOWN} more drops")
    return lines


def _sentence(why: Why) -> str:
    node = why.node
    match why.verdict:
        case "delivered":
            assert why.latency_s is not None
            return f"{node} got it after {1000 * why.latency_s:.1f} ms"
        case "own":
            return f"{node} is its publisher, and no application is served its own events"
        case "unwanted":
            return f"{node} did not want it at that time"
        case "down":
            back = "never came back" if why.down_until_s is None else f"was up again at {why.down_until_s:.3f} s"
            return f"{node} was down at that time and {back}"
        case "unreachable":
            return f"no chain of contacts led to {node} at that time; {_later(why)}"
        case "stopped":
            return (
                f"there was a path of {why.shortest_hops} hops to {node}, but no node in range of {node} sent the event"
            )
        case "missed":
            senders = sorted({frame.node for frame in why.sent if frame.in_range})
            return f"{_listed(senders)} sent it in range of {node}, which received none of these frames"
        case _:
            path = "" if why.shortest_hops is None else f" over a path of {why.shortest_hops} hops"
            return f"{node} could have got it{path}; run with --raw-frames to see which frames carried it"


def _later(why: Why) -> str:
    if why.path_s is None:
        return "nor later, even if every node had kept the event"
    return f"with patience it could have arrived {why.path_s - why.published_s:.1f} s later"


def _listed(nodes: list[int]) -> str:
    return ", ".join(map(str, nodes[:SHOWN])) + (", ..." if len(nodes) > SHOWN else "") if nodes else "none"
