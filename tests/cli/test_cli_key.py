"""`roamcast key`: networks, authorities, identities, certificates, revocations."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from roamcast.cli.key import app
from roamcast.errors import ConfigurationError
from roamcast.live.identity import own_certificate, read_identity
from roamcast.live.keys import read_ring


def run(*arguments: object) -> str:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def answer(*arguments: object) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(run(*arguments, "--json"))
    return told


@pytest.fixture
def network(tmp_path: Path) -> Path:
    run("new", tmp_path / "rescue.key", "--network", "rescue")
    return tmp_path


def test_a_network_has_a_key_and_an_authority_that_only_their_owner_can_read(network: Path) -> None:
    for name in ("rescue.key", "rescue.authority"):
        assert (network / name).stat().st_mode & 0o077 == 0
    assert answer("show", network / "rescue.key")["authority"]
    assert "no authority" in run("new", network / "club.key", "--shared")
    assert not (network / "club.authority").exists()
    assert read_ring(network / "club.key").authority is None


def test_certify_makes_an_identity_and_renews_it(network: Path) -> None:
    rules = ["--publish", "fire/**", "--subscribe", "fire/north", "--modulates", "--days", "30"]
    first = answer("certify", network / "rescue.authority", network / "alice.node", *rules)
    authority = read_ring(network / "rescue.key").authority
    assert authority is not None
    certificate = own_certificate(read_identity(network / "alice.node"), authority, "rescue", 1_000.0)
    assert (certificate.publishes, certificate.subscribes) == (("fire/**",), ("fire/north",))
    assert (certificate.name, certificate.modulates, certificate.address) == ("alice", True, first["address"])
    again = answer("certify", network / "rescue.authority", network / "alice.node", "--days", "60")
    assert again["address"] == first["address"]
    assert again["expires"] > first["expires"]


def test_a_secret_need_not_travel(network: Path) -> None:
    made = answer("identity", network / "bob.node")
    run("certify", network / "rescue.authority", network / "bob.cert", "--public", made["public"])
    assert answer("identity", network / "bob.node", "--certificate", network / "bob.cert") == made
    authority = read_ring(network / "rescue.key").authority
    assert authority is not None
    identity = read_identity(network / "bob.node")
    assert own_certificate(identity, authority, "rescue", 1_000.0).address == made["address"]


def test_revocations_go_into_the_key_file(network: Path) -> None:
    for name in ("alice", "bob"):
        run("certify", network / "rescue.authority", network / f"{name}.node")
    assert answer("revoke", network / "rescue.authority", network / "rescue.key", "alice")["revoked"] == 1
    assert answer("revoke", network / "rescue.authority", network / "rescue.key", "bob")["revoked"] == 2
    run("rotate", network / "rescue.key", "--after", "0")
    assert "2 revoked" in run("show", network / "rescue.key")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["certify", "rescue.authority", "a.node", "--days", "0"], "--days = 0: must be above 0"),
        (["certify", "rescue.authority", "a.cert", "--public", "abc"], "--public: 'abc' is not a public key"),
        (["certify", "rescue.key", "a.node"], "rescue.key is not an authority"),
        (["revoke", "rescue.authority", "rescue.key", "zoe"], "'zoe' names 0 nodes"),
        (["identity", "rescue.key", "--certificate", "none"], "cannot read none"),
        (["new", "rescue.key"], "exists"),
    ],
)
def test_mistakes_are_named(
    network: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], reason: str
) -> None:
    monkeypatch.chdir(network)
    with pytest.raises(ConfigurationError) as refused:
        run(*arguments)
    assert reason in str(refused.value)
    assert "\n" not in str(refused.value)
