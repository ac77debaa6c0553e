"""The hunt: cases are drawn from the seed alone, judged, shrunk, kept and taken up again."""

from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import pyarrow as pa
import pytest
from typer.testing import CliRunner

from roamcast.cli.hunt import app
from roamcast.emulator.emulation import require_emulable
from roamcast.errors import ConfigurationError
from roamcast.hunt.accountant import account, is_wanted
from roamcast.hunt.case import Case, read_case, write_case
from roamcast.hunt.draw import HUNTED, draw_case
from roamcast.hunt.hunter import HuntTask, Limit, perform, retry_open, tasks
from roamcast.hunt.judge import CaseFailure, Verdict, judge
from roamcast.hunt.ledger import Ledger
from roamcast.hunt.live import live_case
from roamcast.hunt.page import hunt_page, read_records, record_of, write_records
from roamcast.hunt.promises import promise
from roamcast.hunt.settings import draw_parameters
from roamcast.hunt.shrink import shrink
from roamcast.interests import parse_interest
from roamcast.protocols.catalogue import protocol_parameters
from roamcast.protocols.flooding import Flooding
from roamcast.seeds import derive
from roamcast.trace.recorder import Recorder
from roamcast.trace.schema import Record
from roamcast.world.incident import Incident
from roamcast.world.radio.models.ideal import Ideal
from roamcast.world.scenario import Faults, Mobility, Run, Scenario, Workload


class Forgetful(Flooding):
    """Flooding with a planted bug: it does not remember what it has seen for an event in sixteen."""

    name: ClassVar[str] = "forgetful"

    def on_message(self, sender: int, message: Any) -> None:
        event = getattr(message, "event", None)
        if event is not None and event.id % 16 == 3:
            self.host.deliver(event, 1)
        super().on_message(sender, message)


class Raising(Flooding):
    def on_timer(self, timer: Any) -> None:
        if self.host.now() > 8:
            raise ZeroDivisionError("planted")
        super().on_timer(timer)


class Storming(Flooding):
    """Flooding with a planted bug: whoever hears a message says it again."""

    def on_message(self, sender: int, message: Any) -> None:
        self.host.broadcast(message)


def small(protocol: str, settled_s: float | None = None, **faults: Any) -> Case:
    scenario = Scenario(
        nodes=6,
        area_m=(300.0, 300.0),
        duration_s=20.0,
        mobility=Mobility(model="static"),
        radio=Ideal(range_m=250.0, loss=0.0),
        workload=Workload(publisher_share=1.0, rate_per_s=0.5, tail_s=3.0, selectivity=0.5),
        faults=Faults(**faults),
    )
    return Case(Run(scenario=scenario, protocol=protocol), step_s=0.5, settled_s=settled_s, within_s=2.0)


@pytest.mark.parametrize("protocol", HUNTED)
def test_a_few_cases_of_every_protocol_pass(protocol: str) -> None:
    for number in range(20):
        case = draw_case(1, number, protocol)
        if case.node_hours < 0.15:
            verdict = judge(case, again=True)
            assert verdict.failure is None, f"{protocol} {number}: {verdict.failure}"


def test_a_case_follows_from_its_number() -> None:
    assert draw_case(1, 5, "waymark") == draw_case(1, 5, "waymark")
    assert draw_case(1, 5, "waymark") != draw_case(2, 5, "waymark")


@pytest.mark.parametrize("protocol", HUNTED)
def test_drawn_parameters_are_allowed(protocol: str) -> None:
    random = derive(1, "parameters")
    for _ in range(20):
        drawn = draw_parameters(random, protocol, {})
        protocol_parameters(protocol, drawn)
        promise(protocol, drawn)


def test_a_planted_bug_is_found_and_shrunk() -> None:
    incidents = tuple(Incident(what="pause", node=node, from_s=1.0, until_s=2.0) for node in range(4))
    case = small(f"{__name__}:Forgetful", incidents=incidents)
    verdict = judge(case)
    assert verdict.failure is not None
    assert verdict.failure.kind == "deliveries"
    smaller = shrink(case, "deliveries")
    assert smaller.weight < case.weight
    assert not smaller.run.scenario.faults.incidents
    assert judge(smaller).failure is not None


def test_an_exception_is_a_failure_that_says_where() -> None:
    verdict = judge(small(f"{__name__}:Raising"))
    assert verdict.failure is not None
    assert verdict.failure.kind == "exception:ZeroDivisionError"
    assert "test_hunter.py" in verdict.failure.detail


def test_a_storm_of_frames_is_a_failure_and_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("roamcast.hunt.judge.FRAMES_MAX", 1000)
    verdict = judge(small(f"{__name__}:Storming"))
    assert verdict.failure is not None
    assert verdict.failure.kind == "storm"


def test_events_that_are_lost_after_healing_are_a_failure() -> None:
    deaf = Incident(what="corrupt", node=1, from_s=0.0, amount=1.0)
    verdict = judge(small("flooding", settled_s=8.0, incidents=(deaf,)))
    assert verdict.failure is not None
    assert verdict.failure.kind == "lost"
    late = Incident(what="delay", node=1, from_s=0.0, amount=2.5)
    verdict = judge(small("flooding", settled_s=8.0, incidents=(late,)))
    assert verdict.failure is not None
    assert verdict.failure.kind == "late"
    sound = judge(small("flooding", settled_s=8.0))
    assert sound.failure is None
    assert sound.promised > 20


def test_shrinking_keeps_the_kind_of_failure() -> None:
    case = small("flooding", incidents=tuple(Incident(what="pause", node=n, from_s=1.0, until_s=2.0) for n in range(5)))

    def judged(tried: Case) -> Verdict:
        culprit = any(incident.node == 3 for incident in tried.run.scenario.faults.incidents)
        failure = CaseFailure("deliveries" if culprit else "lost", "")
        return Verdict(failure, {}, "", owed=0, paid=0, promised=0, wall_s=0.0)

    smaller = shrink(case, "deliveries", judged)
    assert [incident.node for incident in smaller.run.scenario.faults.incidents] == [3]
    assert smaller.run.scenario.nodes == 4
    assert smaller.run.scenario.duration_s <= 2.0


def test_the_accountant_counts_each_kind_of_mistake() -> None:
    recorder = Recorder("run")
    wants: dict[str, Any] = {"category": "intervals", "detail": "0..10"}
    published: dict[str, Any] = {"category": "intervals", "shortest_hops": [0, 1, 1]}
    one, two = (5 << 32) + 1, (5 << 32) + 2
    for record in (
        Record(0.0, "subscribed", node=1, **wants),
        Record(0.0, "subscribed", node=2, **wants),
        Record(1.0, "published", node=0, event_id=one, value=3.0, **published),
        Record(2.0, "published", node=0, event_id=two, value=4.0, **published),
        Record(2.5, "delivered", node=1, peer=0, event_id=two, value=0.5),
        Record(3.0, "delivered", node=1, peer=0, event_id=one, value=2.0),
        Record(3.1, "delivered", node=1, peer=0, event_id=one, value=2.1),
        Record(3.2, "fault", node=1, detail="crash"),
        Record(3.3, "delivered", node=1, peer=0, event_id=one, value=2.1),
        Record(4.0, "unsubscribed", node=2, **wants),
        Record(5.0, "delivered", node=2, peer=0, event_id=two, value=3.0),
        Record(6.0, "delivered", node=2, peer=0, event_id=99, value=3.0),
    ):
        recorder.add(record)
    table: pa.Table = recorder.table()
    books = account(table)
    assert (books.owed, books.paid, books.lost) == (4, 3, 1)
    assert (books.duplicated, books.repeated, books.reordered) == (2, 1, 2)
    assert len(books.unexpected) == 2
    assert [len(account(table, grace_s).unexpected) for grace_s in (0.9, 1.1)] == [2, 1]  # 2 ended its interest at 4 s


@pytest.mark.parametrize("pattern", ["**", "a/**", "*/b", "a/*/c", "**/c", "a/**/c", "a"])
@pytest.mark.parametrize("topic", ["a", "a/b", "a/b/c", "a/x/y/c", "b", "c"])
def test_the_accountant_reads_topics_as_the_language_does(pattern: str, topic: str) -> None:
    assert is_wanted("topics", pattern, topic) == parse_interest("topics", pattern).contains(topic)


def test_a_hunt_is_resumed_and_a_mended_failure_is_closed(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path, seed=3)
    entry, shrunk = perform(HuntTask(3, 0, "flooding"))
    ledger.add(entry, shrunk)
    failed = msgspec.structs.replace(entry, number=1, failure="lost", file="failures/flooding-1.json")
    ledger.add(failed, small("flooding", settled_s=8.0))
    with (tmp_path / "ledger.jsonl").open("ab") as file:
        file.write(b'{"number":2,"prot')  # the machine stopped here
    again = Ledger(tmp_path, seed=3)
    assert [task.number for task, _ in zip(tasks(again, ("flooding",)), range(2), strict=False)] == [2, 3]
    assert again.totals()["all"].open == 1
    assert [each.number for each in retry_open(again)] == [1]
    final = Ledger(tmp_path, seed=3)
    assert final.totals()["flooding"].open == 0
    (tmp_path / "fuzz.json").write_text('{"flooding": {"decoded": 5000, "messages": 70, "refused": 6, "learned": 1}}')
    bug = {"name": "a", "what": "a bug", "suite": False, "hunt": True, "hunt_minutes": 5}
    (tmp_path / "mutants.json").write_bytes(msgspec.json.encode([bug]))
    page = hunt_page({3: record_of(final)}, found="What was found.")
    assert "| flooding | `lost` | 1 |" in page
    assert "| flooding | 5,000 | 70 | 6 |" in page
    assert "| a bug | no | yes |" in page
    assert page.endswith("What was found.\n")
    with pytest.raises(ConfigurationError, match="seed"):
        Ledger(tmp_path, seed=4)


def test_hunts_add_up(tmp_path: Path) -> None:
    path = tmp_path / "kept" / "hunts.json"
    for seed in (3, 4):
        ledger = Ledger(tmp_path / str(seed), seed)
        ledger.add(*perform(HuntTask(seed, 0, "flooding")))
        write_records(read_records(path) | {seed: record_of(ledger)}, path)
    kept = read_records(path)
    hours = sum(record.totals["all"].node_hours for record in kept.values())
    page = hunt_page(kept)
    assert f"| simulated node-hours | 50,000 | {hours:,.0f} |" in page
    assert f"| flooding | 2 | {hours:,.1f} |" in page
    assert "| seeds of the hunts | | 3, 4 |" in page
    path.write_text("{")
    with pytest.raises(ConfigurationError, match=r"hunts\.json cannot be read"):
        read_records(path)


def test_a_limit_ends_the_hunt() -> None:
    assert not Limit(runs=3).reached(2)
    assert Limit(runs=3).reached(3)
    assert Limit(until_s=0.0).reached(0)


def test_the_command_replays_a_case(tmp_path: Path) -> None:
    path = tmp_path / "case.json"
    case = small("flooding", settled_s=8.0)
    write_case(case, path)
    assert read_case(path) == case
    result = CliRunner().invoke(app, ["replay", str(path)])
    assert result.exit_code == 0
    assert result.output.startswith("passed")


def test_the_command_hunts(tmp_path: Path) -> None:
    arguments = ["--protocol", "flooding", "--runs", "2", "--jobs", "1", "--out", str(tmp_path), "--json"]
    arguments += ["--page", str(tmp_path / "hunt.md"), "--records", str(tmp_path / "hunts.json")]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    answer = msgspec.json.decode(result.stdout)
    assert answer["totals"]["flooding"]["cases"] == 2
    assert "| flooding | 2 |" in (tmp_path / "hunt.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--runs", "-1"], "runs = -1: must be at least 0"),
        (["--jobs", "-1"], "jobs = -1: must be at least 0"),
        (["--hours", "0"], "hours = 0: must be above 0"),
        (["--longest", "0.01"], "longest = 0.01: must be at least 0.1"),
        (["--shortest", "1", "--longest", "1.5"], "longest = 1.5: must be at least 2"),
        (["--shortest", "500"], "shortest = 500: must be at most 20"),
        (["fuzz", "--datagrams", "0"], "datagrams = 0: must be at least 1"),
        (["fuzz", "--hours", "0"], "hours = 0: must be above 0"),
        (["live", "--runs", "0"], "runs = 0: must be at least 1"),
        (["adversaries", "--seeds", "0"], "seeds = 0: must be at least 1"),
    ],
)
def test_the_command_refuses_what_makes_no_sense(arguments: list[str], said: str, tmp_path: Path) -> None:
    where = ["--out", str(tmp_path)] if arguments[0].startswith("--") else []
    result = CliRunner().invoke(app, [*where, *arguments])
    assert isinstance(result.exception, ConfigurationError)
    assert str(result.exception) == said


def test_cases_are_chosen_by_size(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path, seed=5)

    def node_hours(shortest: float, longest: float | None) -> list[float]:
        chosen = islice(tasks(ledger, ("flooding", "gossip"), shortest, longest), 10)
        return [draw_case(5, task.number, task.protocol).node_hours for task in chosen]

    assert max(node_hours(0.0, 0.5)) <= 0.5
    assert min(node_hours(10.0, None)) >= 10.0
    assert 1.0 <= min(node_hours(1.0, 20.0)) <= max(node_hours(1.0, 20.0)) <= 20.0


@pytest.mark.parametrize("protocol", HUNTED)
def test_cases_for_real_nodes_can_be_emulated(protocol: str) -> None:
    for number in range(5):
        case = live_case(1, number, protocol)
        assert (case is None) == (promise(protocol, {}) is None)
        if case is not None:
            require_emulable(case.run)
            assert case.run.scenario.nodes == 10
            assert case.settled_s is not None
            assert case.run.scenario.duration_s <= 600.0
