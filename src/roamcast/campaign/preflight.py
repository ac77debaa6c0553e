"""Before a campaign runs on a cluster: are there executors, do they see the campaign's place, what can they run?

Every question is answered by tasks, one per slot, and a wrong answer is one line that says what to change. Of the tasks
on one executor, the first looks at everything and the others only say where they are. Embedded sessions skip it all:
their workers share the driver's disk, Python and import path.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from time import monotonic, sleep
from typing import Any

import msgspec
from pyspark import SparkContext
from pyspark.sql import SparkSession

from roamcast.campaign.reasons import reason
from roamcast.campaign.session import is_local
from roamcast.campaign.shipping import protocol_packages, ship
from roamcast.campaign.store import Store
from roamcast.errors import ConfigurationError
from roamcast.form import PACKAGE, source_digest

NEEDED = ("msgspec", "mypy_extensions", "numpy", "pyarrow")  # that executors must have themselves
SETTLED_S = 2.0  # without a new executor, it starts
WARN_S = 20.0
MEMORY_LEAST = 128 * 2**20  # bytes per slot, below which simulations are likely to fail

Tell = Callable[[str], None]


class ProbeAnswer(msgspec.Struct, frozen=True):
    """What a probe found on an executor."""

    host: str
    python: str
    missing: list[str]  # packages
    sources: str  # digest of the Roamcast that is installed there; empty if there is none
    form: str
    memory: int  # bytes of its machine
    read: str  # what the driver wrote, or the error
    wrote: str  # the name of the object, or empty
    whole: bool = True  # or another task on the same executor answers the rest


def prepare(session: SparkSession, store: Store, protocols: Iterable[str], tell: Tell = lambda line: None) -> list[str]:
    """Makes executors ready for runs of these protocols; the archives are for `shipping.on_path`."""
    context = session.sparkContext
    packages = protocol_packages(protocols)
    if is_local(str(context.master)):
        return ship(context, packages)
    wait_for_executors(context, tell)
    answers = _probe(context, store)
    installed = all(answer.sources == source_digest() for answer in answers)
    hosts = sorted({answer.host for answer in answers})
    form = answers[0].form if installed else "shipped by the driver"
    slots = context.defaultParallelism
    tell(f"{slots} slots on {', '.join(hosts[:4])}{' …' if len(hosts) > 4 else ''}; Roamcast there: {form}")
    return ship(context, packages if installed else [PACKAGE.name, *packages])


def wait_for_executors(context: SparkContext, tell: Tell, now: Callable[[], float] = monotonic) -> None:
    """Until executors have registered and no more are coming; tells the user if none does."""
    began = changed = now()
    known, warned = 0, False
    while True:
        executors = context._jsc.sc().getExecutorMemoryStatus().size() - 1  # the driver is one
        if executors != known:
            known, changed = executors, now()
        wanted = int(context.getConf().get("spark.executor.instances", "0") or 0)
        if known and (known >= wanted > 0 or now() - changed >= SETTLED_S):
            return
        if not known and not warned and now() - began >= WARN_S:
            warned = True
            tell(
                f"no executors from {context.master} after {WARN_S:.0f} s: has it free cores and memory? still waiting"
            )
        sleep(0.1)


def _probe(context: SparkContext, store: Store) -> list[ProbeAnswer]:
    place = store.directory / f"probe-{store.owner}"
    secret = store.owner
    place.write("driver", secret.encode())
    slots = context.defaultParallelism
    try:
        texts = context.parallelize(range(slots), slots).map(_prober(place.absolute, NEEDED, secret)).collect()
        told = [msgspec.json.decode(text, type=ProbeAnswer) for text in texts]
        tasks = Counter(answer.host for answer in told)
        answers = [answer for answer in told if answer.whole]
        for answer in answers:
            arrived = bool(answer.wrote) and place.exists(answer.wrote)
            _judge(answer, store, secret, arrived, slots=tasks[answer.host])
        return answers
    except ConfigurationError:
        raise
    except Exception as error:
        raise ConfigurationError(
            f"master: the executors of {context.master} cannot run tasks: {reason(error)}"
        ) from error
    finally:
        place.remove(place.files())
        store.directory.remove_empty_folders(place.name)


def _judge(answer: ProbeAnswer, store: Store, secret: str, arrived: bool, *, slots: int = 1) -> None:
    """Refuses an executor that cannot do its part; its machine has `slots` slots."""
    where = f"executor on {answer.host}"
    if answer.missing:
        raise ConfigurationError(
            f"master: the {where} (Python {answer.python}) lacks {', '.join(answer.missing)}; install them there, or "
            "send an environment: --conf spark.archives=env.tar.gz#env --conf spark.pyspark.python=env/bin/python"
        )
    if answer.read != secret or not arrived:
        what = (
            f"cannot read it ({answer.read})" if answer.read != secret else "wrote there and the driver does not see it"
        )
        raise ConfigurationError(
            f"out: {str(store.directory)!r} is not shared: the {where} {what}; name a directory on a shared file "
            "system, or a URI such as s3://bucket/path"
        )
    if 0 < answer.memory < MEMORY_LEAST * slots:
        raise ConfigurationError(
            f"master: the {where} has only {answer.memory // 2**20} MiB of memory for {slots} slots; use fewer cores"
        )


def _prober(place: str, needed: tuple[str, ...], secret: str) -> Callable[[int], str]:
    """A function for executors. It is local, so it travels by value and needs no Roamcast there."""

    def probe(number: int) -> str:
        import json
        import os
        import platform
        import socket
        import subprocess
        import sys
        from importlib.util import find_spec

        from pyspark import SparkFiles

        found: dict[str, Any] = {
            "host": socket.gethostname(),
            "python": platform.python_version(),
            "missing": [name for name in needed if find_spec(name) is None],
            "memory": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
            "sources": "",
            "form": "",
            "read": "",
            "wrote": "",
            "whole": True,
        }
        try:
            os.close(os.open(os.path.join(SparkFiles.getRootDirectory(), f"{secret}.probed"), os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return json.dumps(found | {"missing": [], "whole": False})
        if found["missing"]:
            return json.dumps(found)
        asked = "import roamcast, roamcast.form as f; print(f.source_digest()); print(roamcast.FORM)"
        said = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=False)
        if said.returncode == 0:
            found["sources"], found["form"] = said.stdout.splitlines()[-2:]
        from pyarrow import fs

        try:
            try:
                system, base = (fs.LocalFileSystem(), place) if "://" not in place else fs.FileSystem.from_uri(place)
            except ValueError:  # a scheme that Arrow does not know, see `location`
                import fsspec  # type: ignore[import-untyped,import-not-found,unused-ignore]

                other, base = fsspec.core.url_to_fs(place)
                handler: Any = fs.FSSpecHandler
                system = fs.PyFileSystem(handler(other))
            with system.open_input_file(f"{base}/driver") as file:
                found["read"] = file.read().decode()
            name = f"{number}-{socket.gethostname()}-{os.getpid()}"
            with system.open_output_stream(f"{base}/{name}") as file:
                file.write(b"executor")
            found["wrote"] = name
        except (OSError, ImportError) as error:
            found["read"] = found["read"] or str(error).partition("\n")[0]
        return json.dumps(found)

    return probe
