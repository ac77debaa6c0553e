"""The play of a demonstration: scores hole by hole and what visitors ask for, all from a seed.

A rank is by strokes above par, because after a shotgun start players have played different holes. Equal ones share it.
"""

from typing import Any

import msgspec

from roamcast.apps.golf_forum import forms
from roamcast.apps.golf_forum.course import Course
from roamcast.seeds import derive

PARS = (4, 5, 3, 4, 4, 3, 5, 4, 4, 4, 3, 5, 4, 4, 3, 4, 5, 4)
HOLES_MAX = 18  # then a player has finished
OVER_PAR = ((-2, 3), (-1, 22), (0, 45), (1, 22), (2, 8))  # strokes above par, with their weights
NAMED = {-2: "eagle", -1: "birdie", 0: "par", 1: "bogey", 2: "double bogey"}

WISHES: tuple[dict[str, Any], ...] = (
    {"fields": {"player": ["woods"]}},
    {"fields": {"hole": [4, 6]}, "official": True},
    {"fields": {"currentrank": [None, 2]}},
    {"fields": {"player": ["els", "garcia"], "hole": [None, 6]}},
    {"fields": {"holescore": [None, 3]}},
    {"fields": {"player": ["mickelson", "palmer"]}},
    {"fields": {"player": ["nicklaus"], "currentrank": [None, 1]}, "combine": "any"},
    {"fields": {"hole": [7, None]}},
    {"fields": {"remark": "What"}},
    {"fields": {"totalscore": [None, 12]}, "official": True},
    {"fields": {"player": ["palmer", "woods"], "holescore": [None, 4]}},
    {"fields": {"hole": [1, 3], "player": ["garcia"]}, "combine": "any"},
)
REMARKS = ("What a putt!", "Into the bunker and out again.", "What a drive!", "Lucky bounce off the tree.")
RIDES: tuple[dict[str, Any], ...] = (
    {"destination": "airport", "seats": 3, "minutes": 20},
    {"destination": "railway station", "seats": 2, "minutes": 10},
    {"destination": "old town", "seats": 4, "minutes": 45},
)
RIDE_WISHES: tuple[dict[str, Any], ...] = (
    {"fields": {"destination": ["airport"]}},
    {"fields": {"destination": ["old town", "railway station"], "seats": [2, None]}},
    {"fields": {"minutes": [None, 30]}},
)


class HoleResult(msgspec.Struct, frozen=True):
    """A player has finished a hole."""

    t_s: float
    flight: int
    values: dict[str, int | str]  # of the event
    named: str  # such as "birdie"
    remark: str  # by which a visitor beats the official to it; mostly empty


def results(course: Course, until_s: float, seed: int) -> list[HoleResult]:
    """All results up to then, by time. Both players of a flight hole out a few seconds apart."""
    random = derive(seed, "golf-forum", "scores")
    players = [person for person in course.people if person.role == "player"]
    totals = {player.name: 0 for player in players}
    above_par = dict(totals)
    played = dict(totals)
    found: list[HoleResult] = []
    for finish in course.finishes(until_s):
        for order, player in enumerate(each for each in players if each.flight == finish.flight):
            if played[player.name] == HOLES_MAX:
                continue
            par = PARS[finish.hole - 1]
            over = random.choices([over for over, _ in OVER_PAR], [weight for _, weight in OVER_PAR])[0]
            played[player.name] += 1
            totals[player.name] += par + over
            above_par[player.name] += over
            rank = 1 + sum(other < above_par[player.name] for other in above_par.values())
            values: dict[str, int | str] = {
                "player": player.name,
                "hole": finish.hole,
                "holescore": par + over,
                "totalscore": totals[player.name],
                "currentrank": rank,
            }
            remark = random.choice(REMARKS) if random.random() < 0.3 else ""
            found.append(HoleResult(finish.t_s + 1.0 * order, finish.flight, values, NAMED[over], remark))
    return sorted(found, key=lambda result: result.t_s)


def wish(visitor: int) -> forms.Form:
    """What the n-th visitor registers."""
    return forms.form_of({"type": forms.SCORE, **WISHES[visitor % len(WISHES)]})


def ride_wish(visitor: int) -> forms.Form:
    return forms.form_of({"type": forms.TAXI, **RIDE_WISHES[visitor % len(RIDE_WISHES)]})
