"""The data structures of a broker: topology table, intake, log, patience."""

from hypothesis import given, settings
from hypothesis import strategies as st

from roamcast.events import Event, event_id
from roamcast.protocols.overlays.intake import Intake
from roamcast.protocols.overlays.log import ProducerLog, StoredEvent
from roamcast.protocols.overlays.messages import LinkState
from roamcast.protocols.overlays.parameters import OverlaysParameters
from roamcast.protocols.overlays.repeats import Attempt, Patience
from roamcast.protocols.overlays.tables import TopologyTable
from roamcast.seeds import Random


def table(own: int, *rows: tuple[int, dict[int, int]], sequence: int = 1) -> TopologyTable:
    built = TopologyTable(own)
    for broker, neighbours in rows:
        built.merge(LinkState(broker, sequence, tuple(neighbours.items()), 0.0, 0), 0.0)
    return built


A, B, C, D = range(4)


def test_the_example_of_figure_3() -> None:
    """Section 2.3: C finds D, then B loses D; the path from C to D becomes direct, that from A to D leads over C."""
    at_a = table(A, (A, {B: 2}), (B, {A: 2, C: 2, D: 2}), (C, {B: 2}), (D, {B: 2}))
    assert at_a.path(D) == (B, D)
    assert at_a.merge(LinkState(C, 2, ((B, 2), (D, 3)), 0.0, 0), 1.0)
    assert at_a.path(D) == (B, D)
    assert at_a.merge(LinkState(B, 2, ((A, 2), (C, 2)), 0.0, 0), 2.0)
    assert at_a.merge(LinkState(D, 2, ((C, 3),), 0.0, 0), 2.0)
    assert at_a.path(D) == (B, C, D)
    assert at_a.distance(A, D) == 7


def test_older_rows_change_nothing() -> None:
    built = table(A, (A, {B: 1}), (B, {}), sequence=5)
    assert not built.merge(LinkState(B, 5, ((C, 1),), 0.0, 0), 1.0)
    assert not built.merge(LinkState(B, 4, ((C, 1),), 0.0, 0), 1.0)
    assert built.rows[B].neighbours == ()


def test_only_rows_that_changed_since_the_last_propagation_are_marked() -> None:
    built = table(A, (A, {B: 1}), (B, {}), (C, {}))
    built.changed.clear()
    built.merge(LinkState(C, 2, ((A, 1),), 0.0, 0), 1.0)
    assert list(built.changed) == [C]


def test_a_link_exists_if_either_end_lists_it() -> None:
    built = table(A, (A, {}), (B, {A: 1}))
    assert built.linked(A) == [B]
    assert built.path(B) == (B,)


def test_avoided_brokers_relay_nothing_but_may_be_reached() -> None:
    built = table(A, (A, {B: 1, C: 2}), (B, {D: 1}), (C, {D: 2}), (D, {}))
    assert built.path(D) == (B, D)
    assert built.path(D, frozenset({B})) == (C, D)
    assert built.path(B, frozenset({B})) == (B,)
    assert built.path(9) is None


def test_brokers_that_fell_silent_are_forgotten_but_oneself_is_not() -> None:
    built = table(A, (A, {B: 1}), (B, {A: 1}))
    built.merge(LinkState(C, 1, ((A, 1),), 0.0, 0), 50.0)
    assert built.expire(10.0) == [B]
    assert built.linked(A) == [C]


@settings(deadline=None, derandomize=True, max_examples=60)
@given(st.integers(2, 9), st.integers(0, 1000))
def test_paths_are_shortest_by_a_slow_twin(brokers: int, seed: int) -> None:
    random = Random(seed)
    links = {
        (one, other): random.randrange(1, 6) for one in range(brokers) for other in range(one) if random.random() < 0.4
    }
    rows = [(one, {other: length for (a, other), length in links.items() if a == one}) for one in range(brokers)]
    built = table(0, *rows)
    distance = {(a, b): 0 if a == b else 10**6 for a in range(brokers) for b in range(brokers)}
    for (a, b), length in links.items():
        distance[a, b] = distance[b, a] = length
    for via in range(brokers):
        for a in range(brokers):
            for b in range(brokers):
                distance[a, b] = min(distance[a, b], distance[a, via] + distance[via, b])
    for other in range(1, brokers):
        path = built.path(other)
        if path is None:
            assert distance[0, other] >= 10**6
        else:
            steps = list(zip((0, *path), path, strict=False))
            assert sum(links[max(step), min(step)] for step in steps) == distance[0, other] == built.distance(0, other)


# -- Intake ------------------------------------------------------------------------------------------------------------


def event(number: int, publisher: int = 1) -> Event:
    return Event(event_id(publisher, number), 0.0, number)


def taken(intake: Intake) -> list[int]:
    numbers = []
    while (arrival := intake.take()) is not None:
        numbers.append(arrival.event.number)
    return numbers


@settings(deadline=None, derandomize=True, max_examples=150)
@given(st.lists(st.integers(1, 40), unique=True, max_size=15), st.integers(0, 10_000))
def test_whatever_the_order_and_repetition_of_arrivals_events_are_taken_in_order_once(
    numbers: list[int], seed: int
) -> None:
    ordered = sorted(numbers)
    chain = list(zip([0, *ordered], ordered, strict=False))
    arrivals = chain + chain
    Random(seed).shuffle(arrivals)
    intake, got = Intake(100), []
    for previous, number in arrivals:
        intake.offer(event(number), previous, 1)
        got += taken(intake)
    assert got == ordered
    assert len(intake) == 0


def test_an_event_waits_for_the_one_before_it_unless_that_one_has_expired() -> None:
    intake = Intake(100)
    intake.offer(event(5), 3, 1)
    assert taken(intake) == []
    intake.offer(event(5), 0, 1)  # sent again, after 3 expired
    assert taken(intake) == [5]


def test_an_event_that_waits_for_one_that_nobody_sends_any_more_does_not_hold_up_the_rest() -> None:
    intake = Intake(100)
    intake.offer(event(4), 3, 1)  # 3 was lost; then the sender learned that both had arrived over another broker
    intake.offer(event(5), 0, 1)
    assert taken(intake) == [5]
    assert len(intake) == 0


def test_a_site_to_be_goes_on_from_where_the_other_one_has_got() -> None:
    intake = Intake(100)
    for number in (4, 5, 6):
        intake.offer(event(number), number - 1, 1)
    intake.resume([(1, 4)])
    assert taken(intake) == [5, 6]


def test_an_intake_that_passes_over_keeps_order_but_not_completeness() -> None:
    intake = Intake(100, passes_over=True)
    intake.offer(event(5), 4, 1)
    assert taken(intake) == [5]
    intake.offer(event(4), 3, 1)
    assert taken(intake) == []


# -- Log ---------------------------------------------------------------------------------------------------------------


def test_an_event_is_released_when_settled_with_everybody_and_all_before_it_are() -> None:
    log = ProducerLog(1, 0.0, 100)
    assert log.append(StoredEvent(event(1), 1, 0.0), [7, 8]) == {7: 0, 8: 0}
    assert log.append(StoredEvent(event(2), 1, 0.0), [7]) == {7: 1}
    log.acknowledge(7, 2, 2)
    assert not log.release(100.0)
    log.acknowledge(8, 1, 1)
    assert log.release(100.0)
    assert log.released == 2
    assert log.append(StoredEvent(event(3), 1, 0.0), [7]) == {7: 0}  # 7 has received everything before


def test_what_was_processed_but_is_not_settled_is_kept_and_not_repeated() -> None:
    log = ProducerLog(1, 0.0, 100)
    log.append(StoredEvent(event(1), 1, 0.0), [7])
    log.acknowledge(7, 1, 0)
    assert not log.entries[1].unreceived
    assert not log.release(100.0)
    log.restart(7, 0)
    log.demand(log.entries[1], 7)
    assert log.last_unreceived(7) == 1


def test_a_client_that_starts_over_gets_a_chain_from_its_new_beginning() -> None:
    log = ProducerLog(1, 0.0, 100)
    log.restart(7, 4)  # its former site had got as far as 4, the client itself had not
    log.restart(7, 0)
    assert log.append(StoredEvent(event(1), 1, 0.0), [7]) == {7: 0}
    assert log.append(StoredEvent(event(2), 1, 0.0), [7]) == {7: 1}


def test_the_store_has_a_bound_and_a_lifetime() -> None:
    log = ProducerLog(1, 0.0, 100)
    for number in range(1, 6):
        log.append(StoredEvent(event(number), 1, float(number)), [7])
    assert [entry.event.number for entry in log.expire(0.0, 3)] == [1, 2]
    assert [entry.event.number for entry in log.expire(4.0, 3)] == [3]
    assert log.previous(7, 5) == 4
    assert log.previous(7, 4) == 0


def waits_s(patience: Patience, tries: int) -> list[float]:
    """How long it waits after each of this many failed tries."""
    attempt = Attempt()
    waits = []
    for _ in range(tries):
        patience.tried(attempt, 100.0)
        waits.append(attempt.due_s - 100.0)
    return waits


def test_waits_double_up_to_eight_times_the_shortest() -> None:
    assert waits_s(Patience(OverlaysParameters(retry_s=2.0)), 6) == [2.0, 4.0, 8.0, 16.0, 16.0, 16.0]


def test_answers_that_take_long_make_patient_and_quick_ones_impatient_again() -> None:
    patience = Patience(OverlaysParameters(retry_s=2.0))
    for _ in range(40):
        slow = Attempt()
        patience.tried(slow, 0.0)
        patience.answered(slow, 5.0)
    assert 9.9 < waits_s(patience, 1)[0] < 10.0
    assert waits_s(patience, 3)[2] == 16.0
    for _ in range(40):
        quick = Attempt()
        patience.tried(quick, 0.0)
        patience.answered(quick, 0.1)
    assert waits_s(patience, 1) == [2.0]
