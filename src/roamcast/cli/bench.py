"""`roamcast bench`: how fast the simulator is, and how true to ns-3.

Figures of speed depend on the machine and on what else it is doing: compare figures of one run with each other.
"""

from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np
import typer

from roamcast.bench import fidelity as fidelity_bench
from roamcast.bench import flood as flood_bench
from roamcast.bench import flows as flows_bench
from roamcast.bench import odmrp as odmrp_bench
from roamcast.bench import reference as reference_bench
from roamcast.cli.bench_emulator import emulator
from roamcast.cli.bench_live import live
from roamcast.cli.bench_peers import forms, peers
from roamcast.cli.bench_spark import spark
from roamcast.cli.output import print_json, print_table
from roamcast.world.files import write_whole

app = typer.Typer(add_completion=False, no_args_is_help=True, rich_markup_mode=None)

JsonOption = Annotated[bool, typer.Option("--json", help="Answer as JSON.")]


@app.callback()
def _bench() -> None:
    """Measure speed and fidelity."""


app.command()(spark)
app.command()(emulator)
app.command()(live)
app.command()(peers)
app.command()(forms)


@app.command()
def flood(
    nodes: Annotated[list[int] | None, typer.Option(help="Network sizes, repeatable (50, 250, 1000).")] = None,
    duration_s: Annotated[float, typer.Option("--duration", min=1, help="Simulated seconds.")] = 10.0,
    seed: Annotated[int, typer.Option(help="Decides every random draw.")] = 1,
    json: JsonOption = False,
) -> None:
    """Time floods with the full DCF radio, trace on: 22 sources, one 64-byte payload a second each."""
    figures = [flood_bench.measure(size, duration_s, seed)._asdict() for size in nodes or [50, 250, 1000]]
    by_size = {row["nodes"]: row["us_per_transmission"] for row in figures}
    if json:
        # The requirement is stated for 250 nodes: that size, or the nearest that was measured, stands on top.
        answer: dict[str, Any] = dict(min(figures, key=lambda row: abs(row["nodes"] - 250)))
        answer["sizes"] = figures
        answer["us_per_transmission_largest_to_smallest"] = by_size[max(by_size)] / by_size[min(by_size)]
        print_json(answer)
        return
    print_table(
        "Floods, DCF radio, one core",
        ["nodes", "times real time", "wall s per simulated s", "µs per transmission", "events per s"],
        [
            [
                str(row["nodes"]),
                f"{row['times_real_time']:.1f}",
                f"{row['wall_s_per_simulated_s']:.4f}",
                f"{row['us_per_transmission']:.1f}",
                f"{row['events_per_s']:,.0f}",
            ]
            for row in figures
        ],
    )


@app.command()
def fidelity(
    layouts: Annotated[list[Path], typer.Argument(help="Layout files with ns-3's measurements.")],
    seeds: Annotated[int, typer.Option(min=1, help="Simulations per layout.")] = 3,
    json: JsonOption = False,
) -> None:
    """Run the radio and AODV on layouts that ns-3 measured, and compare."""
    routed = [path for path in layouts if flows_bench.is_reference(path)]
    plain = [path for path in layouts if path not in routed]
    references = [flows_bench.read_reference(path) for path in routed]
    read = [fidelity_bench.read_layout(path) for path in plain]
    results = [
        {"file": str(path), **fidelity_bench.compare(layout, seeds)} for path, layout in zip(plain, read, strict=True)
    ]
    floods = [result["flood"] for result in results]
    mean = {
        name: float(np.mean(differences))
        for name in fidelity_bench.FLOOD_FIGURES
        if (differences := [flood["difference"][name] for flood in floods if name in flood["difference"]])
    }
    aodv = [
        {"file": str(path), **flows_bench.compare(reference, seeds)}
        for path, reference in zip(routed, references, strict=True)
    ]
    aodv_mean = {
        name: float(np.mean([result["difference"][name] for result in aodv]))
        for name in (flows_bench.FIGURES if aodv else ())
    }
    if json:
        print_json({"layouts": results, "flood_difference_mean": mean, "aodv": aodv, "aodv_difference_mean": aodv_mean})
        return
    rows: list[list[str]] = []
    for result in results:
        comparisons = [("flood", result["flood"])]
        comparisons += [(f"unicast {row['packets_per_s_per_node']}/s", row) for row in result.get("unicast", [])]
        for what, row in comparisons:
            for name, ours in row["ours"].items():
                theirs, difference = row["ns3"][name], row["difference"][name]
                rows.append([result["file"], what, name, f"{ours:.4g}", f"{theirs:.4g}", f"{difference:+.1%}"])
    for result in aodv:
        for name, ours in result["ours"].items():
            theirs, difference = result["ns3"][name], result["difference"][name]
            shown = f"{100 * difference:+.1f} points" if name == "delivery" else f"{difference:+.1%}"
            rows.append([result["file"], "AODV", name, f"{ours:.4g}", f"{theirs:.4g}", shown])
    print_table("Beside ns-3", ["layout", "load", "figure", "ours", "ns-3", "difference"], rows)


@app.command()
def reference_radio(
    out: Annotated[Path, typer.Argument(help="File to write, for fidelity.")],
    ns3: Annotated[Path, typer.Option(help="The program built from peers/ns3/wireless.cc (make bench-peers).")],
    seed: Annotated[int, typer.Option(help="Decides positions and shadowing.")] = 1,
) -> None:
    """Draw a layout of 802.11g nodes with shadowed links, and have ns-3 measure floods and unicasts on it."""
    plan = reference_bench.LayoutPlan()
    layout = reference_bench.measure_with_ns3(reference_bench.draw_layout(plan, seed), ns3, plan)
    out.write_bytes(msgspec.json.encode(layout) + b"\n")


@app.command()
def reference(
    out: Annotated[Path, typer.Argument(help="File to write, for fidelity.")],
    ns3: Annotated[Path, typer.Option(help="The program built from peers/ns3/aodv.cc (make bench-peers).")],
    speed_max: Annotated[float, typer.Option(help="Of the nodes, m/s.")] = 10.0,
    seed: Annotated[int, typer.Option(help="Decides movements and flows.")] = 1,
    runs: Annotated[int, typer.Option(min=1, help="Of ns-3, with seeds 1, 2, …")] = 3,
) -> None:
    """Draw movements and flows, and let ns-3's AODV measure them."""
    measured = flows_bench.measured_by_ns3(flows_bench.draw(seed, speed_max), ns3, runs)
    write_whole(out, flows_bench.reference_text(measured))


@app.command()
def odmrp(
    subscriptions: Annotated[int, typer.Option(min=1, help="Of the golf forum, at one broker.")] = 10_000,
    selectivity: Annotated[float, typer.Option(min=0.001, max=1, help="Events that a subscription matches.")] = 0.01,
    seed: Annotated[int, typer.Option(help="Decides every random draw.")] = 1,
    json: JsonOption = False,
) -> None:
    """Time a Pub/Sub ODMRP broker: event digests against summaries, exact evaluation after a hit."""
    figures = odmrp_bench.measure(subscriptions, selectivity=selectivity, seed=seed)
    if json:
        print_json(figures._asdict())
        return
    required = f"{odmrp_bench.REQUIRED_DIGESTS_PER_S:,}"
    print_table(
        f"Broker with {subscriptions:,} subscriptions, one core",
        ["", "measured", "required"],
        [
            ["digests per s", f"{figures.digests_per_s:,.0f}", required],
            ["the same with free text", f"{figures.text_digests_per_s:,.0f}", required],
            ["exact evaluation, µs", f"{figures.evaluation_us:.1f}", f"{odmrp_bench.REQUIRED_EVALUATION_US:g}"],
            ["the same with reading the XML, µs", f"{figures.first_evaluation_us:.1f}", ""],
            ["making a digest, µs", f"{figures.digest_us:.1f}", ""],
            ["adding a subscription, µs", f"{figures.index_us_per_subscription:.1f}", ""],
            ["hits per digest", f"{figures.hits_per_digest:.1f}", ""],
            ["of these false positives", f"{figures.false_positive_share:.0%}", ""],
        ],
    )
