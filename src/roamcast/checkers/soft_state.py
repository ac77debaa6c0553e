"""Invariants of soft state: it stays within its bounds, and expires unless refreshed.

`SLACK_S` covers timers that are spread at random. Clocks are those of the nodes, so the checkers of expiry are for runs
in which no clock jumps and no node is paused.
"""

from collections import Counter

from roamcast.checkers.watch import InvariantError
from roamcast.protocols.georendezvous import GeoRendezvous
from roamcast.protocols.georendezvous.messages import SUBSCRIPTION, key_of
from roamcast.protocols.georendezvous.parameters import GeoRendezvousParameters
from roamcast.protocols.odmrp import Odmrp
from roamcast.protocols.odmrp.parameters import OdmrpParameters
from roamcast.protocols.overlays import Overlays
from roamcast.protocols.overlays.parameters import OverlaysParameters
from roamcast.world.simulator import Simulation

SLACK_S = 1.0


def check_mesh_bounds(simulation: Simulation) -> None:
    """ODMRP: routes and members behind a node are no more than allowed."""
    parameters = simulation.parameters
    assert isinstance(parameters, OdmrpParameters)
    for address, protocol in enumerate(simulation.protocols):
        if not isinstance(protocol, Odmrp):
            continue
        mesh = protocol.mesh
        if len(mesh.routes) > parameters.publishers_max:
            raise InvariantError(f"{address} has {len(mesh.routes)} routes; {parameters.publishers_max} are allowed")
        for publisher, behind in mesh.downstream.items():
            if len(behind) > parameters.members_max:
                raise InvariantError(f"{address} forwards from {publisher} to {len(behind)} members")


def check_mesh_expiry(simulation: Simulation) -> None:
    """ODMRP 3.5: forwarding state that no Join Table renews ends after the forwarding timeout, and routes do, too."""
    parameters = simulation.parameters
    assert isinstance(parameters, OdmrpParameters)
    sweep_s = parameters.forwarding_timeout_s / parameters.sweeps_per_timeout + SLACK_S
    for address, protocol in enumerate(simulation.protocols):
        if not isinstance(protocol, Odmrp):
            continue
        now_s = protocol.host.now()
        for publisher, route in protocol.mesh.routes.items():
            if route.heard_s + parameters.forwarding_timeout_s + sweep_s < now_s:
                raise InvariantError(f"{address} has had a route to {publisher} since {route.heard_s:.2f} s")
        for publisher, behind in protocol.mesh.downstream.items():
            for member, kept in behind.items():
                if kept.expires_s + sweep_s < now_s:
                    raise InvariantError(f"{address} still forwards from {publisher} to {member}")


def check_shelf_bounds(simulation: Simulation) -> None:
    """GeoRendezvous: keys, entries per key and entries per owner are no more than allowed."""
    parameters = simulation.parameters
    assert isinstance(parameters, GeoRendezvousParameters)
    for address, protocol in enumerate(simulation.protocols):
        if not isinstance(protocol, GeoRendezvous):
            continue
        store = protocol.table.store
        if len(store) > parameters.keys_max:
            raise InvariantError(f"{address} keeps {len(store)} keys; {parameters.keys_max} are allowed")
        owned: Counter[int] = Counter()
        for shelf in store:
            if len(shelf.kept) > parameters.entries_max:
                raise InvariantError(f"{address} keeps {len(shelf.kept)} entries under {shelf.key}")
            owned.update(owner for owner, _ in shelf.kept)
        if owned and max(owned.values()) > parameters.owner_entries_max:
            raise InvariantError(f"{address} keeps {max(owned.values())} entries of one owner")


def check_shelf_expiry(simulation: Simulation) -> None:
    """GeoRendezvous 2.2: an entry that its owner does not repeat ends with its lifetime, at the next custody."""
    parameters = simulation.parameters
    assert isinstance(parameters, GeoRendezvousParameters)
    custody_s = parameters.custody_period_s * (1 + 2 * parameters.jitter) + SLACK_S
    for address, protocol in enumerate(simulation.protocols):
        if not isinstance(protocol, GeoRendezvous):
            continue
        now_s = protocol.host.now()
        for shelf in protocol.table.store:
            for (owner, _), kept in shelf.kept.items():
                if kept.expires_s + custody_s < now_s:
                    raise InvariantError(f"{address} keeps an entry of {owner} that ended at {kept.expires_s:.2f} s")


def check_rendezvous(simulation: Simulation) -> None:
    """GeoRendezvous 2.4, in a network at rest: each point at which a node subscribes is kept by someone, and there the
    node is among the subscribers."""
    nodes = {node: p for node, p in enumerate(simulation.protocols) if isinstance(p, GeoRendezvous)}
    present: set[tuple[str, int]] = set()
    for protocol in nodes.values():
        for shelf in protocol.table.store:
            present.update((shelf.key, kept.owner) for kept in shelf.present(SUBSCRIPTION))
    for address, protocol in nodes.items():
        for bucket, followed in protocol.subscriber.followed.items():
            for point in followed.points:
                if (key_of(bucket, point), address) not in present:
                    raise InvariantError(f"no node keeps the subscription of {address} at point {point} of {bucket}")


def check_cursor_bounds(simulation: Simulation) -> None:
    """Opportunistic Overlays: a consumer remembers how far it got with a bounded number of publishers."""
    parameters = simulation.parameters
    assert isinstance(parameters, OverlaysParameters)
    for address, protocol in enumerate(simulation.protocols):
        if isinstance(protocol, Overlays) and len(protocol.member.reception.cursors) > parameters.publishers_max:
            raise InvariantError(f"{address} remembers {len(protocol.member.reception.cursors)} publishers")
