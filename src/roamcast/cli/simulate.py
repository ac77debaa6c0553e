"""`roamcast simulate`: one network, one protocol, one seed; a summary, and the trace if it is wanted.

Everything that can be refused, an unwritable trace directory included, is refused before the simulation starts.
"""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from roamcast.cli.output import console, number, print_json
from roamcast.cli.scenario_options import takes_run
from roamcast.library.traces import Trace
from roamcast.trace.summary import summarise
from roamcast.world import simulator
from roamcast.world.capture import Capture
from roamcast.world.scenario import Run


@takes_run
def simulate(
    run: Run,
    trace: Annotated[Path | None, typer.Option(help="Keep the trace as Parquet in this new directory.")] = None,
    pcap: Annotated[Path | None, typer.Option(help="Write all frames to this file, for Wireshark or tshark.")] = None,
    raw_frames: Annotated[bool, typer.Option("--raw-frames", help="A trace row per frame, not per second.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Answer with one JSON object.")] = False,
) -> None:
    """Simulate one network and summarise what happened."""
    if trace is not None:
        _require_writable(trace)
    if pcap is None:
        result = simulator.simulate(run, raw_frames=raw_frames)
    else:
        result = _captured(run, raw_frames, pcap)
    if trace is not None:
        Trace(result.recorder, run).save(trace)
    answer = {
        "protocol": run.protocol,
        "parameters": run.parameters,
        "seed": run.seed,
        **summarise(result.recorder),
        "wall_s": result.wall_s,
        "events": result.events,
        "events_per_s": result.events / result.wall_s,
        "run_id": result.recorder.run_id,
        "trace_hash": result.recorder.trace_hash(),
    }
    if as_json:
        print_json(answer)
    else:
        computed = f"{result.wall_s:.2f} s, {answer['events_per_s']:,.0f} events per second"
        tell_summary(answer, [("computed in", computed), ("trace hash", answer["trace_hash"])])


class _Refusing:
    """Goes into `sys.meta_path` and answers that a module is not installed."""

    def __init__(self, name: str) -> None:
        self._name = name

    def find_spec(self, fullname: str, *_: object) -> None:
        if fullname == self._name:
            raise ModuleNotFoundError(f"{fullname} is left out", name=fullname)


def _require_writable(directory: Path) -> None:
    """Refuses what could not be written, before the simulation."""
    from roamcast.trace.files import require_writable  # only now: it brings Arrow

    _leave_pandas_out()
    require_writable(directory)


def _leave_pandas_out() -> None:
    """On its first conversion Arrow imports pandas, if there is one, to recognise data frames. None come up here, and
    the import would take longer than a small simulation. A later call of `to_pandas` still finds it."""
    import pyarrow as pa

    if "pandas" in sys.modules:
        return
    refusing = _Refusing("pandas")
    sys.meta_path.insert(0, refusing)
    try:
        pa.array([0])
    finally:
        sys.meta_path.remove(refusing)


def _captured(run: Run, raw_frames: bool, pcap: Path) -> simulator.Result:
    capture = Capture(pcap, run.scenario.radio)
    try:
        result = simulator.simulate(run, raw_frames=raw_frames, on_frame=capture.frame)
        capture.close()
    except BaseException:
        capture.abandon()
        raise
    return result


def tell_summary(answer: dict[str, Any], further: list[tuple[str, str]]) -> None:
    """A run's measures for people, and what else there is to say."""
    where = f"{answer['nodes']} nodes, {answer['duration_s']:g} s, seed {answer['seed']}"
    title = f"{answer['protocol']}: {where}"
    table = Table(show_header=False, box=None, pad_edge=False, title=title, title_justify="left")
    table.add_column(style="bold")
    table.add_column()
    for name, value in [*_lines(answer), *further]:
        table.add_row(name, value)
    console().print(table)


def _timeliness(answer: dict[str, Any]) -> str:
    """Shares of the expected pairs; utility only if the events carry any."""
    shares = [("100 ms", "within_100ms"), ("250 ms", "within_250ms"), ("1 s", "within_1s")]
    told = [f"{number(100 * answer[name], '%')} within {limit}" for limit, name in shares if answer[name] is not None]
    if answer["utility_ratio"] is not None:
        told.append(f"{number(100 * answer['within_own'], '%')} by their own deadlines")
        told.append(f"{number(100 * answer['utility_ratio'], '%')} of the utility")
    return ", ".join(told) or "–"


def _energy(answer: dict[str, Any]) -> str:
    per_delivery, lifetime_s = answer["energy_mj_per_delivery"], answer["lifetime_first_node_s"]
    hours = None if lifetime_s is None else lifetime_s / 3600
    return f"{number(per_delivery, 'mJ')} per delivery, first battery empty after {number(hours, 'h')}"


def _lines(answer: dict[str, Any]) -> list[tuple[str, str]]:
    def share(delivered: str, expected: str, ratio: str) -> str:
        percent = number(None if answer[ratio] is None else 100 * answer[ratio], "%")
        return f"{percent} ({answer[delivered]:,} of {answer[expected]:,})"

    latency = ", ".join(
        f"{name} {number(answer[f'latency_ms_{name}'])}" for name in ("mean", "p50", "p95", "p99")
    )
    frames = [
        (f"frames {label}", f"{count:,} ({number(answer['bytes'][label] / 1000, 'kB')})")
        for label, count in answer["frames"].items()
    ]
    lost = [(f"lost: {reason}", f"{count:,}") for reason, count in answer["frames_lost"].items()]
    dropped = [(f"dropped: {reason}", f"{count:,}") for reason, count in answer["dropped"].items()]
    return [
        ("publications", f"{answer['publications']:,}"),
        ("delivered", share("delivered", "expected", "delivery_ratio")),
        ("of the reachable", share("delivered_reachable", "expected_reachable", "delivery_ratio_reachable")),
        ("in time", _timeliness(answer)),
        ("duplicates", f"{answer['duplicates']:,}"),
        ("latency, ms", latency),
        ("hops", f"{number(answer['hops_mean'])}, {number(answer['stretch_mean'])} times the shortest path"),
        *frames,
        ("frames per delivery", number(answer["frames_per_delivery"])),
        ("energy", _energy(answer)),
        *lost,
        *dropped,
    ]
