"""What each protocol promises once a network is left in peace: by when, how quickly, and with which exceptions.

The promise holds in a network that does not move, over a radio that loses nothing, for subscribers that a chain of
links leads to. `heal_s` after the last fault, every event arrives `within_s`.

| protocol | exception |
|---|---|
| flooding | none on a radio without loss; with loss an event is lost where all copies that a node would hear are |
| gossip | beyond `certain_hops` an event arrives with a probability; nodes within two hops get it for certain |
| somer | none of its rules makes it complete at rest (thesis, chapter 6, measures what arrives): no promise |
| all trees | with `report_again`; as published, a report that its link acknowledged is never sent again |
| overlays | needs a broker: a component of the network without one delivers nothing |
| all | nodes whose clock was set to run fast or slow are judged after it runs true again |
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from roamcast.protocols.api import Parameters
from roamcast.protocols.catalogue import protocol_parameters


class Promise(NamedTuple):
    heal_s: float  # after the last fault
    within_s: float  # an event's way
    hops: int | None = None  # only to nodes that are this near; None: to all


def promise(protocol: str, settings: dict[str, Any]) -> Promise | None:
    """With these parameters; None: the protocol promises nothing."""
    rule = _RULES.get(protocol)
    return None if rule is None else rule(protocol_parameters(protocol, settings))


def _flooding(parameters: Any) -> Promise:
    return Promise(heal_s=2.0, within_s=2.0 + 30 * parameters.jitter_s)


def _gossip(parameters: Any) -> Promise:
    return Promise(2.0, 2.0 + 30 * parameters.jitter_s, hops=2 if parameters.certain_hops >= 1 else 1)


def _oracle(parameters: Any) -> Promise:
    return Promise(2.0, 2.0)


def _tree(parameters: Any) -> Promise:
    """Silence makes either end of a link forget the other; a refresh and the linger time come on top. Three of these,
    because a merge may follow a merge."""
    agreement_s = parameters.silence_s + parameters.refresh_period_s + parameters.linger_s + 3.0
    again_s = parameters.report_again * parameters.refresh_period_s * (1 + parameters.jitter)
    return Promise(3 * agreement_s + 2 * again_s + 10.0, 2.0)


def _trees_and_roots(parameters: Any) -> Promise:
    """Roots that are no longer heard of are forgotten after the lifetime of their entries."""
    tree = _tree(parameters)
    entries_s = parameters.entry_lifetime_periods * parameters.advertisement_period_s
    return Promise(tree.heal_s + 2 * entries_s, 4.0)


def _odmrp(parameters: Any) -> Promise:
    """Routes and members that have gone are forgotten after the forwarding timeout, brokers by their clients."""
    clients_s = parameters.client_refresh_s * (parameters.client_refreshes_max + 1)
    return Promise(2 * parameters.forwarding_timeout_s + clients_s, parameters.route_wait_s + 5.0)


def _georendezvous(parameters: Any) -> Promise:
    """Entries are repeated by their owners and by their cell, and homes of empty cells check on themselves."""
    entries_s = parameters.lifetime_periods * max(parameters.refresh_period_s, parameters.advertisement_period_s)
    return Promise(entries_s + 2 * parameters.verification_period_s + 10.0, 4.0)


def _overlays(parameters: Any) -> Promise:
    """Brokers forget silent ones; clients find a home; what waited in stores has been delivered or has expired."""
    brokers_s = parameters.silent_periods * parameters.update_period_s
    homes_s = parameters.home_timeout_s + parameters.discovery_period_s + parameters.handoff_timeout_s
    return Promise(brokers_s + 2 * homes_s + parameters.alone_s, 10.0)


def _waymark(parameters: Any) -> Promise:
    """Links are judged by hellos; what has no path meanwhile is kept and delivered later."""
    hello_s = max(parameters.hello_max_s, parameters.hello_placed_s)
    return Promise(4 * hello_s + 10.0, 5.0)


_RULES: dict[str, Callable[[Parameters], Promise]] = {
    "flooding": _flooding,
    "gossip": _gossip,
    "oracle": _oracle,
    "oracle-broadcast": _oracle,
    "ps-maodv": _tree,
    "sp-combo": _tree,
    "dsapst": _tree,
    "somer-plus": _trees_and_roots,
    "odmrp": _odmrp,
    "georendezvous": _georendezvous,
    "overlays": _overlays,
    "waymark": _waymark,
}
