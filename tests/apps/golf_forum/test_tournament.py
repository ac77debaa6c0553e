"""The course, the play and the story of a demonstration, without any node; and the same in the simulator."""

import json
from math import hypot

from roamcast.apps.golf_forum.course import Course
from roamcast.apps.golf_forum.simulated import simulated_story
from roamcast.apps.golf_forum.story import recorded_page
from roamcast.apps.golf_forum.tournament import PARS, results


def test_the_course_is_the_same_for_a_seed() -> None:
    one, same, other = Course(seed=3), Course(seed=3), Course(seed=4)
    assert one.places(40.0) == same.places(40.0) != other.places(40.0)
    assert results(one, 60.0, 3) == results(same, 60.0, 3)


def test_galleries_follow_their_flight() -> None:
    course = Course()
    for t_s in (0.0, 30.0, 90.0):
        for person in course.people:
            if person.role == "gallery":
                leader = next(each for each in course.people if (each.role, each.flight) == ("player", person.flight))
                (x_m, y_m), (u_m, v_m) = course.place(person.number, t_s), course.place(leader.number, t_s)
                assert hypot(x_m - u_m, y_m - v_m) < 80  # within the group, and a few seconds behind


def test_links_are_by_distance_and_players_have_none() -> None:
    course = Course()
    near = course.in_range(20.0)
    players = {person.number for person in course.people if person.role == "player"}
    assert not players & set(near)
    for one, others in near.items():
        for other in others:
            assert one in near[other]
            (x_m, y_m), (u_m, v_m) = course.place(one, 20.0), course.place(other, 20.0)
            assert hypot(x_m - u_m, y_m - v_m) <= course.range_m


def test_totals_and_ranks_follow_from_the_strokes() -> None:
    found = results(Course(), 200.0, 1)
    totals: dict[str, int] = {}
    above: dict[str, int] = {}
    for result in found:
        values = result.values
        name, strokes = str(values["player"]), int(values["holescore"])
        totals[name] = totals.get(name, 0) + strokes
        above[name] = above.get(name, 0) + strokes - PARS[int(values["hole"]) - 1]
        assert values["totalscore"] == totals[name]
    assert len(found) > 20
    assert len(totals) == 6


def test_a_simulated_tournament_is_a_story() -> None:
    messages, summary = simulated_story(Course(holes=4, visitors=6), duration_s=20.0, seed=2)
    kinds = [message["kind"] for message in messages]
    assert kinds[0] == "course"
    assert kinds.count("published") == summary["published"] > 0
    assert kinds.count("places") == 81
    assert kinds.count("delivered") >= summary["delivered"] > 0
    assert summary["delivered"] <= summary["expected"]
    heard = [message for message in messages if message["kind"] == "heard"]
    assert len({(message["event"], message["receiver"]) for message in heard}) == len(heard)
    times = [message["t"] for message in messages[1:]]
    assert times == sorted(times)
    page = recorded_page(messages)
    story = page.partition('<script id="story" type="application/json">')[2].partition("</script>")[0]
    assert json.loads(story) == json.loads(json.dumps(messages))
    assert "/web/" not in page
