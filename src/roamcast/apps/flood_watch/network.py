"""What all parts of Flood Watch agree on: topics, addresses, and the parameters of the overlay."""

from typing import Any

from roamcast.apps.flood_watch.terrain import SIZE

RAIN = "rain/field"
VEHICLES = "vehicle/*"
GRID_BYTES = SIZE * SIZE * 8

VEHICLE_ADDRESSES = range(1, 100)  # in the demonstration; elsewhere any address will do
STATION_ADDRESS = 100
TEAM_ADDRESSES = range(200, 300)

PERIOD_S = 2.0
"""From one grid of rain to the next."""

RAIN_S = 120
"""Seconds of rain that one grid stands for: time is compressed, so that a flood takes a minute to come."""

STEPS = 12
"""Of the run-off model, per grid."""

_PARAMETERS: dict[str, Any] = {
    "discovery_period_s": 3.0,
    "update_period_s": 4.0,
    "bootstrap_s": 6.0,
    "bootstrap_period_s": 1.0,
    "hysteresis_hops": 0.5,
    "home_timeout_s": 8.0,
}


def vehicle_topic(address: int) -> str:
    return f"vehicle/{address}"


def parameters(*, vehicle: bool, one_computer: bool = False) -> dict[str, Any]:
    """Of the overlay. Vehicles are the brokers; on one computer, its load says nothing about any of them."""
    return _PARAMETERS | {"broker_share": 1.0 if vehicle else 0.0, "machine_load": not one_computer}
