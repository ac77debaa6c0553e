"""The command line by running it: what all commands share, and `roamcast protocols`."""

import json
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from roamcast import FORM, __version__, cli
from roamcast.protocols.catalogue import PROTOCOLS

NODE = ["node", "--address", "1", "--peer", "127.0.0.1:9"]
SOURCE = Path(__file__).parents[2] / "src"


def roamcast(capfd: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        cli.main(list(arguments))
    out, err = capfd.readouterr()
    assert isinstance(ended.value.code, int)
    return ended.value.code, out, err


def test_the_module_runs_as_a_program() -> None:
    command = [sys.executable, "-m", "roamcast", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, env={"PYTHONPATH": str(SOURCE)}, check=True)
    assert done.stdout == f"roamcast {__version__}, {FORM}\n"


@pytest.mark.parametrize("arguments", [[], ["--help"]])
def test_help_names_every_command(capfd: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    status, out, err = roamcast(capfd, *arguments)
    assert (status, err) == (0, "")
    for name in cli.COMMANDS:
        assert f" {name} " in out


@pytest.mark.parametrize("name", sorted(cli.COMMANDS))
def test_every_command_explains_itself(capfd: pytest.CaptureFixture[str], name: str) -> None:
    status, out, err = roamcast(capfd, name, "--help")
    assert (status, err) == (0, "")
    assert "--help" in out


def test_help_does_not_wait_for_the_heavy_libraries() -> None:
    script = (
        "import sys\n"
        "from roamcast.cli import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit:\n    pass\n"
        "print([name for name in ('numpy', 'pyarrow', 'pyspark') if name in sys.modules])\n"
    )
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, env={"PYTHONPATH": str(SOURCE)}, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["fly"], "No such command 'fly'"),
        (["simulat"], "No such command 'simulat'. Did you mean 'simulate'?"),
        (["campaign", "rum"], "No such command 'rum'. Did you mean 'run'?"),
        (["simulate", "--nodes", "ten"], "Invalid value for '--nodes': 'ten' is not a whole number"),
        (["simulate", "--duration", "long"], "Invalid value for '--duration': 'long' is not a number"),
        (["--fly"], "No such option: --fly"),
        (["protocols", "--fly"], "No such option: --fly"),
        (["protocols", "extra"], "protocol: 'extra' is unknown"),
        (["node", "--peer", "127.0.0.1:9"], "--address: must be given"),
        (["node", "--address", "one", "--peer", "127.0.0.1:9"], "Invalid value for '--address'"),
        (["node", "--address", "1", "--peer", "nine"], "--peer: 'nine' is not an endpoint"),
        ([*NODE, "--site", "10x10"], "--site and --range: must be given"),
        ([*NODE, "--position", "here"], "--position: 'here' is not a place"),
        ([*NODE, "--duration", "-1"], "--duration = -1: must be above 0"),
        ([*NODE, "--language", "klingon"], "language: 'klingon' is unknown"),
        ([*NODE, "--subscribe", "a//b"], "interest: "),
        ([*NODE, "--trace", "/proc/x"], "trace: cannot write to '/proc/x'"),
    ],
)
def test_a_mistake_is_one_line_on_stderr_and_exit_code_2(
    capfd: pytest.CaptureFixture[str], arguments: list[str], expected: str
) -> None:
    status, out, err = roamcast(capfd, *arguments)
    assert (status, out) == (2, "")
    assert expected in err
    assert err.startswith("roamcast: ")
    assert err.count("\n") == 1
    assert err.endswith("\n")


def test_protocols_are_listed_with_their_parameters(capfd: pytest.CaptureFixture[str]) -> None:
    status, out, _ = roamcast(capfd, "protocols", "--json")
    assert status == 0
    listed = {protocol["name"]: protocol for protocol in json.loads(out)}
    assert list(listed) == list(PROTOCOLS)
    assert listed["flooding"]["summary"] == PROTOCOLS["flooding"].summary
    jitter = listed["flooding"]["parameters"][0]
    assert (jitter["name"], jitter["default"], jitter["unit"]) == ("jitter_s", 0.01, "s")
    assert jitter["allowed"] == "between 0 and 60 s"
    assert "random time" in jitter["meaning"]


def test_a_protocol_of_the_users_own_is_described(capfd: pytest.CaptureFixture[str]) -> None:
    status, out, _ = roamcast(capfd, "protocols", "roamcast.protocols.flooding.gossip:Gossip", "--json")
    assert status == 0
    assert [parameter["name"] for parameter in json.loads(out)[0]["parameters"]] == [
        *("jitter_s", "hops_max", "probability", "certain_hops"),
    ]


def test_protocols_are_readable_without_json(capfd: pytest.CaptureFixture[str]) -> None:
    status, out, _ = roamcast(capfd, "protocols")
    assert status == 0
    for name, protocol in PROTOCOLS.items():
        assert name in out
        assert protocol.summary in out
    status, out, _ = roamcast(capfd, "protocols", *PROTOCOLS)
    assert status == 0
    for protocol in PROTOCOLS.values():
        for parameter in protocol.Parameters.__struct_fields__:
            assert parameter in out


def test_the_version_for_programs(capfd: pytest.CaptureFixture[str]) -> None:
    status, out, _ = roamcast(capfd, "--version", "--json")
    assert status == 0
    assert json.loads(out) == {"version": __version__, "form": FORM, "python": platform.python_version()}


@pytest.mark.parametrize("arguments", [[], ["simulate"], ["campaign"], ["campaign", "run"]])
def test_h_is_short_for_help(capfd: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    assert roamcast(capfd, *arguments, "-h") == roamcast(capfd, *arguments, "--help")


def test_a_missing_extra_is_named(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> object:
        raise ModuleNotFoundError("No module named 'pyspark'", name="pyspark.sql")

    monkeypatch.setattr(cli, "import_module", missing)
    status, out, err = roamcast(capfd, "campaign", "run")
    assert (status, out) == (2, "")
    assert err == "roamcast: pyspark is not installed; this command needs it: pip install 'roamcast[spark]'\n"


def test_the_shell_completes_commands_and_their_options() -> None:
    script = "from roamcast.cli import main; import sys; sys.argv = ['roamcast']; main()"
    for words, expected in [("roamcast simul", "simulate"), ("roamcast simulate --proto", "--protocol")]:
        environment = {
            "PYTHONPATH": str(SOURCE),
            "_ROAMCAST_COMPLETE": "complete_bash",
            "COMP_WORDS": words,
            "COMP_CWORD": str(words.count(" ")),
        }
        command = [sys.executable, "-c", script]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
        assert expected in done.stdout.split(), done.stderr
