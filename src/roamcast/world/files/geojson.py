"""Movements as GeoJSON (RFC 7946), for QGIS, kepler.gl and web maps.

One feature per node: a line with a property `times_s` that has the time of each of its positions, or a point for a node
that never moves. `properties` also has `node`, `name` if the node has one, and `from_s` and `until_s` if it is present
only for a while. Coordinates are longitude and latitude. A scenario without geography lies where it is put by
`origin_deg`, or else with its south-west corner at latitude 0, longitude 0.
"""

from typing import Any, Final

import msgspec

from roamcast.world.files.recording import metres_per_degree
from roamcast.world.mobility import Corner, Movements
from roamcast.world.scenario import Scenario

_DIGITS: Final = 8  # of a degree: about a millimetre


def geojson_text(scenario: Scenario, movements: Movements) -> str:
    features = [_feature(scenario, movements, node) for node in range(movements.nodes)]
    collection = {"type": "FeatureCollection", "features": features}
    return msgspec.json.format(msgspec.json.encode(collection), indent=1).decode() + "\n"


def _feature(scenario: Scenario, movements: Movements, node: int) -> dict[str, Any]:
    mobility = scenario.mobility
    corners = movements.until(node, scenario.duration_s)
    properties: dict[str, Any] = {"node": node}
    if mobility.names:
        properties["name"] = mobility.names[node]
    if mobility.present:
        properties["from_s"], properties["until_s"] = mobility.present[node]
    places = [_degrees(scenario, corner) for corner in corners]
    if len(places) > 1:
        properties["times_s"] = [round(t_s, 6) for t_s, _, _ in corners]
    geometry = {"type": "LineString", "coordinates": places} if len(places) > 1 else _point(places[0])
    return {"type": "Feature", "properties": properties, "geometry": geometry}


def _point(place: list[float]) -> dict[str, Any]:
    return {"type": "Point", "coordinates": place}


def _degrees(scenario: Scenario, corner: Corner) -> list[float]:
    """Longitude first, as RFC 7946 asks. The scale is that of the area's middle, as when degrees were read."""
    latitude_deg, longitude_deg = scenario.mobility.origin_deg or (0.0, 0.0)
    _, north_m = metres_per_degree(latitude_deg)
    east_m, north_m = metres_per_degree(latitude_deg + scenario.area_m[1] / 2 / north_m)
    _, x_m, y_m = corner
    return [round(longitude_deg + x_m / east_m, _DIGITS), round(latitude_deg + y_m / north_m, _DIGITS)]
