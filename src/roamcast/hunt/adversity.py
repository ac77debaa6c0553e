"""What adversaries do to each protocol: one of them, 5 % and 20 %, with and without signatures.

All runs of a seed have the same network and the same events, so differences are the adversaries' doing. Counted are
pairs of an event and a subscriber that are both honest and were connected when the event was published.
"""

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from statistics import median
from typing import Any, Literal

import msgspec

from roamcast.events import NUMBER_BITS
from roamcast.hunt.accountant import account
from roamcast.world.adversaries import adversaries
from roamcast.world.radio.models.wifi_g import Wifi80211g
from roamcast.world.scenario import Faults, Mobility, Run, Scenario, Security, Workload
from roamcast.world.simulator import simulate

Kind = Literal["none", "dropper", "liar", "replayer", "flooder", "sybil"]
KINDS: tuple[Kind, ...] = ("dropper", "liar", "replayer", "flooder", "sybil")
STOPPED: tuple[Kind, ...] = ("replayer", "sybil")
"""Those that signatures stop; the others do the same with them."""

NODES = 40
SHARES = {"one": 1 / NODES, "5 %": 0.05, "20 %": 0.2}


class Ordeal(msgspec.Struct, frozen=True):
    """One cell of the table, for one seed."""

    protocol: str
    kind: Kind
    share: float
    signed: bool
    seed: int


class OrdealOutcome(msgspec.Struct, frozen=True):
    ordeal: Ordeal
    delivered: float | None  # share of the honest, connected pairs; None: there were none


def ordeals(protocols: tuple[str, ...], seeds: tuple[int, ...]) -> Iterator[Ordeal]:
    for protocol in protocols:
        for seed in seeds:
            yield Ordeal(protocol, "none", 0.0, signed=False, seed=seed)
            for kind in KINDS:
                for share in SHARES.values():
                    yield Ordeal(protocol, kind, share, signed=False, seed=seed)
                    if kind in STOPPED:
                        yield Ordeal(protocol, kind, share, signed=True, seed=seed)


def scenario_of(ordeal: Ordeal) -> Scenario:
    return Scenario(
        nodes=NODES,
        area_m=(800.0, 800.0),
        duration_s=50.0,
        mobility=Mobility(speed_min_mps=0.5, speed_max_mps=2.0),
        radio=Wifi80211g(range_m=250.0),
        workload=Workload(publisher_share=0.2, rate_per_s=0.3, selectivity=0.2, start_s=15.0),
        faults=Faults(adversary=ordeal.kind, adversary_share=ordeal.share),
        security=Security(protection="signed" if ordeal.signed else "none"),
    )


def undergo(ordeal: Ordeal) -> OrdealOutcome:
    parameters: dict[str, Any] = {"broker_share": 0.3} if ordeal.protocol == "overlays" else {}
    scenario = scenario_of(ordeal)
    run = Run(scenario=scenario, protocol=ordeal.protocol, parameters=parameters, seed=ordeal.seed)
    books = account(simulate(run).recorder.table())
    worst = msgspec.structs.replace(scenario.faults, adversary="liar", adversary_share=max(SHARES.values()))
    suspects = adversaries(msgspec.structs.replace(scenario, faults=worst), ordeal.seed)  # the same pairs in all cells
    honest = [
        debt
        for debt in books.debts
        if debt.hops > 0 and debt.node not in suspects and debt.event_id >> NUMBER_BITS not in suspects
    ]
    paid = sum((debt.event_id, debt.node) in books.delays_s for debt in honest)
    return OrdealOutcome(ordeal, paid / len(honest) if honest else None)


def endure(protocols: tuple[str, ...], jobs: int, seeds: tuple[int, ...]) -> Iterator[OrdealOutcome]:
    """All outcomes, as they come."""
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        yield from pool.map(undergo, ordeals(protocols, seeds))


def adversity_page(outcomes: list[OrdealOutcome]) -> str:
    seeds = len({outcome.ordeal.seed for outcome in outcomes})
    spread = f": the median and the range over {seeds} seeds"
    if seeds == 1:
        spread = ", in one run (`--seeds 1`): small differences are noise"
    protocols = list(dict.fromkeys(outcome.ordeal.protocol for outcome in outcomes))
    lines = [
        "# Adversaries",
        "",
        "What members that work against the network do to it: `roamcast hunt adversaries` makes this page. A cell has",
        f"the share of pairs that were delivered{spread}. A pair is an event",
        "and a subscriber that were connected when the event was published, neither of them an adversary at any share.",
        "",
        f"{NODES} nodes on 800 m x 800 m at 0.5 to 2 m/s over 802.11g, 50 s; a fifth of the nodes publish 0.3 events a",
        "second. `world/adversaries.py` says what each of them does. Signatures stop replayers and Sybils: what is not",
        "its sender's own is refused. Droppers, liars and flooders speak for themselves, and do the same with them.",
        "Live nodes limit what a peer may send, which is not modelled here.",
        "",
    ]
    for kind in KINDS:
        lines += _table(kind, protocols, outcomes)
    return "\n".join(lines)


def _table(kind: Kind, protocols: list[str], outcomes: list[OrdealOutcome]) -> list[str]:
    columns: list[tuple[str, Kind, float, bool]] = [("none", "none", 0.0, False)]
    columns += [(name, kind, share, False) for name, share in SHARES.items()]
    if kind in STOPPED:
        columns += [(f"{name}, signed", kind, share, True) for name, share in SHARES.items()]
    head = f"| protocol | {' | '.join(name for name, *_ in columns)} |"
    rows = [
        f"| {protocol} | " + " | ".join(_cell(outcomes, protocol, *column[1:]) for column in columns) + " |"
        for protocol in protocols
    ]
    return [f"## {kind.capitalize()}", "", head, "|---|" + "---:|" * len(columns), *rows, ""]


def _cell(outcomes: list[OrdealOutcome], protocol: str, kind: Kind, share: float, signed: bool) -> str:
    shares = [
        each.delivered
        for each in outcomes
        if each.delivered is not None
        and (each.ordeal.protocol, each.ordeal.kind, each.ordeal.share, each.ordeal.signed)
        == (protocol, kind, share, signed)
    ]
    if len(shares) == 1:
        return f"{shares[0]:.2f}"
    return f"{median(shares):.2f} ({min(shares):.2f}–{max(shares):.2f})" if shares else "–"
