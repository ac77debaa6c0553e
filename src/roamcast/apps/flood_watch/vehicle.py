"""A vehicle with a broker: says where it is, and runs the teams' modulators."""

import asyncio
from collections.abc import Callable

import msgspec

import roamcast
from roamcast.apps.flood_watch.network import PERIOD_S, vehicle_topic


class VehicleReport(msgspec.Struct, frozen=True):
    """What a vehicle publishes about itself."""

    x_m: float
    y_m: float
    load: float  # of its broker
    name: str = ""


async def run_vehicle(node: roamcast.Node, place: Callable[[], tuple[float, float]], name: str = "") -> None:
    """Until it is cancelled. `place` is where the vehicle is now, in metres east and north."""
    topic = vehicle_topic(node.address)
    node.advertise(topic)
    while True:
        x_m, y_m = place()
        node.move(x_m, y_m)
        load = node.standing["load"].value if "load" in node.standing else 0.0
        report = VehicleReport(round(x_m, 1), round(y_m, 1), round(load, 4), name)
        await node.publish(topic, msgspec.json.encode(report))
        await asyncio.sleep(PERIOD_S)
