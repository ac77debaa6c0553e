"""The course of a demonstration: who is on it, where they are at any time, and who is in range of whom.

People move as `roamcast.world.mobility.gallery` says: flights of players walk from hole to hole, visitors follow theirs
as a group, an official stays at every green. Players carry no device. Everyone is `pace` times as fast as in life, so
that a minute shows something.
"""

from math import hypot
from typing import Any

import msgspec

from roamcast.world.mobility import scenario_movements
from roamcast.world.mobility.gallery import course_m
from roamcast.world.scenario import Mobility, Scenario

AT_GREEN_M = 12.0  # a flight that is this close to the green plays it out
STEP_S = 0.25
NAMES = (
    "Ann",
    "Ben",
    "Cleo",
    "Dan",
    "Eve",
    "Finn",
    "Gus",
    "Hana",
    "Ian",
    "Jo",
    "Kim",
    "Leo",
    "Mia",
    "Ned",
    "Oda",
    "Pip",
)
PLAYERS = ("woods", "els", "mickelson", "garcia", "palmer", "nicklaus", "faldo", "singh")


class Person(msgspec.Struct, frozen=True):
    number: int  # its node's address, if it has a device
    name: str
    role: str  # announcer, player or gallery
    hole: int | None = None  # of an announcer
    flight: int | None = None  # of players and gallery

    @property
    def has_device(self) -> bool:
        return self.role != "player"


class Finish(msgspec.Struct, frozen=True, order=True):
    """A flight leaves a green."""

    t_s: float
    flight: int
    hole: int


class Course:
    """Places are metres east and north."""

    def __init__(
        self, *, holes: int = 9, flights: int = 3, visitors: int = 12, pace: float = 6.0, seed: int = 1
    ) -> None:
        self.range_m = 200.0  # the paper's figure for 802.11, section 1
        self.duration_s = 1800.0  # then everyone stays where they are
        self.pace = pace
        per_flight = 2
        players = flights * per_flight
        self.scenario = Scenario(
            nodes=holes + players + visitors,
            area_m=(66.0 * holes, 52.0 * holes) if holes < 12 else (60.0 * holes, 40.0 * holes),
            duration_s=self.duration_s,
            mobility=Mobility(
                model="golf",
                holes=holes,
                flights=flights,
                players=per_flight,
                group_radius_m=35.0,
                follow_delay_s=8.0 / pace,
                speed_min_mps=1.2 * pace,
                speed_max_mps=2.0 * pace,
                pause_min_s=8.0 / pace,
                pause_max_s=20.0 / pace,
            ),
        )
        movements = scenario_movements(self.scenario, seed)
        assert movements is not None  # a course has places
        self._movements = movements
        self.holes = course_m(self.scenario)
        self.people = [
            *(Person(hole, f"Hole {hole + 1}", "announcer", hole=hole + 1) for hole in range(holes)),
            *(Person(holes + n, PLAYERS[n % 8], "player", flight=n // per_flight) for n in range(players)),
            *(Person(holes + players + n, _name(n), "gallery", flight=n % flights) for n in range(visitors)),
        ]

    def place(self, number: int, t_s: float) -> tuple[float, float]:
        return self._movements.position(number, min(t_s, self.duration_s))

    def places(self, t_s: float) -> list[list[int]]:
        """Where everyone is, for the map."""
        return [[round(each) for each in self.place(person.number, t_s)] for person in self.people]

    def in_range(self, t_s: float, *, with_players: bool = False) -> dict[int, list[int]]:
        """For each device, the devices that hear it; `with_players`: they have devices, too."""
        chosen = [person.number for person in self.people if with_players or person.has_device]
        places = {number: self.place(number, t_s) for number in chosen}
        return {
            one: [
                other
                for other, (x_m, y_m) in places.items()
                if other != one and hypot(x_m - here[0], y_m - here[1]) <= self.range_m
            ]
            for one, here in places.items()
        }

    def finishes(self, until_s: float) -> list[Finish]:
        """When flights leave greens, by time."""
        found: list[Finish] = []
        mobility = self.scenario.mobility
        for flight in range(mobility.flights):
            leader = mobility.holes + flight * mobility.players
            hole = flight * len(self.holes) // mobility.flights
            is_there = False
            for step in range(int(until_s / STEP_S)):
                t_s = step * STEP_S
                (x_m, y_m), (green_x_m, green_y_m) = self.place(leader, t_s), self.holes[hole][1]
                was_there, is_there = is_there, hypot(x_m - green_x_m, y_m - green_y_m) <= AT_GREEN_M
                if was_there and not is_there:
                    found.append(Finish(t_s, flight, hole + 1))
                    hole = (hole + 1) % len(self.holes)
        return sorted(found)

    def described(self) -> dict[str, Any]:
        """For the map."""
        return {
            "area_m": self.scenario.area_m,
            "range_m": self.range_m,
            "pace": self.pace,
            "holes": [{"number": n + 1, "tee": tee, "green": green} for n, (tee, green) in enumerate(self.holes)],
            "people": [msgspec.to_builtins(person) for person in self.people],
        }


def _name(number: int) -> str:
    return NAMES[number] if number < len(NAMES) else f"{NAMES[number % len(NAMES)]} {number // len(NAMES) + 1}"
