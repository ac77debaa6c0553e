"""A directory on any file system, named by a local path or a URI.

`file`, `s3`, `gs`, `abfs` and `hdfs` come with `pyarrow.fs`; any other scheme needs `fsspec` and its driver. `s3a` and
`s3n`, Hadoop's names of S3, are `s3`. Options of a scheme go into the URI:
`s3://bucket/path?endpoint_override=localhost:9000&scheme=http`. Credentials come from the environment or the machine's
own configuration, on the driver and on every executor.

An object that is written appears whole or not at all: object stores promise that, and on a local disk it is written
under a hidden name and then renamed. Nothing else is asked of a file system: no append, no lock, no atomic rename.
"""

import contextlib
import os
import re
import uuid
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
from pyarrow import fs

from roamcast.errors import ConfigurationError

HIDDEN = (".", "_")  # names that start so are not data
_HADOOP_SCHEMES = {"s3": "s3a", "gcs": "gs"}  # where Hadoop's name differs from Arrow's
_ARROW_SCHEMES = {"s3a": "s3", "s3n": "s3"}  # the other way round
_SECRET = re.compile(r"(://[^:/@]*:)[^/@]*@")
_THREADS = 16  # object stores answer slowly, but many at a time


class StoreLocation:
    """Reads and writes the objects below one directory. Names inside are relative, with slashes."""

    def __init__(self, place: "str | Path | StoreLocation") -> None:
        # as the user wrote it, but for names of schemes that are Hadoop's
        self.text: str = place.text if isinstance(place, StoreLocation) else str(place)
        scheme = urlsplit(self.text).scheme if "://" in self.text else ""
        if scheme in _ARROW_SCHEMES:
            self.text = f"{_ARROW_SCHEMES[scheme]}{self.text[len(scheme) :]}"
            scheme = _ARROW_SCHEMES[scheme]
        self.is_local = scheme in ("", "file")
        self._opened: tuple[fs.FileSystem, str] | None = None
        self._scheme = scheme

    def __str__(self) -> str:
        """For people: without a key that the URI may have."""
        return _SECRET.sub(r"\1***@", self.text)

    def __fspath__(self) -> str:
        return str(self.path)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StoreLocation) and other.text == self.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __getstate__(self) -> str:
        return self.text  # executors open the file system themselves

    def __setstate__(self, text: str) -> None:
        self.__init__(text)  # type: ignore[misc]

    def __truediv__(self, name: str) -> "StoreLocation":
        base, mark, options = self.text.partition("?") if not self.is_local else (self.text, "", "")
        return StoreLocation(f"{base.rstrip('/')}/{name}{mark}{options}")

    @property
    def name(self) -> str:
        return self._base.rstrip("/").rpartition("/")[2]

    @property
    def parent(self) -> "StoreLocation":
        base, mark, options = self.text.partition("?") if not self.is_local else (self.absolute, "", "")
        return StoreLocation(f"{base.rstrip('/').rpartition('/')[0] or '/'}{mark}{options}")

    @property
    def absolute(self) -> str:
        """The same place, whatever the working directory of the process that opens it."""
        return str(self.path) if self.is_local else self.text

    @property
    def path(self) -> Path:
        """The local directory."""
        if not self.is_local:
            raise ConfigurationError(f"{str(self)!r} is not on a local disk")
        return Path(self._base)

    def for_spark(self, name: str = "") -> str:
        """What Spark calls the object of this name."""
        whole = self._full(name)
        if self.is_local:
            return f"file://{whole}"  # not quoted: Hadoop takes it as it is
        return f"{_HADOOP_SCHEMES.get(self._scheme, self._scheme)}://{whole.lstrip('/')}"

    # -- objects -------------------------------------------------------------------------------------------------

    def read(self, name: str) -> bytes:
        """The object's content; `FileNotFoundError` if there is none."""
        with self._system.open_input_file(self._full(name)) as file:
            return file.read()

    def opened(self) -> pa.NativeFile:
        """The object that the location itself names, for reading."""
        return self._system.open_input_file(self._base)

    def write(self, name: str, content: bytes | pa.Buffer) -> None:
        """Writes the object whole or not at all, over any earlier one."""
        target = self._full(name)
        if not self.is_local:
            with self._new_object(target) as file:
                file.write(content)
            return
        path = Path(target)
        path.parent.mkdir(parents=True, exist_ok=True)
        hidden = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}")
        try:
            hidden.write_bytes(content)
            hidden.replace(path)
        except BaseException:
            hidden.unlink(missing_ok=True)
            raise

    def _new_object(self, target: str) -> pa.NativeFile:
        try:
            return self._system.open_output_stream(target, compression=None)
        except FileNotFoundError:  # a file system with real directories, such as SFTP
            self._system.create_dir(target.rpartition("/")[0], recursive=True)
            return self._system.open_output_stream(target, compression=None)

    def exists(self, name: str = "") -> bool:
        return self._system.get_file_info(self._full(name)).type != fs.FileType.NotFound

    def files(self, folder: str = "") -> dict[str, int]:
        """Names and sizes of all objects below `folder`, in order of name; hidden ones are left out."""
        base = self._base.rstrip("/") + "/"
        selector = fs.FileSelector(self._full(folder), recursive=True, allow_not_found=True)
        found = {
            info.path.removeprefix(base): info.size
            for info in self._system.get_file_info(selector)
            if info.type == fs.FileType.File
        }
        return {
            name: found[name] for name in sorted(found) if not any(part.startswith(HIDDEN) for part in name.split("/"))
        }

    def remove(self, names: Iterable[str]) -> None:
        """Removes these objects; objects that are already gone are ignored."""

        def forget(name: str) -> None:
            with contextlib.suppress(FileNotFoundError):
                self._system.delete_file(self._full(name))

        with ThreadPoolExecutor(_THREADS) as threads:
            list(threads.map(forget, names))

    def remove_empty_folders(self, folder: str) -> None:
        """Removes empty folders, which exist on a disk only."""
        if not self.is_local:
            return
        top = Path(self._full(folder))
        for place, _, _ in os.walk(top, topdown=False):
            try:
                Path(place).rmdir()
            except OSError:
                continue

    def move(self, name: str, target: str) -> None:
        """By copy and removal, since object stores cannot rename."""
        self.write(target, self.read(name))
        self.remove([name])

    # -- opening -------------------------------------------------------------------------------------------------

    @property
    def arrow(self) -> fs.FileSystem:
        """For Arrow's own readers, with `arrow_path`."""
        return self._system

    def arrow_path(self, name: str) -> str:
        return self._full(name)

    @property
    def _system(self) -> fs.FileSystem:
        return self._open()[0]

    @property
    def _base(self) -> str:
        return self._open()[1]

    def _full(self, name: str) -> str:
        return f"{self._base.rstrip('/')}/{name}" if name else self._base

    def _open(self) -> tuple[fs.FileSystem, str]:
        if self._opened is None:
            self._opened = _opened(self.text, self._scheme)
        return self._opened


def _opened(text: str, scheme: str) -> tuple[fs.FileSystem, str]:
    if not scheme:
        return fs.LocalFileSystem(), os.path.abspath(text)
    shown = _SECRET.sub(r"\1***@", text)
    try:
        return fs.FileSystem.from_uri(text)
    except (pa.ArrowException, ValueError, ImportError, OSError) as error:
        reason = str(error).partition("\n")[0]
        if "Unrecognized filesystem type" not in reason:
            raise ConfigurationError(f"{shown!r} cannot be opened: {reason}") from None
    try:
        import fsspec  # type: ignore[import-untyped,import-not-found,unused-ignore]
    except ImportError:
        known = "file, s3, gs, abfs, hdfs, and others with the package fsspec"
        raise ConfigurationError(f"{shown!r}: the scheme {scheme!r} is unknown; allowed: {known}") from None
    try:
        system, path = fsspec.core.url_to_fs(text)
    except (ValueError, ImportError, OSError) as error:
        raise ConfigurationError(f"{shown!r} cannot be opened: {str(error).partition(chr(10))[0]}") from None
    handler: Any = fs.FSSpecHandler
    return fs.PyFileSystem(handler(system)), path
