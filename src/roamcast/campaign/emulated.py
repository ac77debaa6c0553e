"""Campaigns on the emulator: what `campaign.worker.simulate_runs` does, with real nodes.

Each run is a process of its own, because an emulator leaves its network for good. One runs at a time on a machine,
whatever Spark has under way: two would make each other late.
"""

import fcntl
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from time import perf_counter

import msgspec
import pyarrow as pa

from roamcast.campaign.plan import decode_run
from roamcast.campaign.worker import DONE, FAILED, Worker, explain, outcome_row
from roamcast.emulator.emulation import EmulationSettings, emulate, require_emulable
from roamcast.emulator.machines import enter_own_network
from roamcast.errors import ConfigurationError
from roamcast.trace.files import read_trace
from roamcast.trace.relations import TraceRelations
from roamcast.trace.summary import stored_rows

NO_HASH = ""  # real time repeats nothing exactly


def emulating(settings: EmulationSettings) -> Worker:
    """A worker for campaigns."""
    return partial(_emulate_runs, settings)


def _emulate_runs(settings: EmulationSettings, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for name, text in zip(batch["run_id"].to_pylist(), batch["run"].to_pylist(), strict=True):
            yield from _emulate_one(settings, str(name), str(text))


def _emulate_one(settings: EmulationSettings, name: str, text: str) -> Iterator[pa.RecordBatch]:
    began_s = perf_counter()
    try:
        require_emulable(decode_run(text))
        table = _traced(settings, text)
        batches = table.to_batches()
        outcome = outcome_row(name, DONE, NO_HASH, perf_counter() - began_s, table.num_rows)
        batches += stored_rows(name, TraceRelations.of_trace(table)).batches()
    except Exception as error:  # as in the simulator: that run's outcome, not the campaign's end
        batches = []
        outcome = outcome_row(name, FAILED, explain(error), perf_counter() - began_s, 0)
    yield from batches
    yield outcome


def _traced(settings: EmulationSettings, text: str) -> pa.Table:
    """The trace of one run, made by a process of its own."""
    command = [sys.executable, "-m", __name__]
    with Path(__file__).open("rb") as lock, tempfile.TemporaryDirectory() as folder:
        fcntl.flock(lock, fcntl.LOCK_EX)
        words = [str(Path(folder, "trace")), msgspec.json.encode(settings).decode(), text]
        done = subprocess.run([*command, *words], capture_output=True, text=True, check=False)
        if done.returncode:
            last = done.stderr.strip().splitlines()[-1:] or ["it ended without a message"]
            raise ConfigurationError(last[0])
        return read_trace(Path(folder, "trace"))


def _main(out: str, settings: str, text: str) -> None:
    enter_own_network()
    emulate(decode_run(text), Path(out), msgspec.json.decode(settings, type=EmulationSettings))


if __name__ == "__main__":
    _main(*sys.argv[1:])
