"""The workload: what applications will ask for and publish, drawn before the run and apart from any protocol.

Every draw comes from a generator of its own (who publishes, who subscribes, each node's subscriptions, each node's
publications), so that all protocols meet the same agenda for a seed, and changing the rate does not change who asks for
what. Nodes are taken from one shuffled order: with more publishers, those of the smaller scenario publish too.

- Publishers advertise and subscribers subscribe within the first second. With `resubscribe_period_s`, each subscription
  is taken back and replaced by a fresh one at that interval. A node never holds two equal subscriptions; where no
  unequal one is left to draw (every event is wanted already), it makes do with fewer.
- A subscription matches a share `selectivity` of all events, to the nearest possible; above 0 it is at least one event.
  A selectivity of 0 asks for nothing at all.
- Publications fall into `[start_s, duration_s - tail_s)`. Each publisher counts along an even scale from a random
  phase (or, for `poisson`, with exponential steps), and the pattern bends that scale: `ramp` so that the rate grows
  evenly from 0 to twice the mean, `burst` so that all publishers are active together at the start of each period.

Causal events come on top: see `roamcast.world.causal_workload`.
"""

import math
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from roamcast.events import NO_EVENT, Content
from roamcast.interests import Interest, Intervals, Topics, XPaths
from roamcast.seeds import Random, derive
from roamcast.world.golf import TYPE as GOLF
from roamcast.world.golf import golf_event, golf_interest, golf_taste
from roamcast.world.scenario import Scenario, Workload

START_WITHIN_S: Final = 1.0
_DRAWS_MAX: Final = 8  # of a subscription unequal to a node's others, before it goes without


class Advertise(NamedTuple):
    t_s: float
    node: int
    interest: Interest


class Subscribe(NamedTuple):
    t_s: float
    node: int
    interest: Interest


class Unsubscribe(NamedTuple):
    t_s: float
    node: int
    interest: Interest


class Publish(NamedTuple):
    t_s: float
    node: int
    content: Content
    payload_bytes: int
    cause: int = NO_EVENT  # the event whose receipt makes the node publish


Action = Advertise | Subscribe | Unsubscribe | Publish


def agenda(scenario: Scenario, seed: int) -> list[Action]:
    """All that applications do in a run, by time and node; what a node does at one instant is in its order."""
    workload = scenario.workload
    actions: list[Action] = []
    order = derive(seed, "workload", "publishers")
    for node in _chosen(scenario.nodes, workload.publishers, workload.publisher_share, order):
        actions += _publications(node, scenario, derive(seed, "workload", "publications", node))
    order = derive(seed, "workload", "subscribers")
    for node in _chosen(scenario.nodes, workload.subscribers, workload.subscriber_share, order):
        actions += _subscriptions(node, scenario, derive(seed, "workload", "subscriptions", node))
    return sorted(actions, key=lambda action: action[:2])


def _chosen(nodes: int, count: int | None, share: float, random: Random) -> list[int]:
    order = list(range(nodes))
    random.shuffle(order)
    return sorted(order[: math.floor(share * nodes + 0.5) if count is None else count])


def _subscriptions(node: int, scenario: Scenario, random: Random) -> Iterator[Action]:
    workload = scenario.workload
    if workload.selectivity == 0:
        return
    period_s = workload.resubscribe_period_s or math.inf
    open_interests: list[Interest] = []
    due: list[float] = []
    for _ in range(workload.subscriptions_per_node):
        interest = _unequal(open_interests, workload, random)
        t_s = soon(scenario, random)
        if interest is not None:
            open_interests.append(interest)
            due.append(t_s + period_s)
            yield Subscribe(t_s, node, interest)
    while due and min(due) < scenario.duration_s:
        slot = due.index(min(due))
        yield Unsubscribe(due[slot], node, open_interests[slot])
        others = open_interests[:slot] + open_interests[slot + 1 :]
        open_interests[slot] = _unequal(others, workload, random) or open_interests[slot]
        yield Subscribe(due[slot], node, open_interests[slot])
        due[slot] += period_s


def _unequal(others: list[Interest], workload: Workload, random: Random) -> Interest | None:
    draws: dict[str, Callable[[Workload, Random], Interest]]
    draws = {"intervals": _interval, "topics": _topics, "content": _golf}
    draw = draws[workload.language]
    for _ in range(_DRAWS_MAX):
        interest = draw(workload, random)
        if interest not in others:
            return interest
    return None


def _publications(node: int, scenario: Scenario, random: Random) -> Iterator[Action]:
    workload = scenario.workload
    if workload.language == "intervals":
        yield Advertise(soon(scenario, random), node, Intervals.of((0, workload.pool)))
    elif workload.language == "content":
        yield Advertise(soon(scenario, random), node, XPaths.parse(f"/{GOLF}"))
    else:
        yield Advertise(soon(scenario, random), node, Topics.of("**"))
    for t_s in publication_times(scenario, workload.rate_per_s, random):
        yield Publish(t_s, node, _content(workload, random), workload.payload_bytes)


def publication_times(scenario: Scenario, rate_per_s: float, random: Random) -> Iterator[float]:
    """When a publisher of this mean rate publishes, by the workload's pattern."""
    workload = scenario.workload
    window_s = scenario.duration_s - workload.tail_s - workload.start_s
    if rate_per_s == 0 or window_s <= 0:
        return
    for count in _counts(workload, random):
        elapsed_s = _elapsed_s(count / rate_per_s, workload, window_s)
        if elapsed_s >= window_s:
            return
        yield workload.start_s + elapsed_s


def soon(scenario: Scenario, random: Random) -> float:
    return random.random() * min(START_WITHIN_S, scenario.duration_s)


def _counts(workload: Workload, random: Random) -> Iterator[float]:
    """Where on the scale of expected publications the publications fall."""
    poisson = workload.pattern == "poisson"
    count = random.expovariate(1.0) if poisson else random.random()
    while True:
        yield count
        count += random.expovariate(1.0) if poisson else 1.0


def _elapsed_s(even_s: float, workload: Workload, window_s: float) -> float:
    """How long after the start as many publications are expected as in `even_s` at an even rate."""
    if workload.pattern == "ramp":
        return math.sqrt(even_s * window_s)
    if workload.pattern == "burst":
        active_s = workload.burst_period_s * workload.burst_share
        periods, rest_s = divmod(even_s * workload.burst_share, active_s)
        return periods * workload.burst_period_s + rest_s
    return even_s


def _content(workload: Workload, random: Random) -> Content:
    if workload.language == "intervals":
        return random.randrange(workload.pool)
    if workload.language == "content":
        return golf_event(random, for_audience=workload.audience_share > 0)
    return "/".join(_name(random.randrange(workload.topic_fanout)) for _ in range(workload.topic_depth))


def _name(index: int) -> str:
    return f"t{index}"


def _interval(workload: Workload, random: Random) -> Intervals:
    """A random stretch of the pool; it goes on at the start of the pool where it runs over the end."""
    pool = workload.pool
    length = _wanted(workload, pool)
    low = random.randrange(pool)
    return Intervals.of((low, min(low + length, pool)), (0, max(0, low + length - pool)))


def _golf(workload: Workload, random: Random) -> XPaths:
    if workload.audience_share:
        return golf_taste(workload.audience_share, random)
    return golf_interest(workload.selectivity, random)


def _topics(workload: Workload, random: Random) -> Topics:
    """Patterns that have no topic in common and together match the wanted number of topics.

    The levels are settled one after the other, half of the time from the top (which gives prefixes such as `t1/**`),
    else in random order (`*/t2/*`). At each level as many names are taken whole as still fit, and one more is looked
    into for the rest.
    """
    depth, fanout = workload.topic_depth, workload.topic_fanout
    inside = fanout**depth
    wanted = _wanted(workload, inside)
    if wanted == inside:
        return Topics.of("**")
    order = list(range(depth))
    if random.random() < 0.5:
        random.shuffle(order)
    levels = ["*"] * depth
    patterns: list[str] = []
    for level in order:
        inside //= fanout
        whole, wanted = divmod(wanted, inside)
        names = [_name(index) for index in random.sample(range(fanout), whole + (wanted > 0))]
        for name in names[:whole]:
            levels[level] = name
            patterns.append(_abridged(levels))
        if wanted == 0:
            break
        levels[level] = names[-1]
    return Topics.of(*patterns)


def _abridged(levels: list[str]) -> str:
    """The pattern of these levels, with `**` for the `*` at its end: all topics are equally deep."""
    named = max((at + 1 for at, level in enumerate(levels) if level != "*"), default=0)
    return "/".join([*levels[:named], "**"] if named < len(levels) else levels)


def _wanted(workload: Workload, contents: int) -> int:
    """How many of all different contents one subscription matches."""
    return min(contents, max(1, round(workload.selectivity * contents)))
