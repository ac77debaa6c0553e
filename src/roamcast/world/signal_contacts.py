"""Contacts where signals differ in strength: when each link works in both directions.

The simulator and `roamcast mobility` use the same links, from the same seed, at the same instants.
"""

from roamcast.errors import ConfigurationError
from roamcast.seeds import derive
from roamcast.world.contacts import ContactPlan
from roamcast.world.mobility import Movements
from roamcast.world.radio.links import RadioLinks, update_period_s
from roamcast.world.radio.signals import Disc
from roamcast.world.scenario import Scenario


def signal_links(scenario: Scenario, movements: Movements | None, seed: int) -> RadioLinks | None:
    """None on discs, where the distance decides everything."""
    radio = scenario.radio
    if type(radio.signal) is Disc:
        return None
    if movements is None:
        raise ConfigurationError("scenario.radio.signal.model: must be 'disc' if mobility.model = 'contacts'")
    return RadioLinks(radio.signal, radio.range_m, radio.floor_db, movements, derive(seed, "shadowing"))


def update_times_s(scenario: Scenario, movements: Movements) -> list[float]:
    """When links are computed after the start: again and again while nodes move, and when a partition changes them."""
    radio = scenario.radio
    period_s = update_period_s(radio.signal, radio.range_m, movements, scenario.duration_s)
    times_s = {edge_s for part in scenario.partitions() for edge_s in (part.from_s, part.until_s)}
    if period_s < scenario.duration_s:
        times_s.update(step * period_s for step in range(1, int(scenario.duration_s / period_s) + 1))
    return sorted(times_s - {0.0})


def signal_contacts(scenario: Scenario, movements: Movements, links: RadioLinks) -> ContactPlan:
    """The contacts of a run, as its trace has them. Fading, which changes with each frame, does not count."""
    contacts: list[tuple[int, int, float, float]] = []
    since_s: dict[tuple[int, int], float] = {}
    for t_s in [0.0, *update_times_s(scenario, movements), scenario.duration_s]:
        if t_s < scenario.duration_s:
            links.update(t_s, scenario.partitions())
        now = links.contacts() if t_s < scenario.duration_s else set()
        contacts += ((*pair, since_s.pop(pair), t_s) for pair in sorted(since_s.keys() - now))
        since_s |= dict.fromkeys(sorted(now - since_s.keys()), t_s)
    plan = ContactPlan.from_list(contacts, scenario.nodes, scenario.duration_s)
    return plan.while_present(scenario.mobility.present)
