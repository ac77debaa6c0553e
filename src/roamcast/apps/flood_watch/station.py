"""The source: publishes where it rains and how much, every period."""

import asyncio
import time

import roamcast
from roamcast.apps.flood_watch.network import PERIOD_S, RAIN, RAIN_S
from roamcast.apps.flood_watch.storms import Storms


async def run_station(node: roamcast.Node, seed: int) -> None:
    """Until it is cancelled."""
    storms = Storms(seed)
    node.advertise(RAIN)
    began_s = time.monotonic()
    number = 0
    while True:
        rain = storms.rain(number * RAIN_S / 60)
        await node.publish(RAIN, rain.astype("<f8").tobytes())
        number += 1
        await asyncio.sleep(max(0.0, began_s + number * PERIOD_S - time.monotonic()))
