"""Roamcast compiled beside Roamcast interpreted: every protocol in the same network, and two long or large SOMER runs.

The network is that of SOMER's experiments (`papers/somer_setting.py`) with 250 nodes at its high rate of events; the
long run has the low rate and the thesis' 1000 s. Each simulation has a process of its own; the two forms take turns.
Both leave the same trace, which is checked here too.
"""

from collections.abc import Callable, Iterable
from math import sqrt
from statistics import median

import msgspec

from roamcast import __version__
from roamcast.bench.processes import FORMS, WORKER, Machine, ask, this_machine
from roamcast.errors import CallerError
from roamcast.protocols.catalogue import PROTOCOLS
from roamcast.world.radio.models.wifi_b import Wifi80211b
from roamcast.world.scenario import Causal, Mobility, Run, Scenario, Workload

NODES = 250
NODES_OF_LARGE = 1000
DURATION_S = 30.0
DURATION_S_OF_LONG = 1000.0
LONG_S = 5.0  # what took longer than this is not run a second time
LOW_RATE_PER_S, HIGH_RATE_PER_S = 0.05, 0.2


class Pair(msgspec.Struct, frozen=True):
    """One protocol in both forms, in seconds of processor."""

    protocol: str
    compiled_s: float
    interpreted_s: float

    @property
    def ratio(self) -> float:
        return self.interpreted_s / self.compiled_s


class Single(msgspec.Struct, frozen=True):
    """One compiled run."""

    nodes: int
    simulated_s: float
    cpu_s: float
    wall_s: float
    peak_mib: float


class Forms(msgspec.Struct, frozen=True):
    machine: Machine
    version: str
    pairs: tuple[Pair, ...]
    long: Single | None  # SOMER for 1000 s
    large: Single | None  # SOMER with 1000 nodes


def scenario(nodes: int, duration_s: float, *, rate_per_s: float, start_s: float, tail_s: float) -> Scenario:
    side_m = round(1000 * sqrt(nodes / 50), 1)
    return Scenario(
        nodes=nodes,
        area_m=(side_m, side_m),
        duration_s=duration_s,
        radio=Wifi80211b(preset="ns2"),
        mobility=Mobility(pause_min_s=1, pause_max_s=3),
        workload=Workload(
            publisher_share=0.35,
            rate_per_s=rate_per_s,
            start_s=start_s,
            tail_s=tail_s,
            causal=Causal(dependencies="a => b; a => c; a => d; b => e; c => e", rate_per_s=0.05),
        ),
    )


def short_run(protocol: str, nodes: int = NODES) -> Run:
    busy = scenario(nodes, DURATION_S, rate_per_s=HIGH_RATE_PER_S, start_s=10, tail_s=5)
    return Run(scenario=busy, protocol=protocol)


def long_run() -> Run:
    thesis = scenario(NODES, DURATION_S_OF_LONG, rate_per_s=LOW_RATE_PER_S, start_s=40, tail_s=10)
    return Run(scenario=thesis, protocol="somer")


def measure(protocols: Iterable[str], runs: int, tell: Callable[[str], None], *, singles: bool = True) -> Forms:
    machine = this_machine()
    pairs = tuple(_pair(protocol, runs, tell) for protocol in protocols or PROTOCOLS)
    long, large = None, None
    if singles:
        long = _single(long_run())
        tell(f"somer, {NODES} nodes, {DURATION_S_OF_LONG:g} s: {long.wall_s:.1f} s")
        large = _single(short_run("somer", NODES_OF_LARGE))
        tell(f"somer, {NODES_OF_LARGE} nodes, {DURATION_S:g} s: {large.peak_mib:.0f} MiB")
    return Forms(machine, __version__, pairs, long, large)


def _pair(protocol: str, runs: int, tell: Callable[[str], None]) -> Pair:
    given = msgspec.json.encode(short_run(protocol))
    seconds: dict[str, list[float]] = {form: [] for form in FORMS}
    hashes = set()
    for _ in range(runs):
        for form in FORMS:
            if not seconds[form] or seconds[form][-1] < LONG_S:
                answer = ask(f"{protocol}, {form}", WORKER, form=form, given=given)
                seconds[form].append(answer["cpu_s"])
                hashes.add(answer["trace_hash"])
    if len(hashes) != 1:
        raise CallerError(f"{protocol}: the two forms leave different traces")
    pair = Pair(protocol, *(median(seconds[form]) for form in FORMS))
    tell(f"{protocol}: compiled {pair.compiled_s:.2f} s, interpreted {pair.interpreted_s:.2f} s")
    return pair


def _single(run: Run) -> Single:
    answer = ask(f"{run.protocol}, compiled", WORKER, form="compiled", given=msgspec.json.encode(run))
    return Single(run.scenario.nodes, run.scenario.duration_s, answer["cpu_s"], answer["wall_s"], answer["peak_mib"])


COLUMNS = ("protocol", "compiled, CPU s", "interpreted, CPU s", "ratio")


def table(forms: Forms) -> list[list[str]]:
    """Rows under `COLUMNS`."""
    return [
        [pair.protocol, f"{pair.compiled_s:.2f}", f"{pair.interpreted_s:.2f}", f"{pair.ratio:.2f}"]
        for pair in forms.pairs
    ]
