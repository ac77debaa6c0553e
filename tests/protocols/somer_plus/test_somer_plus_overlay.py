"""What a root knows of the others: roots 0 to 3 in a row, three hops from each to the next. 0 is the one who knows."""

from roamcast.interests import Intervals
from roamcast.protocols.somer_plus.messages import Entry, Leg
from roamcast.protocols.somer_plus.overlay import Overlay

ALL = Intervals.of((0, 1000))


def row_of_roots() -> Overlay:
    overlay = Overlay(0, lifetime_s=35.0, period_s=10.0, depth_max=64)
    overlay.set_near(((1, 3),))
    for root in (1, 2, 3):
        overlay.learn(Entry(root, 1, ((root - 1, 3), (root + 1, 3)), ALL), 0.0)
    return overlay


def test_a_root_far_away_is_remembered_longer_than_a_near_one() -> None:
    """Word of it that is no news takes a period from root to root."""
    overlay = row_of_roots()
    overlay.learn(Entry(9, 1, (), ALL), 0.0)  # nobody's neighbour
    for now_s, left in ((34.0, [1, 2, 3, 9]), (36.0, [2, 3]), (46.0, [])):
        overlay.expire(now_s)
        assert list(overlay.entries) == left


def test_an_entry_that_came_late_does_not_replace_a_newer_one() -> None:
    overlay = row_of_roots()
    overlay.learn(Entry(3, 9, ((2, 3),), ALL), 1.0)
    for sequence in (9, 8, 1):
        assert not overlay.learn(Entry(3, sequence, (), Intervals.of((0, 1))), 2.0)
        assert overlay.entries[3] == Entry(3, 9, ((2, 3),), ALL)
    overlay.learn(Entry(3, 10, (), ALL), 2.0)
    assert overlay.sequence(3) == 10


def test_what_the_root_of_an_absorbed_tree_has_said_leads_nowhere() -> None:
    overlay = row_of_roots()
    assert overlay.via(3) == 2
    overlay.dismiss(2)
    assert [overlay.plan([root], ()) for root in (2, 3)] == [(), ()]
    overlay.learn(Entry(2, 2, ((1, 3), (3, 3)), ALL), 1.0)  # it is a root again
    assert overlay.heirs(2) == [2]
    assert overlay.via(3) == 2


def test_an_absorbed_tree_is_reached_behind_all_its_heirs() -> None:
    overlay = row_of_roots()
    overlay.learn(Entry(3, 2, ((2, 3),), ALL, absorbed=(7,)), 1.0)
    overlay.learn(Entry(1, 2, ((0, 3), (2, 3)), ALL, absorbed=(7,)), 1.0)
    assert overlay.heirs(7) == [3, 1]
    assert overlay.plan([3, 7], ()) == (Leg(1, False, (Leg(2, False, (Leg(3, True, (Leg(7),)),)), Leg(7))),)


def test_heirs_have_heirs() -> None:
    overlay = row_of_roots()
    overlay.learn(Entry(2, 2, ((1, 3), (3, 3)), ALL, absorbed=(7,)), 1.0)
    overlay.learn(Entry(1, 2, ((0, 3),), ALL, absorbed=(2,)), 2.0)
    assert overlay.plan([7], ()) == (Leg(1, False, (Leg(7),)),)
    overlay.learn(Entry(2, 3, (), ALL, absorbed=(1,)), 3.0)  # nonsense: each has absorbed the other
    overlay.set_near(())
    assert overlay.heirs(7) == []


def test_a_neighbour_is_within_reach_though_its_tree_was_to_be_absorbed() -> None:
    overlay = row_of_roots()
    overlay.dismiss(1)
    assert overlay.heirs(1) == [1]


def test_other_neighbours_are_news_if_they_change_who_can_be_reached_or_for_an_eager_root() -> None:
    cut = Entry(2, 2, ((1, 3),), ALL)
    assert row_of_roots().learn(cut, 1.0)
    shorter = Entry(1, 2, ((0, 3), (2, 3), (3, 4)), ALL)
    assert not row_of_roots().learn(shorter, 1.0)
    assert row_of_roots().learn(shorter, 1.0, eager=True)
    nearer = Entry(1, 2, ((0, 3), (2, 1)), ALL)
    assert not row_of_roots().learn(nearer, 1.0, eager=True)


def test_a_long_chain_of_roots_is_followed_only_so_far() -> None:
    """Whoever makes up a thousand roots in a row makes no path that long."""
    overlay = Overlay(0, lifetime_s=35.0, period_s=10.0, depth_max=64)
    overlay.set_near(((1, 1),))
    for root in range(1, 1200):
        overlay.learn(Entry(root, 1, ((root - 1, 1), (root + 1, 1)), ALL), 0.0)
    assert overlay.plan([1100], ()) == ()
    assert overlay.plan([64], ()) != ()
    overlay.expire(10.0)
    assert len(overlay.entries) == 1199
