"""`roamcast emulate`: the scenario of `roamcast simulate`, run by real nodes on this machine, in real time.

Every node is a `roamcast node` process in a network namespace of its own. Linux only; root is not needed where the
system allows user namespaces. The trace is like a simulated run's, so `replay`, `why`, `sql` and reports read it.
"""

from pathlib import Path
from typing import Annotated

import typer

from roamcast.cli.output import print_json
from roamcast.cli.settings import assignments
from roamcast.cli.simulate import tell_summary
from roamcast.emulator.emulation import EmulationSettings, require_emulable
from roamcast.emulator.emulation import emulate as emulate_run
from roamcast.emulator.machines import enter_own_network
from roamcast.library.simulations import described_run
from roamcast.trace.files import read_trace, require_writable
from roamcast.trace.summary import summarise
from roamcast.world.radio.models.ideal import Ideal

BEHIND_S = 0.1  # by more than this the machine was too slow for real time


def emulate(
    scenario: Annotated[Path, typer.Argument(metavar="SCENARIO", help="A scenario file, as for simulate.")],
    out: Annotated[Path, typer.Option(help="New directory for the trace.")],
    protocol: Annotated[str | None, typer.Option(help="As in roamcast protocols.")] = None,
    settings: Annotated[list[str] | None, typer.Option("--set", help="A protocol's parameter, name=value.")] = None,
    seed: Annotated[int | None, typer.Option(help="Decides movements, workload and faults.")] = None,
    nodes: Annotated[int | None, typer.Option(help="Number of nodes.")] = None,
    duration_s: Annotated[float | None, typer.Option("--duration", help="Seconds of real time.")] = None,
    rate_mbps: Annotated[float | None, typer.Option("--rate", help="Mbit/s of each link; without it, any.")] = None,
    shared_mbps: Annotated[
        float | None,
        typer.Option("--shared-medium", help="Mbit/s that stations in range share; without it links do not contend."),
    ] = None,
    cpu_share: Annotated[
        float, typer.Option(help="Share of a core that each machine has; computation counts as that much slower.")
    ] = 1.0,
    as_json: Annotated[bool, typer.Option("--json", help="Answer with one JSON object.")] = False,
) -> None:
    """Run a scenario with real nodes on one machine, in real time."""
    given = {"nodes": nodes, "duration_s": duration_s}
    run = described_run(
        scenario,
        protocol=protocol,
        parameters=assignments("--set", settings or []),
        seed=seed,
        **{name: value for name, value in given.items() if value is not None},
    )
    emulation = EmulationSettings(rate_mbps, shared_mbps, cpu_share)
    require_emulable(run)
    require_writable(out)
    if not isinstance(run.scenario.radio, Ideal):
        model = run.scenario.radio.__struct_config__.tag
        typer.echo(
            f"roamcast: of the radio {model} only range, signals and loss are emulated: no collisions, and frames take "
            "no time unless --rate or --shared-medium says so",
            err=True,
        )
    enter_own_network()
    result = emulate_run(run, out, emulation, tell=lambda line: typer.echo(f"roamcast: {line}", err=True))
    if result.behind_s > BEHIND_S:
        typer.echo(
            f"roamcast: WARNING: this machine fell behind real time by up to {result.behind_s:.2f} s; "
            "latencies are too long. Use fewer nodes or fewer events",
            err=True,
        )
    answer = {
        "protocol": run.protocol,
        "parameters": run.parameters,
        "seed": run.seed,
        **summarise(read_trace(out)),
        "behind_s": round(result.behind_s, 3),
        "air_frames": result.air_frames,
        "air_bytes": result.air_bytes,
        "trace": str(out),
    }
    if as_json:
        print_json(answer)
        return
    in_time = f"{1000 * result.behind_s:.0f} ms behind real time at most"
    crossed = f"{result.air_frames:,} ({result.air_bytes / 1000:,.0f} kB), acknowledgements included"
    tell_summary(answer, [("crossed the air", crossed), ("kept time", in_time), ("trace", str(out))])
