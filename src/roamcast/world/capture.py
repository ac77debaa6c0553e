"""Frames as a capture file (pcap) that Wireshark and tshark read: 802.11 with radiotap headers.

The file holds every frame that was sent, as a receiver everywhere at once would have captured it; what collided is in
it too. Times are those of the run, from 0, in nanoseconds.

- A node's hardware address is `02:00` and its number in four bytes. All nodes form one ad hoc cell.
- Data frames carry LLC and SNAP with EtherType 0x88B5 (local experimental), then the message as it goes over the wire:
  MessagePack. Dissectors show it as data. They are 36 bytes longer than the message, as with the preset `ns3`, whatever
  `overhead_bytes` the radio counts.
- Retransmissions have the retry bit and the sequence number of the first attempt. Frame check sequences are right.
- The radio's own frames (RTS, CTS, ACK) are control frames. A radio that tells no rate, such as `ideal`, leaves that
  field of the radiotap header out.
"""

import os
import zlib
from pathlib import Path
from struct import Struct
from tempfile import NamedTemporaryFile
from typing import Any, Final

import msgspec

from roamcast.errors import ConfigurationError
from roamcast.protocols.api import NOBODY
from roamcast.world.radio.medium import Frame
from roamcast.world.radio.rate import Rate
from roamcast.world.radio.station import DcfFrame

LINKTYPE_RADIOTAP: Final = 127
SNAPLEN: Final = 65_535

_FILE_HEADER: Final = Struct("<IHHiIII")
_RECORD_HEADER: Final = Struct("<IIII")
_RADIOTAP: Final = Struct("<BBHIQBBHH")
_PRESENT: Final = 0b1011  # time, flags, channel
_PRESENT_RATE: Final = 0b0100
_FLAG_FCS: Final = 0x10  # the frame ends with its check sequence
_CHANNEL_MHZ: Final = 2412
_CHANNEL_2_GHZ: Final = 0x0080
_CHANNEL_CCK: Final = 0x0020
_CHANNEL_OFDM: Final = 0x0040

_DATA: Final = 0x08  # first byte of frame control: type and subtype
_CONTROL: Final = {"RTS": 0xB4, "CTS": 0xC4, "ACK": 0xD4}
_RETRY: Final = 0x08  # in the second byte
_EVERYBODY: Final = b"\xff" * 6
_CELL: Final = bytes.fromhex("026d6f766500")
_SNAP: Final = bytes.fromhex("aaaa0300000088b5")
_NAV_MAX_US: Final = 32_767
_NUMBERS: Final = 4096


class Capture:
    """Takes frames as they start (`Medium.on_start`); the file is there once it is closed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._sent: dict[int, tuple[Frame, int]] = {}  # per node: its last data frame, and that frame's number
        try:
            self._file: Any = NamedTemporaryFile(  # noqa: SIM115  # closed by `close` or `abandon`
                "wb", dir=path.parent, prefix=f".{path.name}.", delete=False
            )
            if path.is_dir():
                raise IsADirectoryError(0, "Is a directory")
            self._file.write(_FILE_HEADER.pack(0xA1B23C4D, 2, 4, 0, 0, SNAPLEN, LINKTYPE_RADIOTAP))
        except OSError as error:
            self.abandon()
            raise ConfigurationError(f"{path}: cannot be written: {error.strerror}") from None

    def frame(self, frame: Frame) -> None:
        rate = frame.rate if isinstance(frame, DcfFrame) else None
        body = self._control(frame) if frame.message is None else self._data(frame)
        content = _radiotap(frame.start, rate) + body + zlib.crc32(body).to_bytes(4, "little")
        seconds, nanoseconds = divmod(round(frame.start * 1e9), 1_000_000_000)
        self._file.write(_RECORD_HEADER.pack(seconds, nanoseconds, len(content), len(content)) + content)

    def close(self) -> None:
        try:
            self._file.close()
            mask = os.umask(0)
            os.umask(mask)
            os.chmod(self._file.name, 0o666 & ~mask)
            os.replace(self._file.name, self._path)
        except OSError as error:
            self.abandon()
            raise ConfigurationError(f"{self._path}: cannot be written: {error.strerror}") from None

    def abandon(self) -> None:
        """Leaves nothing behind."""
        file = getattr(self, "_file", None)
        if file is not None:
            file.close()
            Path(file.name).unlink(missing_ok=True)

    def _data(self, frame: Frame) -> bytes:
        last, number = self._sent.get(frame.sender, (None, -1))
        is_retry = last is frame
        if not is_retry:
            number = (number + 1) % _NUMBERS
            self._sent[frame.sender] = (frame, number)
        receiver = _EVERYBODY if frame.receiver == NOBODY else hardware_address(frame.receiver)
        head = bytes((_DATA, _RETRY if is_retry else 0)) + _duration(frame)
        head += receiver + hardware_address(frame.sender) + _CELL + (number << 4).to_bytes(2, "little")
        return head + _SNAP + msgspec.msgpack.encode(frame.message)

    def _control(self, frame: Frame) -> bytes:
        head = bytes((_CONTROL[frame.label], 0)) + _duration(frame) + hardware_address(frame.receiver)
        return head + hardware_address(frame.sender) if frame.label == "RTS" else head


def hardware_address(node: int) -> bytes:
    return b"\x02\x00" + node.to_bytes(4, "big")


def _duration(frame: Frame) -> bytes:
    """How long the medium stays reserved after the frame."""
    nav_s = frame.nav_s if isinstance(frame, DcfFrame) else 0.0
    return min(_NAV_MAX_US, round(nav_s * 1e6)).to_bytes(2, "little")


def _radiotap(start_s: float, rate: Rate | None) -> bytes:
    kind = _CHANNEL_OFDM if rate is not None and rate.bits_per_symbol else _CHANNEL_CCK
    present = _PRESENT if rate is None else _PRESENT | _PRESENT_RATE
    steps = 0 if rate is None else round(rate.bps / 500_000)
    channel = _CHANNEL_2_GHZ | kind
    return _RADIOTAP.pack(
        0, 0, _RADIOTAP.size, present, round(start_s * 1e6), _FLAG_FCS, steps, _CHANNEL_MHZ, channel
    )
