"""Golden transcripts: small stories, told by the protocols frame by frame.

Each story is compared with the text file of its name. After a change that is meant, look at the difference, then write
the files again with `ROAMCAST_WRITE_TRANSCRIPTS=1 pytest tests/scenarios`.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from roamcast.causal import parse_specification
from roamcast.interests import Intervals
from roamcast.protocols.api import Host, Site
from roamcast.protocols.somer.parameters import SomerParameters
from roamcast.protocols.somer.somer import Somer
from roamcast.testing import TinyNet, line

HERE = Path(__file__).parent
SITE = Site(1000.0, 1000.0, 200.0)
CAUSAL = Site(1000.0, 1000.0, 200.0, parse_specification("a: 0..10; b: 10..20; a => b"))


def somer(links: list[tuple[int, int]], roots: set[int], site: Site = SITE, **parameters: Any) -> TinyNet[Somer]:
    def make(host: Host) -> Somer:
        node = Somer(host, SomerParameters(**parameters))
        node.roots.is_drawn = host.address in roots
        return node

    return TinyNet(links, make, site=site)


def join() -> str:
    """Node 2 comes back into range of a tree of two, joins, subscribes, and gets an event."""
    net: TinyNet[Any] = TinyNet([(0, 1)], "ps-maodv", nodes=3)
    net.crash(2)
    net.run(6.0)
    net.link(1, 2)
    net.restart(2)
    net.subscribe(2, Intervals.of((0, 50)))
    net.run(1.0)
    net.publish(0, 42)
    net.run(0.1)
    return net.transcript(since_s=6.0)


def merge() -> str:
    """Roots 0 and 2 are two hops apart: as soon as 1 hears of both, the tree of 2 absorbs the other."""
    net = somer(line(3), {0, 2}, new_roots=False, merging_threshold=2)
    net.subscribe(0, Intervals.of((0, 50)))
    net.run(9.0)
    net.run(8.0)
    net.publish(2, 42)
    net.run(0.1)
    return net.transcript("broadcast", "send", "structure", "deliver")


def root_death() -> str:
    """The root of a ring of five dies; the next event finds out, and a new tree carries it."""
    net: TinyNet[Any] = TinyNet([(0, 1), (1, 2), (2, 3), (3, 4), (0, 4)], "ps-maodv", {"refresh_period_s": 4.0})
    net.run(5.0)
    root = net.node(0).root
    beside = min(net.neighbours(root))
    opposite = next(a for a in net.addresses if a != root and a not in net.neighbours(root))
    net.subscribe(opposite, Intervals.of((0, 50)))
    net.run(1.0)
    net.crash(root)
    net.publish(beside, 42)
    net.run(6.0)
    return net.transcript(since_s=6.0)


def contention() -> str:
    """Of a line between the roots 0 and 5, with causal nodes near 0 only, the border moves away from 0."""
    net = somer(line(6), {0, 5}, CAUSAL, merging=False, new_roots=False)
    net.node(0).advertise(Intervals.of((0, 10)))
    net.node(1).advertise(Intervals.of((10, 20)))
    net.subscribe(1, Intervals.of((0, 10)))
    net.run(8.0)
    net.run(15.0)
    story = [r for r in net.records if r.time_s >= 8.0 and not any(word in r.text for word in ("Advertis", "RouteRep"))]
    return "\n".join(f"{r.time_s:8.3f}  {r.node:>2} {r.text}" for r in story)


@pytest.mark.parametrize("story", [join, merge, root_death, contention], ids=lambda story: story.__name__)
def test_the_story_is_told_as_before(story: Callable[[], str]) -> None:
    path = HERE / f"{story.__name__}.txt"
    told = f"{story.__doc__}\n\n{story()}\n"
    if os.environ.get("ROAMCAST_WRITE_TRANSCRIPTS"):
        path.write_text(told)
    assert told == path.read_text(), f"{path.name} differs; see the module's text"
