"""The container that brings a recording into the page: numbers as typed arrays, the rest as JSON, all compressed.

    4 bytes, little-endian    length of the header
    header                    JSON; its `columns` gives for each array the type, the first byte after the header, and
                              the number of values; padded so that the arrays are aligned
    arrays                    one after the other, each aligned to 8 bytes, little-endian

The whole is compressed with gzip, which every browser can undo, and written in base64 between two tags. So nothing in a
trace, however it is written, can be taken for markup.
"""

import base64
import gzip
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

_ALIGNMENT_BYTES = 8
_TYPES = {"uint8": "u1", "uint16": "u2", "uint32": "u4", "int16": "i2", "int32": "i4", "float32": "f4", "float64": "f8"}


class Columns:
    """Collects arrays by name."""

    def __init__(self) -> None:
        self._places: dict[str, tuple[str, int, int]] = {}
        self._parts: list[bytes] = []
        self._size = 0

    def add(self, name: str, values: npt.NDArray[Any], kind: str) -> None:
        content = np.ascontiguousarray(values, dtype=f"<{_TYPES[kind]}").tobytes()
        self._places[name] = (kind, self._size, len(values))
        self._parts.append(_padded(content))
        self._size += len(self._parts[-1])

    def packed(self, header: dict[str, Any]) -> str:
        """Everything, with `header` around it, as base64."""
        text = msgspec.json.encode({**header, "columns": self._places})
        start = _padded(len(text).to_bytes(4, "little") + text, b" ")
        return base64.b64encode(gzip.compress(b"".join((start, *self._parts)), 9, mtime=0)).decode("ascii")


class TextTable:
    """Texts that occur again and again, each with its number."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {"": 0}

    def number(self, text: str | None) -> int:
        """Nothing and the empty text are the same: 0."""
        return self._numbers.setdefault(text or "", len(self._numbers))

    def numbers(self, texts: list[str | None]) -> npt.NDArray[np.int64]:
        return np.fromiter((self.number(text) for text in texts), dtype=np.int64, count=len(texts))

    def all(self) -> list[str]:
        return list(self._numbers)


def _padded(content: bytes, filling: bytes = b"\0") -> bytes:
    return content + filling * (-len(content) % _ALIGNMENT_BYTES)
