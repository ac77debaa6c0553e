"""`roamcast node --dependencies`: which events cause which others, told to a live node."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from roamcast.cli import commands
from roamcast.cli.node_plan import _dependencies, _site
from roamcast.errors import ConfigurationError

SPECIFICATION = "a: 0..10; b: 10..20; a => b"


def test_dependencies_come_as_text_or_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "dependencies.txt"
    path.write_text(SPECIFICATION.replace("; ", "\n"))
    from_text, from_file = _dependencies(SPECIFICATION, "intervals"), _dependencies(str(path), "intervals")
    assert from_text == from_file
    assert from_text.dependencies == ((0, 1),)


def test_dependencies_reach_the_protocol_through_the_site() -> None:
    site = _site("100x100", 30.0, _dependencies(SPECIFICATION, "intervals"))
    assert site is not None
    assert site.dependencies == _dependencies(SPECIFICATION, "intervals")


@pytest.mark.parametrize(
    ("text", "language", "reason"),
    [
        ("a => b => a", "intervals", "dependencies"),
        ("nowhere.txt", "intervals", "the name of a file"),
        (SPECIFICATION, "content", "only for --language"),
    ],
)
def test_nonsense_is_refused_in_one_line(text: str, language: str, reason: str) -> None:
    with pytest.raises(ConfigurationError, match=reason) as refusal:
        _dependencies(text, language)
    assert "\n" not in str(refusal.value)


def test_a_protocol_that_needs_a_site_names_its_options() -> None:
    refused = CliRunner().invoke(commands, ["node", "--address", "1", "--plain", "--protocol", "georendezvous"])
    assert isinstance(refused.exception, ConfigurationError)
    assert "--site and --range" in str(refused.exception)


def test_dependencies_belong_to_a_site() -> None:
    options = ["node", "--address", "1", "--protocol", "somer", "--dependencies", SPECIFICATION, "--duration", "0.1"]
    options += ["--peer", "127.0.0.1:9"]
    refused = CliRunner().invoke(commands, options)
    assert isinstance(refused.exception, ConfigurationError)
    assert "--dependencies, --site and --range" in str(refused.exception)
    accepted = CliRunner().invoke(commands, [*options, "--site", "100x100", "--range", "30"])
    assert accepted.exit_code == 0, accepted.output
