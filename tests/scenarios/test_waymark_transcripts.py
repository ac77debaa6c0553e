"""Golden transcripts of Waymark: small stories, frame by frame, from which a newcomer can learn how it works.

Each story is compared with the text file of its name. After a change that is meant, look at the difference, then write
the files anew with `ROAMCAST_WRITE_TRANSCRIPTS=1 pytest tests/scenarios`.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from roamcast.interests import Intervals
from roamcast.protocols.api import Site
from roamcast.testing import TinyNet, line

HERE = Path(__file__).parent
SITE = Site(1000.0, 1000.0, 250.0)
ALL = Intervals.of((0, 100))
SHOWN = ("broadcast", "send", "deliver", "lost", "failed", "dropped", "link", "node")


def settled(links: list[tuple[int, int]], subscribers: list[int]) -> TinyNet[Any]:
    net: TinyNet[Any] = TinyNet(links, "waymark", site=SITE)
    for node in subscribers:
        net.subscribe(node, ALL)
    net.run(25.0)
    return net


def events_of(net: TinyNet[Any], since_s: float) -> str:
    """What happened to events; hellos and news left out."""
    lines = net.transcript(*SHOWN, since_s=since_s).splitlines()
    return "\n".join(line for line in lines if "Hello" not in line and "News" not in line)


def waymark_knowledge() -> str:
    """Three nodes in a line start: they find their links, and learn what 2 wants."""
    net: TinyNet[Any] = TinyNet(line(3), "waymark", site=SITE)
    net.subscribe(2, ALL)
    net.run(12.0)
    return net.transcript()


def waymark_tree() -> str:
    """Two relays, three subscribers: 0 names 1 as the relay for 3 and 4, which get the event from one frame of 1."""
    net = settled([(0, 1), (0, 2), (1, 3), (1, 4)], [2, 3, 4])
    net.publish(0, 42)
    net.run(1.0)
    return events_of(net, 25.0)


def waymark_repair() -> str:
    """1 has passed an event on before, and does not hear 0's next one. 0 sends it again, and all goes on."""
    net = settled([*line(4), (1, 3)], [2, 3])
    net.publish(0, 41)
    net.run(0.5)
    net.drop("Carry", receiver=1)
    net.publish(0, 42)
    net.run(1.0)
    return events_of(net, 25.5)


def waymark_detour() -> str:
    """The relay has crashed. 0 learns it from the link, cuts it, and plans the event anew, through the other one."""
    net = settled([(0, 1), (1, 3), (0, 2), (2, 3)], [3])
    net.crash(1)
    net.publish(0, 42)
    net.run(1.0)
    return events_of(net, 25.0)


def waymark_custody() -> str:
    """2 goes out of range. 1 keeps the event, and delivers it when 2 is back."""
    net = settled(line(3), [2])
    net.unlink(1, 2)
    net.run(1.0)
    net.publish(0, 42)
    net.run(4.0)
    net.link(1, 2)
    net.run(20.0)
    return events_of(net, 25.0)


STORIES: list[Callable[[], str]] = [waymark_knowledge, waymark_tree, waymark_repair, waymark_detour, waymark_custody]


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_the_story_is_told_as_before(story: Callable[[], str]) -> None:
    told = f"{story.__doc__}\n\n{story()}\n"
    golden = HERE / f"{story.__name__}.txt"
    if os.environ.get("ROAMCAST_WRITE_TRANSCRIPTS"):
        golden.write_text(told, encoding="utf-8")
    assert told == golden.read_text(encoding="utf-8")
