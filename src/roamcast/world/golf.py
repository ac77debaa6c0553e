"""The golf forum's applications: what the gallery publishes and subscribes to, drawn at random.

Every value of an event is uniform over what the schema allows. Real scores are not, but with uniform values the share
of events that a subscription matches is a simple product, so a given selectivity can be met.

With an *audience*, interests are divided instead: all events are about the first nine holes. A subscriber in the
audience follows these and perhaps some later ones, so it matches every event. The others follow only later holes and
match none.
"""

import math
from typing import Final

from roamcast.interests.content import XPaths, event_types, write
from roamcast.interests.content.values import Numbers, Words
from roamcast.seeds import Random

TYPE: Final = "PGMFORUM"
_COARSE: Final = ("player", "hole", "holescore", "currentrank")  # a subscription asks for up to two of these
_FINE: Final = "totalscore"  # and for a range of this one, which makes up for the others' rounding
_AUDIENCE_HOLES: Final = 9  # what is published with an audience is about these
_PLAYERS_MAX: Final = 4  # favourites that one subscription lists at most


def golf_event(random: Random, for_audience: bool = False) -> str:
    """An announcement, as an official at a hole makes it."""
    values: dict[str, int | str] = {"@id": f"{random.randrange(1000):03d}"}
    for path in ("player", "hole", "holescore", "totalscore", "currentrank"):
        domain = event_types()[TYPE].leaves[path].domain
        if isinstance(domain, Words):
            values[path] = random.choice(domain.values)
        elif isinstance(domain, Numbers):
            low, high = domain.ranges[0]
            if for_audience and path == "hole":
                high = _AUDIENCE_HOLES
            values[path] = random.randint(int(low), int(high))
    return write(TYPE, values)


def golf_interest(selectivity: float, random: Random) -> XPaths:
    """One visitor's subscription. It matches the share `selectivity` of all announcements, to the nearest possible."""
    conditions: list[str] = []
    share = 1.0
    for path in random.sample(_COARSE, random.randint(0, 2)):
        part = (selectivity / share) ** random.random()
        condition, actual = _condition(path, part, random, at_least=True)
        conditions += condition
        share *= actual
    condition, _ = _condition(_FINE, min(1.0, selectivity / share), random, at_least=False)
    conditions += condition
    return XPaths.parse(f"/{TYPE}[{' and '.join(conditions)}]" if conditions else f"/{TYPE}")


def golf_taste(audience_share: float, random: Random) -> XPaths:
    """The subscription of a visitor, which is in the audience with that probability."""
    if random.random() < audience_share:
        return XPaths.parse(f"/{TYPE}[hole <= {random.randint(_AUDIENCE_HOLES, 12)}]")
    return XPaths.parse(f"/{TYPE}[hole >= {random.randint(_AUDIENCE_HOLES + 1, 13)}]")


def _condition(path: str, share: float, random: Random, at_least: bool) -> tuple[list[str], float]:
    """A condition that about `share` of all events meet, and the share that does meet it. `at_least` rounds the share
    up. If all events would meet it, there is no condition."""
    domain = event_types()[TYPE].leaves[path].domain
    to_whole = math.ceil if at_least else round
    if isinstance(domain, Words):
        count = to_whole(share * len(domain.values))
        if count > _PLAYERS_MAX:
            return [], 1.0
        chosen = sorted(random.sample(domain.values, count))
        return [f"({' or '.join(f'{path} = {name!r}' for name in chosen)})"], count / len(domain.values)
    assert isinstance(domain, Numbers)
    low, high = (int(end) for end in domain.ranges[0])
    size = high - low + 1
    count = min(size, max(1, to_whole(share * size)))
    if count == size:
        return [], 1.0
    first = random.randint(low, high - count + 1)
    return [f"{path} >= {first} and {path} <= {first + count - 1}"], count / size
