"""`roamcast advise` as users type it: refusals before Spark starts, and how an answer reads."""

from pathlib import Path

import pytest

from roamcast.advise.advice import Advice, Evidence, MeanEstimate
from roamcast.advise.judgement import Elimination, Stage
from roamcast.cli import advise, main


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    path = tmp_path / "net.toml"
    path.write_text("[scenario]\nnodes = 10\narea_m = 300\n", encoding="utf-8")
    return path


def refusal(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as ended:
        main(["advise", *arguments])
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    return said


@pytest.mark.parametrize(
    ("options", "part"),
    [
        (["--want", "delivery=0.9"], "--want: 'delivery=0.9' is not a demand"),
        (["--want", "luck>=1"], "--want: 'luck' is not a measure; allowed: delivery,"),
        (["--minimise", "delivery"], "--minimise: 'delivery' is not a measure of which lower is better"),
        (["--maximise", "airtime"], "--maximise: 'airtime' is not a measure of which higher is better"),
        (["--minimise", "airtime", "--maximise", "delivery"], "only one can be the aim"),
        (["--protocols", "flooding,doves"], "protocol: 'doves' is unknown"),
        (["--protocols", "oracle"], "'oracle' runs in the simulator only"),
        (["--budget-minutes", "0"], "--budget-minutes = 0: must be above 0"),
    ],
)
def test_nonsense_is_one_line(
    scenario: Path, options: list[str], part: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert part in refusal([str(scenario), *options, "--out", str(scenario.parent / "out")], capsys)
    assert not (scenario.parent / "out").exists()


def test_a_scenario_that_makes_no_sense_is_refused(scenario: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "cannot be read" in refusal([str(scenario.with_name("none.toml"))], capsys)
    scenario.write_text("[scenario]\nnodes = 0\n", encoding="utf-8")
    assert "nodes = 0" in refusal([str(scenario), "--out", str(scenario.parent / "out")], capsys)
    scenario.write_text('protocol = "gossip"\n[parameters]\nluck = 1\n', encoding="utf-8")
    assert "'luck' is not a parameter" in refusal([str(scenario), "--out", str(scenario.parent / "out")], capsys)


def test_an_answer_gives_its_reasons(capsys: pytest.CaptureFixture[str]) -> None:
    delivery, latency = MeanEstimate(12, 0.98, 0.97, 0.99), MeanEstimate(12, 7.5, 7.25, 7.75)
    measures = {"delivery_ratio": delivery, "latency_ms_mean": latency}
    chosen = Evidence("gossip", "gossip", {}, "meets", measures, None)
    lossy = Evidence("somer", "somer", {}, "misses", measures, Elimination(1, "certainly misses delivery >= 0.95"))
    answer = Advice(
        scenario="net.toml",
        demands=("delivery >= 0.95",),
        objective="latency_ms_mean",
        confidence=0.95,
        stages=(Stage(1, 6, 3, 2), Stage(2, 12, 2, 1)),
        outcome="certain",
        choice="gossip",
        level=(),
        open=(),
        runner_up="flooding",
        lead=MeanEstimate(12, -1.5, -2.0, -1.0),
        evidence=(chosen, lossy),
        commands=("roamcast simulate --scenario net.toml --protocol gossip",),
    )
    advise._tell(answer)
    said = capsys.readouterr().out
    assert "Recommendation: gossip." in said
    assert "latency against the runner-up flooding: −1.50 ± 0.50 ms, paired over 12 networks" in said
    assert "0.980 ± 0.010" in said
    assert "stage 1: certainly misses delivery >= 0.95" in said
    assert said.rstrip().endswith("roamcast simulate --scenario net.toml --protocol gossip")
