"""A campaign's trace files as a Delta table, for engines that know Delta and not Roamcast.

    DIR/trace/_delta_log/00000000000000000000.json       a version of the table: which files it adds and removes

Nothing is copied: the table consists of the files that the commits name, with `kind` as its partition. A version is
one object, so a reader sees one state of the campaign. `refresh` writes the next version if the campaign has changed
since; `run`, `compact` and `vacuum` call it for campaigns that have a table.

The log is written here and not by the library `deltalake`, which cannot remove files from a table without rewriting
them, and would need credentials of its own. Only one driver writes at a time (`lock`). Should another engine have
changed the table, it is left alone.
"""

import uuid
from time import time
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

import msgspec

from roamcast.campaign.commits import File
from roamcast.campaign.store import Store
from roamcast.errors import ConfigurationError

LOG = "_delta_log"
_ENGINE = "roamcast"


class TableVersion(NamedTuple):
    version: int
    files: int
    rows: int


class _Log(NamedTuple):
    versions: int
    paths: set[str]  # that the table consists of


def register(store: Store) -> TableVersion:
    """Makes the campaign a Delta table, or brings its table up to date."""
    with store.held():
        return _updated(store, _log(store))


def refresh(store: Store) -> None:
    """Brings the table up to date, if there is one. The caller holds the campaign."""
    log = _log(store)
    if log.versions:
        _updated(store, log)


def _updated(store: Store, log: _Log) -> TableVersion:
    files = {file.path: file for commit in store.commits() for file in commit.files}
    now_ms = int(1000 * time())
    actions = [] if log.versions else _beginning(now_ms)
    actions += [_removal(path, now_ms) for path in sorted(log.paths - files.keys())]
    actions += [_addition(files[path], now_ms) for path in sorted(files.keys() - log.paths)]
    version = log.versions - 1
    if actions:
        version = log.versions
        about = {"commitInfo": {"timestamp": now_ms, "operation": "WRITE", "engineInfo": _ENGINE}}
        lines = b"".join(msgspec.json.encode(action) + b"\n" for action in (about, *actions))
        (store.trace / LOG).write(f"{version:020d}.json", lines)
    return TableVersion(version, len(files), sum(file.rows for file in files.values()))


def _log(store: Store) -> _Log:
    """What the table is now, by replaying its log from the start."""
    log = store.trace / LOG
    names = list(log.files())
    paths: set[str] = set()
    for number, name in enumerate(names):
        try:
            actions = [msgspec.json.decode(line) for line in log.read(name).splitlines() if name.endswith(".json")]
        except (msgspec.MsgspecError, UnicodeDecodeError):
            raise ConfigurationError(
                f"{str(log)!r}: {name} cannot be read; remove the log and register the table again"
            ) from None
        about: Any = next((each["commitInfo"] for each in actions if "commitInfo" in each), {})
        if name != f"{number:020d}.json" or about.get("engineInfo") != _ENGINE:
            raise ConfigurationError(
                f"{str(log)!r}: {name} is another engine's; remove the log and register the table again"
            )
        paths |= {unquote(each["add"]["path"]) for each in actions if "add" in each}
        paths -= {unquote(each["remove"]["path"]) for each in actions if "remove" in each}
    return _Log(len(names), paths)


def _beginning(now_ms: int) -> list[dict[str, Any]]:
    from pyspark.sql.pandas.types import from_arrow_schema

    from roamcast.trace.arrow import SCHEMA

    return [
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
        {
            "metaData": {
                "id": str(uuid.uuid4()),
                "format": {"provider": "parquet", "options": {}},
                "schemaString": from_arrow_schema(SCHEMA).json(),
                "partitionColumns": ["kind"],
                "configuration": {},
                "createdTime": now_ms,
            }
        },
    ]


def _addition(file: File, now_ms: int) -> dict[str, Any]:
    return {
        "add": {
            "path": _quoted(file.path),
            "partitionValues": {"kind": file.kind},
            "size": file.bytes,
            "modificationTime": now_ms,
            "dataChange": True,
            "stats": msgspec.json.encode({"numRecords": file.rows}).decode(),
        }
    }


def _removal(path: str, now_ms: int) -> dict[str, Any]:
    return {"remove": {"path": _quoted(path), "deletionTimestamp": now_ms, "dataChange": True}}


def _quoted(path: str) -> str:
    return quote(path, safe="/=")
