"""Input files line by line, and how a bad line is refused."""

import gzip
import zlib
from collections.abc import Iterator
from math import isfinite
from pathlib import Path
from typing import Final

from roamcast.errors import ConfigurationError

_GZIP: Final = b"\x1f\x8b"
_SHOWN_MAX: Final = 60  # characters of a line that a refusal quotes


def read_bytes(path: Path) -> bytes:
    """The whole file, unpacked if it is gzipped."""
    try:
        data = path.read_bytes()
        return gzip.decompress(data) if data.startswith(_GZIP) else data
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise ConfigurationError(f"{path}: cannot be read: it is damaged (gzip)") from None
    except OSError as error:
        raise ConfigurationError(f"{path}: cannot be read: {error.strerror}") from None


def read_text(path: Path) -> str:
    try:
        return read_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ConfigurationError(f"{path}: cannot be read: expected a text file in UTF-8") from None


class Line:
    """One line of an input file."""

    def __init__(self, path: Path, number: int, text: str) -> None:
        self.path = path
        self.line_number = number
        self.text = text

    def refuse(self, expected: str) -> ConfigurationError:
        shown = self.text if len(self.text) <= _SHOWN_MAX else self.text[: _SHOWN_MAX - 3] + "..."
        return ConfigurationError(f"{self.path}:{self.line_number}: {shown!r}: expected {expected}")

    def columns(self, count: int, expected: str) -> list[str]:
        columns = self.text.replace(",", " ").split()
        if len(columns) != count:
            raise self.refuse(expected)
        return columns

    def number(self, text: str, expected: str) -> float:
        try:
            value = float(text)
        except ValueError:
            raise self.refuse(expected) from None
        if not isfinite(value):
            raise self.refuse(expected)
        return value


def lines(path: Path, text: str | None = None) -> Iterator[Line]:
    """The lines that are not empty, without `#` comments."""
    whole = read_text(path) if text is None else text
    for number, full in enumerate(whole.splitlines(), start=1):
        content = full.partition("#")[0].strip()
        if content:
            yield Line(path, number, content)
