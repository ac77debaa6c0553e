"""Code for executors: Roamcast itself where they lack it, and the packages of protocols named by import path.

Code travels as one archive, which Spark unpacks in every executor's working directory. Binaries travel with it, so
executors of the driver's kind (same Python, same processor) run the compiled form. Where they cannot use the binaries
they run the sources.

A function for executors is wrapped so that the archive is on their import path before anything of Roamcast is
imported there. The wrapper is a local function: Spark pickles it by value, and it uses only Python's own library.
"""

import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterable
from hashlib import blake2b
from pathlib import Path
from typing import Any

from pyspark import SparkContext, cloudpickle
from pyspark.sql import SparkSession

from roamcast.campaign.session import is_local
from roamcast.form import PACKAGE, package_files, protocol_package

_shipped: dict[tuple[str, str], None] = {}  # application and archive


def protocol_packages(protocols: Iterable[str]) -> list[str]:
    """The top-level packages of protocols named by import path (`package.module:Class`)."""
    return sorted(set(filter(None, map(protocol_package, protocols))))


def ship(context: SparkContext, packages: Iterable[str]) -> list[str]:
    """Sends these packages to all executors; the names are for `on_path`."""
    names = []
    for package in packages:
        name = f"{package}-{_digest(package)}"
        if (context.applicationId, name) not in _shipped:
            context.addArchive(f"{_archive(package, name)}#{name}")
            _shipped[context.applicationId, name] = None
        names.append(name)
    return names


def for_executors(session: SparkSession, function: Callable[..., Any]) -> Callable[[Any], Any]:
    """`function`, which is Roamcast's own, for executors that may lack Roamcast."""
    master = str(session.conf.get("spark.master", "local"))
    if is_local(master):
        return function
    return on_path(ship(session.sparkContext, [PACKAGE.name]), function)


def on_path(names: list[str], function: Callable[..., Any]) -> Callable[[Any], Any]:
    """`function` for executors, with the shipped archives on their import path."""
    if not names:
        return function
    dumps: Any = cloudpickle.dumps
    pickled = dumps(function)

    def call(argument: Any) -> Any:
        import importlib
        import os
        import pickle
        import sys

        from pyspark import SparkFiles

        for name in names:
            place = os.path.join(SparkFiles.getRootDirectory(), name)
            if place not in sys.path:
                sys.path.insert(0, place)
                importlib.invalidate_caches()
                package = name.rpartition("-")[0]
                stale = (package, f"{package}__mypyc")
                for module in [each for each in sys.modules if each.partition(".")[0] in stale]:
                    del sys.modules[module]  # an earlier version, from the same session
                if "roamcast.form" in sys.modules:
                    sys.modules["roamcast.form"].protocol_digest.cache_clear()
        return pickle.loads(pickled)(argument)

    return call


def _digest(package: str) -> str:
    digest = blake2b(sys.version.encode(), digest_size=6)
    for name, path in package_files(package):
        digest.update(f"{name}\0{path.stat().st_size}\0{path.stat().st_mtime_ns}\0".encode())
    return digest.hexdigest()


def _archive(package: str, name: str) -> Path:
    archive = Path(tempfile.mkdtemp(prefix="roamcast-")) / f"{name}.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as file:
        for inside, path in package_files(package):
            file.write(path, inside)
    return archive
