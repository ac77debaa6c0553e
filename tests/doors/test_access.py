"""Files of users, and the settings of doors."""

import asyncio
import base64
import hashlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from roamcast.cli.key import app
from roamcast.doors.access import Access, change_user, password_line, read_users
from roamcast.doors.settings import DoorEntry, Rights, door_settings
from roamcast.errors import ConfigurationError
from roamcast.interests import parse_interest


def login(path: Path, name: str, password: str) -> str | None:
    return asyncio.run(Access("http", DoorEntry(users=str(path)), "topics").by_password(name, password))


def test_the_command_makes_changes_and_removes_users(tmp_path: Path) -> None:
    file = tmp_path / "clients.users"
    run = CliRunner()
    for password in ("old", "new"):
        answer = run.invoke(app, ["user", str(file), "alice"], input=f"{password}\n")
        assert answer.exit_code == 0, answer.output
    token = run.invoke(app, ["user", str(file), "robot", "--token"]).output.strip()
    assert login(file, "alice", "new") == "alice"
    assert login(file, "alice", "old") is None
    assert login(file, "robot", token) == "robot"
    assert login(file, "alice", token) is None
    assert os.stat(file).st_mode & 0o077 == 0
    assert run.invoke(app, ["user", str(file), "alice", "--remove"]).exit_code == 0
    assert login(file, "alice", "new") is None
    with pytest.raises(ConfigurationError, match="no user 'alice'"):
        change_user(file, "alice", None)


def test_the_format_is_that_of_mosquitto_passwd(tmp_path: Path) -> None:
    salt, file = b"twelve bytes", tmp_path / "users"
    digest = hashlib.pbkdf2_hmac("sha512", b"rabbit", salt, 101)
    file.write_text(f"alice:$7$101${base64.b64encode(salt).decode()}${base64.b64encode(digest).decode()}\n")
    assert login(file, "alice", "rabbit") == "alice"
    assert login(file, "alice", "hare") is None


@pytest.mark.skipif(shutil.which("mosquitto_passwd") is None, reason="no mosquitto_passwd")
def test_a_file_of_mosquitto_passwd_itself(tmp_path: Path) -> None:
    file = tmp_path / "users"
    subprocess.run(["mosquitto_passwd", "-c", "-b", file, "alice", "rabbit"], check=True, capture_output=True)
    assert login(file, "alice", "rabbit") == "alice"
    assert login(file, "alice", "hare") is None


@pytest.mark.parametrize(
    "text",
    [
        "alice",
        "alice:secret",
        "alice:$7$0$AAAA$AAAA",
        "alice:$7$101$?$?",
        "alice:$token$12",
        "alice:$6$a$b",
        ":$token$",
    ],
)
def test_a_broken_file_is_refused_with_its_line(tmp_path: Path, text: str) -> None:
    file = tmp_path / "users"
    file.write_text(f"{password_line('bob', 'builder')}\n{text}\n")
    with pytest.raises(ConfigurationError, match="line 2"):
        read_users(file)


def test_a_user_has_its_own_rights_or_those_of_everybody_else() -> None:
    async def check() -> None:
        rights = {"alice": Rights(publish="fire/**", subscribe="fire/** flood/*"), "*": Rights(subscribe="status")}
        access = Access("http", DoorEntry(access=rights), "topics")
        assert access.may_publish("alice", "fire/north")
        assert not access.may_publish("alice", "flood/north")
        assert access.may_subscribe("alice", parse_interest("topics", "fire/* flood/*"))
        assert not access.may_subscribe("alice", parse_interest("topics", "flood/**"))
        assert access.may_subscribe("bob", parse_interest("topics", "status"))
        assert not access.may_publish("bob", "status")
        assert Access("http", DoorEntry(), "topics").may_publish("anybody", "anything")

    asyncio.run(check())


@pytest.mark.parametrize(
    ("table", "text"),
    [
        ({"ftp": True}, "ftp"),
        ({"http": {"listen": "0.0.0.0:80"}}, "anybody may come in"),
        ({"mqtt": {"listen": "nonsense"}}, "not an endpoint"),
        ({"http": {"clients": 0}}, "clients"),
        ({"http": {"colour": "red"}}, "colour"),
        ({"metrics": 7}, "metrics"),
        ({"tracing": {"share": 2}}, "share"),
    ],
)
def test_wrong_settings_are_refused(table: dict[str, object], text: str) -> None:
    with pytest.raises(ConfigurationError, match=text):
        door_settings(table)


def test_a_door_may_be_named_or_be_where_it_listens() -> None:
    settings = door_settings({"http": "127.0.0.1:81", "mqtt": True, "metrics": False, "tracing": "console"})
    assert settings.http is not None
    assert settings.http.listen == "127.0.0.1:81"
    assert settings.mqtt is not None
    assert settings.metrics is None
    assert settings.tracing is not None
    assert settings.tracing.endpoint == "console"
    assert door_settings({"http": {"listen": "0.0.0.0:80", "anonymous": True}}).http is not None
