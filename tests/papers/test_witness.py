"""Stored results against today's sources: witnesses."""

from pathlib import Path

import msgspec
import pytest

from roamcast.cli.reproduce import reproduce
from roamcast.papers.catalogue import FIGURES
from roamcast.papers.sources import sources_of
from roamcast.papers.summary import Summary, Witness, read_summary, write_summary
from roamcast.papers.witness import differing, renewed
from roamcast.world.scenario import Run, Scenario
from roamcast.world.simulator import simulate

FIGURE = "geo-3c"


@pytest.fixture(scope="module")
def result() -> Summary:
    """A stored result whose sources have changed since, with one small run as its witness."""
    run = Run(scenario=Scenario(nodes=4, duration_s=4.0))
    told = msgspec.json.encode(run).decode()
    witness = Witness(contender="flooding", run=told, trace_hash=simulate(run).recorder.trace_hash())
    kept = read_summary(Path(__file__).parents[2] / f"docs/results/data/{FIGURE}.json")
    return msgspec.structs.replace(kept, sources={"simulator": "another"}, witnesses=(witness,))


def forged(summary: Summary) -> Summary:
    other = msgspec.structs.replace(summary.witnesses[0], trace_hash="0" * 32)
    return msgspec.structs.replace(summary, witnesses=(other,))


def test_a_result_whose_witnesses_do_the_same_gets_the_digests_of_today(result: Summary) -> None:
    fresh = renewed(result)
    assert fresh is not None
    assert fresh.sources == sources_of(FIGURES[FIGURE].campaign(result.scale))
    assert renewed(fresh) is None  # there is nothing to renew


def test_a_result_stays_old_if_a_witness_does_something_else_or_there_is_none(result: Summary) -> None:
    assert differing(forged(result).witnesses) == ["flooding"]
    assert renewed(forged(result)) is None
    assert renewed(msgspec.structs.replace(result, witnesses=())) is None


def test_verify_renews_the_stored_file(result: Summary, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / f"{FIGURE}.json"
    write_summary(result, path)
    reproduce(store=tmp_path, verify=True, as_json=True)
    assert msgspec.json.decode(capsys.readouterr().out)[0]["renewed"] is True
    assert read_summary(path).sources != result.sources
    write_summary(forged(result), path)
    reproduce(store=tmp_path, verify=True)
    assert f"{FIGURE}: older than" in capsys.readouterr().out
