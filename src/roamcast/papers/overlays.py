"""The figures of the Opportunistic Overlays paper."""

from roamcast.papers import overlays_brokers, overlays_clients, overlays_floodwatch, overlays_load

FIGURES = (
    *overlays_brokers.FIGURES,
    *overlays_clients.FIGURES,
    *overlays_load.FIGURES,
    *overlays_floodwatch.FIGURES,
)
