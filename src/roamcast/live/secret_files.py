"""Files with secrets: JSON that only its owner can read, replaced whole or not at all."""

import os
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from roamcast.errors import ConfigurationError

FILE_BYTES_MAX = 1 << 24

Contents = TypeVar("Contents")


def read_secret(path: Path, kind: type[Contents], field: str, what: str) -> Contents:
    """What the file holds; `field` is the setting that names it, `what` says what it should be."""
    try:
        if path.stat().st_size > FILE_BYTES_MAX:
            raise ConfigurationError(f"{field}: {path} is not {what}")
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except OSError as error:
        raise ConfigurationError(f"{field}: cannot read {path}: {error.strerror or error}") from None
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{field}: {path} is not {what}: {error}") from None


def write_secret(path: Path, contents: Any, field: str, *, replace: bool = False) -> None:
    """Writes a file that only its owner can read; an existing one is replaced only if asked."""
    beside = path.with_name(f"{path.name}.new")
    try:
        if path.exists() and not replace:
            raise ConfigurationError(f"{field}: {path} exists; remove it or choose another name")
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(msgspec.json.format(msgspec.json.encode(contents)))
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError as error:
        raise ConfigurationError(f"{field}: cannot write {path}: {error.strerror or error}") from None
