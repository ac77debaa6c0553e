"""What of a WebAssembly binary is checked before it is compiled.

A compiler's time and memory can be driven up by a few bytes, such as functions with 50 000 local variables each. So the
numbers that matter are read first, and bounded; the rest is for the compiler to validate. A consumer that has no
WebAssembly runtime of its own checks its modulator the same way.
"""

import base64
import binascii
from typing import Final

from roamcast.errors import ConfigurationError

MARK: Final = "wasm:"
MAGIC: Final = b"\0asm\1\0\0\0"
MODULE_BYTES_MAX: Final = 32_768
FUNCTIONS_MAX: Final = 256
LOCALS_MAX: Final = 2048  # of all functions together
IMPORTS_FROM: Final = "roamcast"
IMPORTS_MAX: Final = 32
TYPES_MAX: Final = 256

_TYPE, _IMPORT, _FUNCTION, _CODE = 1, 2, 3, 10


def wasm_source(binary: bytes) -> str:
    """A WebAssembly module as the source of a modulator; `ConfigurationError` if no broker would take it."""
    check_format(binary)
    return MARK + base64.b64encode(binary).decode("ascii")


def wasm_binary(source: str) -> bytes:
    """The module in a modulator's source, checked."""
    try:
        binary = base64.b64decode(source.removeprefix(MARK), validate=True)
    except (binascii.Error, ValueError):
        raise ConfigurationError("modulator: what follows wasm: is not base64") from None
    check_format(binary)
    return binary


def check_format(binary: bytes) -> None:
    if len(binary) > MODULE_BYTES_MAX:
        raise ConfigurationError(f"modulator: {len(binary)} bytes of WebAssembly; allowed: at most {MODULE_BYTES_MAX}")
    if not binary.startswith(MAGIC):
        raise ConfigurationError("modulator: is not a WebAssembly module of version 1")
    try:
        _check_sections(_Reader(binary, len(MAGIC), len(binary)))
    except IndexError:
        raise ConfigurationError("modulator: WebAssembly module is cut off") from None


class _Reader:
    """Reads the numbers of a stretch of bytes. `IndexError`: beyond its end."""

    def __init__(self, data: bytes, at: int, end: int) -> None:
        self.data = data
        self.at = at
        self.end = end

    def byte(self) -> int:
        if self.at >= self.end:
            raise IndexError
        self.at += 1
        return self.data[self.at - 1]

    def number(self) -> int:
        """An unsigned LEB128 of 32 bits."""
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
            if shift > 28:
                raise ConfigurationError("modulator: WebAssembly module has a number of more than 32 bits")
        return value

    def stretch(self, length: int) -> "_Reader":
        if length > self.end - self.at:
            raise IndexError
        self.at += length
        return _Reader(self.data, self.at - length, self.at)

    def text(self) -> str:
        part = self.stretch(self.number())
        return self.data[part.at : part.end].decode("utf-8", "replace")


def _check_sections(reader: _Reader) -> None:
    while reader.at < reader.end:
        kind = reader.byte()
        section = reader.stretch(reader.number())
        if kind == _TYPE:
            _require(section.number(), TYPES_MAX, "types")
        elif kind == _IMPORT:
            _check_imports(section)
        elif kind == _FUNCTION:
            _require(section.number(), FUNCTIONS_MAX, "functions")
        elif kind == _CODE:
            _check_code(section)


def _check_imports(section: _Reader) -> None:
    count = section.number()
    _require(count, IMPORTS_MAX, "imports")
    for _ in range(count):
        module, name = section.text(), section.text()
        if module != IMPORTS_FROM:
            raise ConfigurationError(f"modulator: imports {module[:40]}.{name[:40]}; allowed: only {IMPORTS_FROM}")
        if section.byte() != 0:
            raise ConfigurationError(f"modulator: imports {name[:40]}, which is not a function")
        section.number()


def _check_code(section: _Reader) -> None:
    count = section.number()
    _require(count, FUNCTIONS_MAX, "functions")
    local_variables = 0
    for _ in range(count):
        body = section.stretch(section.number())
        for _ in range(body.number()):
            local_variables += body.number()
            body.byte()
            _require(local_variables, LOCALS_MAX, "local variables")


def _require(number: int, most: int, what: str) -> None:
    if number > most:
        raise ConfigurationError(f"modulator: {number} {what} in WebAssembly; allowed: at most {most}")
