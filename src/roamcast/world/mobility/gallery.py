"""A golf tournament: players walk from hole to hole, galleries follow, announcers stay.

The course is a row of holes that winds through the area in strips. Each hole has a tee and, farther along, a green; the
next tee is a short walk from there, and after the last hole comes the first again.

| nodes | who | movement |
|---|---|---|
| the first `holes` | announcers | stay, one at each green |
| the next `flights` times `players` | players | walk with their flight, a few metres apart |
| all others | spectators | follow a flight |

Spectators are dealt out evenly to the flights, and stay within `group_radius_m` of where theirs was `follow_delay_s`
ago. A flight waits before each tee and on each green for a uniform pause, and walks at a uniform speed in between. It
is a shotgun start: at time 0 the flights stand at tees spread evenly over the course, so the course is busy from the
beginning. Players and spectators do a random waypoint within their distance of the flight, started in its steady
state.
"""

from math import ceil, hypot, sqrt
from typing import Final

from roamcast.errors import ConfigurationError
from roamcast.seeds import Random, derive
from roamcast.world.mobility.group import added
from roamcast.world.mobility.movements import Corner, Movements
from roamcast.world.mobility.waypoint import DiscRegion, Region, trips
from roamcast.world.scenario import Scenario

PLAYERS_RADIUS_M: Final = 5.0  # players stay this close to their flight's place
GREEN_AT: Final = 0.85  # of the way from a tee to the next one

Point = tuple[float, float]


def paths(scenario: Scenario, seed: int) -> list[list[Corner]]:
    mobility = scenario.mobility
    players = mobility.flights * mobility.players
    if scenario.nodes < mobility.holes + players:
        needed = f"at least {mobility.holes} announcers and {players} players ({mobility.holes + players})"
        raise ConfigurationError(f"nodes = {scenario.nodes}: must be {needed} with mobility.model = 'golf'")
    course = course_m(scenario)
    flights = [_round(scenario, course, flight, seed) for flight in range(mobility.flights)]
    late = [_later(flight, mobility.follow_delay_s) for flight in flights]
    walking, following = Movements(flights), Movements(late)
    announcers = [[(0.0, *green)] for _, green in course]
    others: list[list[Corner]] = []
    for node in range(mobility.holes, scenario.nodes):
        plays = node < mobility.holes + players
        place = node - mobility.holes
        flight = place // mobility.players if plays else (place - players) % mobility.flights
        region: Region = DiscRegion(PLAYERS_RADIUS_M if plays else mobility.group_radius_m)
        around = Movements([trips(region, mobility, scenario.duration_s, derive(seed, "mobility", node))])
        others.append(added(walking if plays else following, flight, around, 0))
    return announcers + others


def course_m(scenario: Scenario) -> list[tuple[Point, Point]]:
    """The tee and the green of each hole."""
    (width_m, height_m), mobility = scenario.area_m, scenario.mobility
    margin_m = max(mobility.group_radius_m, PLAYERS_RADIUS_M)
    inner_m = (width_m - 2 * margin_m, height_m - 2 * margin_m)
    if min(inner_m) <= 0:
        allowed = f"below half of the area's shorter side ({min(width_m, height_m) / 2:g})"
        raise ConfigurationError(f"mobility.group_radius_m = {mobility.group_radius_m}: must be {allowed}")
    strips = max(1, round(sqrt(mobility.holes * inner_m[0] / inner_m[1])))
    per_strip = ceil(mobility.holes / strips)
    strips = ceil(mobility.holes / per_strip)
    tees = [_tee(number, strips, per_strip, inner_m, margin_m) for number in range(mobility.holes)]
    holes: list[tuple[Point, Point]] = []
    for number, tee in enumerate(tees):
        ahead = tees[(number + 1) % len(tees)]
        if number % per_strip == per_strip - 1 or number == mobility.holes - 1:  # the last of its strip
            up = 1 if (number // per_strip) % 2 == 0 else -1
            ahead = (tee[0], tee[1] + up * inner_m[1] / per_strip)
        green = (tee[0] + GREEN_AT * (ahead[0] - tee[0]), tee[1] + GREEN_AT * (ahead[1] - tee[1]))
        holes.append((tee, green))
    return holes


def _tee(number: int, strips: int, per_strip: int, inner_m: Point, margin_m: float) -> Point:
    """Strips lie side by side from west to east; the first is played northward, the next southward."""
    strip, place = divmod(number, per_strip)
    x_m = margin_m + inner_m[0] * (strip + 0.5) / strips
    up_m = inner_m[1] * place / per_strip
    return x_m, margin_m + (up_m if strip % 2 == 0 else inner_m[1] - up_m)


def _round(scenario: Scenario, course: list[tuple[Point, Point]], flight: int, seed: int) -> list[Corner]:
    """Where a flight is: from its first tee, around the course again and again, until the run is over."""
    mobility = scenario.mobility
    random = derive(seed, "mobility", "flight", flight)
    hole = flight * len(course) // mobility.flights % len(course)
    corners = [(0.0, *course[hole][0])]
    while True:
        for place in course[hole]:
            _walk(corners, place, random.uniform(mobility.speed_min_mps, mobility.speed_max_mps))
            _wait(corners, random, mobility.pause_min_s, mobility.pause_max_s)
            if corners[-1][0] >= scenario.duration_s:
                return corners
        hole = (hole + 1) % len(course)


def _walk(corners: list[Corner], place: Point, speed_mps: float) -> None:
    t_s, x_m, y_m = corners[-1]
    arrival_s = t_s + hypot(place[0] - x_m, place[1] - y_m) / speed_mps
    if arrival_s > t_s:
        corners.append((arrival_s, *place))


def _wait(corners: list[Corner], random: Random, pause_min_s: float, pause_max_s: float) -> None:
    t_s, x_m, y_m = corners[-1]
    until_s = t_s + random.uniform(pause_min_s, pause_max_s)
    if until_s > t_s:
        corners.append((until_s, x_m, y_m))


def _later(corners: list[Corner], delay_s: float) -> list[Corner]:
    """The same walk, begun `delay_s` later."""
    start = corners[0]
    return [start, *((t_s + delay_s, x_m, y_m) for t_s, x_m, y_m in corners if t_s + delay_s > 0)]
