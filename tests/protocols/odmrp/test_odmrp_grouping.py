"""Groupings: no matching member is left out, coming and going equals starting afresh, and likes find each other."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roamcast.errors import CallerError
from roamcast.interests import XPaths
from roamcast.protocols.odmrp.covering import CoveringGraph
from roamcast.protocols.odmrp.encoding import Encoder
from roamcast.protocols.odmrp.grouping import (
    AggregatedGraph,
    Grouping,
    KMeans,
    LeastConstrained,
    Summary,
    _Centroid,
    grouping,
)
from roamcast.protocols.odmrp.packed import Digest
from roamcast.protocols.odmrp.parameters import OdmrpParameters
from roamcast.protocols.odmrp.summaries import SummaryEntry
from roamcast.seeds import Random
from roamcast.world.golf import golf_event, golf_interest, golf_taste

quick = settings(deadline=None, derandomize=True, max_examples=10)
ENCODER = Encoder()
NAMES = ("least-constrained", "graph", "k-means")


def fresh(name: str) -> Grouping:
    return grouping(OdmrpParameters(grouping=name))  # type: ignore[arg-type]


def summary_of(*expressions: str) -> Summary:
    return tuple(entry for each in expressions for entry in ENCODER.entries(XPaths.parse(f"/PGMFORUM[{each}]")))


def digest_of(document: str) -> Digest:
    digest = ENCODER.digest(document)
    assert digest is not None
    return digest


@pytest.mark.parametrize("name", NAMES)
@given(st.integers(0, 2**32))
@quick
def test_every_member_whose_summary_matches_is_served(name: str, seed: int) -> None:
    random = Random(seed)
    groups = fresh(name)
    members: dict[int, Summary] = {}
    for _ in range(20):
        member = random.randrange(12)
        if random.random() < 0.3:
            groups.remove(member)
            members.pop(member, None)
        else:
            members[member] = tuple(ENCODER.entries(golf_interest(random.choice([0.05, 0.3]), random)))
            groups.put(member, members[member])
        channels = groups.channels()
        assert sorted(address for each in channels.values() for address in each) == sorted(members)
        digest = digest_of(golf_event(random))
        wanted = {address for address, entries in members.items() if ENCODER.family.matches_any(entries, digest)}
        served = {address for channel in groups.matching(digest) for address in channels[channel]}
        assert wanted <= served


@pytest.mark.parametrize("name", ["least-constrained", "graph"])
@given(st.integers(0, 2**32))
@quick
def test_going_leaves_no_trace(name: str, seed: int) -> None:
    random = Random(seed)
    summaries = {member: tuple(ENCODER.entries(golf_interest(0.2, random))) for member in range(8)}
    groups, afresh = fresh(name), fresh(name)
    for member, summary in summaries.items():
        groups.put(member, summary)
    for member in range(0, 8, 2):
        groups.remove(member)
    for member in range(1, 8, 2):
        afresh.put(member, summaries[member])
    for _ in range(20):
        digest = digest_of(golf_event(random))
        assert groups.matching(digest) == afresh.matching(digest)


def test_k_means_separates_two_tastes() -> None:
    random = Random(5)
    groups = KMeans(ENCODER.family, 10)
    audience: set[int] = set()
    for member in range(30):
        inside = member % 3 > 0
        groups.put(member, tuple(ENCODER.entries(golf_taste(1.0 if inside else 0.0, random))))
        if inside:
            audience.add(member)
    channels = groups.channels()
    assert 2 <= len(channels) <= 3
    for members in channels.values():
        assert set(members) <= audience or not set(members) & audience
    for _ in range(20):
        matching = groups.matching(digest_of(golf_event(random, for_audience=True)))
        assert {member for channel in matching for member in channels[channel]} <= audience


def test_a_third_channel_must_be_worth_it() -> None:
    groups = KMeans(ENCODER.family, 10)
    for member in range(9):
        first = 1 + 6 * (member % 2)
        groups.put(member, summary_of(f"hole >= {first} and hole <= {first + 5}"))
    assert len(groups.channels()) == 2
    for member in range(9):
        first = 1 + 6 * (member % 3)
        groups.put(member, summary_of(f"hole >= {first} and hole <= {first + 5}"))
    assert len(groups.channels()) == 3


def test_k_means_of_few_or_equal_members() -> None:
    groups = KMeans(ENCODER.family, 10)
    assert groups.channels() == {}
    assert groups.matching(digest_of(golf_event(Random(1)))) == []
    for member in range(3):
        groups.put(member, summary_of("hole = 3"))
    assert groups.channels() == {1: [0, 1, 2]}
    groups.remove(7)
    for member in range(3):
        groups.remove(member)
    assert groups.channels() == {}


def test_a_cluster_that_loses_its_members_begins_again() -> None:
    """Three tastes, two clusters that remain of an earlier three: the third is made out of who is farthest."""
    groups = KMeans(ENCODER.family, 10)
    for member in range(12):
        first = 1 + 6 * (member % 3)
        groups.put(member, summary_of(f"hole >= {first} and hole <= {first + 5}"))
    assert len(groups.channels()) == 3
    clusters = [[], [0, 1, 2], [3, 4, 5]]
    centroids = [_Centroid([groups._bits[0]]) for _ in range(3)]
    groups._reseed(clusters, centroids)
    assert all(clusters)
    assert sorted(member for cluster in clusters for member in cluster) == [0, 1, 2, 3, 4, 5]
    assert clusters[0] in ([1], [2], [4], [5]), "a member that is not where its centroid is"


def test_k_means_of_many_members() -> None:
    groups = KMeans(ENCODER.family, 10)
    for member in range(300):
        first = 1 + 9 * (member % 2)
        groups.put(member, summary_of(f"hole >= {first} and hole <= {first + 5}"))
    assert [len(members) for members in groups.channels().values()] == [150, 150]


def test_one_who_wants_everything_opens_the_least_constrained_channel() -> None:
    """Section 3.4.1."""
    groups, graph = LeastConstrained(ENCODER.family), AggregatedGraph(ENCODER.family)
    for each in (groups, graph):
        each.put(1, summary_of("player = 'woods' and hole = 3"))
        each.put(2, summary_of("player = 'els' and hole = 5"))
    crossed = ENCODER.digest_of_values("PGMFORUM", {"player": "woods", "hole": 5})
    other = ENCODER.digest_of_values("PGMFORUM", {"player": "palmer", "hole": 12})
    assert groups.matching(crossed) == [1]  # it has merged what the graph keeps apart
    assert groups.matching(other) == graph.matching(other) == []
    groups.put(3, summary_of("player"))
    assert groups.matching(other) == [1]


def slow_links(entries: list[SummaryEntry]) -> set[tuple[SummaryEntry, SummaryEntry]]:
    """Immediate covering, by the definition."""
    above = {(a, b) for a in entries for b in entries if a != b and a.covers(b)}
    return {(a, b) for a, b in above if not any((a, c) in above and (c, b) in above for c in entries)}


@given(st.integers(0, 2**32))
@quick
def test_the_graph_links_immediate_neighbours_only(seed: int) -> None:
    random = Random(seed)
    graph = CoveringGraph(ENCODER.family)
    held: list[SummaryEntry] = []
    for _ in range(25):
        if held and random.random() < 0.3:
            entry = held.pop(random.randrange(len(held)))
            graph.remove(entry)
        else:
            low = random.randint(1, 9)
            text = f"hole >= {low} and hole <= {random.randint(low, 18)}"
            entry = summary_of(text if random.random() < 0.7 else f"{text} and player = 'els'")[0]
            held.append(entry)
            graph.add(entry)
        distinct = list(dict.fromkeys(held))
        assert len(graph) == len(distinct)
        assert {(entry, lower) for entry in distinct for lower in graph.below(entry)} == slow_links(distinct)
        digest = digest_of(golf_event(random))
        matching = {entry for entry in distinct if ENCODER.family.matches(entry, digest)}
        found = list(graph.matching(digest))
        assert len(found) == len(set(found))
        assert set(found) == matching
        assert graph.matches(digest) == bool(matching)


def test_the_graph_knows_its_entries() -> None:
    with pytest.raises(CallerError):
        CoveringGraph(ENCODER.family).remove(summary_of("hole = 3")[0])
