"""Finding the run to play in a trace or a campaign."""

from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from roamcast.campaign.worker import DONE, FAILED, outcome_row
from roamcast.errors import ConfigurationError
from roamcast.report.replay.data import replay_data
from roamcast.report.replay.recordings import open_recording
from roamcast.trace.files import write_trace
from roamcast.trace.recorder import Recorder
from roamcast.trace.schema import Record
from roamcast.world.scenario import Run, Scenario

RUN = Run(scenario=Scenario(nodes=3), protocol="gossip", seed=5)


def recorder(run_id: str, nodes: int) -> Recorder:
    filled = Recorder(run_id)
    filled.add(Record(9.0, "end", count=nodes))
    return filled


def write_partitioned(directory: Path, batches: list[pa.RecordBatch]) -> None:
    pq.write_to_dataset(pa.Table.from_batches(batches), directory, partition_cols=["kind"])


@pytest.fixture
def campaign(tmp_path: Path) -> Path:
    """Three runs that are over in two batches, one that failed, one that has not run."""
    runs = [("aa01", 10, DONE), ("aa02", 20, DONE), ("bb03", 30, DONE), ("cc04", 40, FAILED), ("dd05", 50, "")]
    plan = [
        {"run_id": name, "place": 0, "point": 0, "protocol": "gossip", "seed": seed, "range_m": "250",
         "run": msgspec.json.encode(RUN).decode()}
        for seed, (name, _, _) in enumerate(runs)
    ]  # fmt: skip
    pq.write_table(pa.Table.from_pylist(plan), tmp_path / "plan.parquet")
    (tmp_path / "campaign.json").write_text("{}")
    for number, (name, nodes, status) in enumerate(runs):
        if status:
            batches = [*recorder(name, nodes).batches()] if status == DONE else []
            batches.append(outcome_row(name, status, "", 0.1, 1))
            write_partitioned(tmp_path / "trace" / f"batch={number % 2:05d}", batches)
    return tmp_path


def test_a_trace_says_what_was_run(tmp_path: Path) -> None:
    write_trace(tmp_path / "trace", recorder("aa01", 3).batches(), msgspec.json.encode(RUN))
    recording = open_recording(tmp_path / "trace")
    assert (recording.known.run_id, recording.known.protocol, recording.known.seed) == ("aa01", "gossip", 5)
    assert recording.known.run == RUN


@pytest.mark.parametrize("about", [b"", b"{", b'{"protocol": 7}', b'{"news": 1}'])
def test_a_trace_that_does_not_say_plays_all_the_same(tmp_path: Path, about: bytes) -> None:
    write_trace(tmp_path / "trace", recorder("aa01", 3).batches(), about)
    recording = open_recording(tmp_path / "trace")
    assert (recording.known.run_id, recording.known.run) == ("aa01", None)
    assert recording.trace.num_rows == 1


def test_of_a_campaign_the_first_run_or_the_one_that_is_named(campaign: Path) -> None:
    first = open_recording(campaign)
    assert (first.known.run_id, first.known.settings) == ("aa01", {"range_m": "250"})
    assert [each.run_id for each in first.others] == ["aa01", "aa02", "bb03"]  # neither failed nor planned ones
    named = open_recording(campaign, "bb")
    assert named.known.run_id == "bb03"
    assert named.known.run == RUN
    assert named.trace["count"].to_pylist() == [30]
    assert open_recording(campaign, "aa02").trace["count"].to_pylist() == [20]


@pytest.mark.parametrize(
    ("run_id", "message"),
    [("ff", "run: 'ff' is not in"), ("aa", "is the beginning of several ids: aa01"), ("cc04", "it holds aa01 (gossip")],
)
def test_a_run_that_cannot_be_chosen_is_refused(campaign: Path, run_id: str, message: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        open_recording(campaign, run_id)
    assert message in str(refused.value)


def test_a_campaign_of_which_nothing_is_over_is_refused(campaign: Path) -> None:
    for batch in (campaign / "trace").iterdir():
        batch.rename(campaign / f"away-{batch.name}")
    with pytest.raises(ConfigurationError, match="holds no run that is over"):
        open_recording(campaign)


def test_traces_of_live_nodes_side_by_side_are_one_run(tmp_path: Path) -> None:
    for node in (7, 9):
        live = Recorder("field")
        live.add(Record(1000.0 + node, "subscribed", node, category="topics", detail="*"))
        live.add(Record(1010.0 + node, "end", count=1))
        write_trace(tmp_path / f"node-{node}", live.batches())
    recording = open_recording(tmp_path)
    assert recording.known.run_id == "field"
    found = replay_data(recording).found
    assert found.nodes == 2
    assert found.duration_s == pytest.approx(12.0)


def test_a_directory_without_a_trace_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="holds no trace"):
        open_recording(tmp_path)
