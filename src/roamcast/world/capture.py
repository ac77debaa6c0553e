"""Frames as a capture file (pcap) that Wireshark and tshark read: 802.11 with radiotap headers, or LoRa with LoRaTap.

The file holds every frame that was sent, as a receiver everywhere at once would have captured it; what collided is in
it too. Times are those of the run, from 0, in nanoseconds.

- A node's hardware address is `02:00` and its number in four bytes. All nodes form one ad hoc cell.
- Data frames carry LLC and SNAP with EtherType 0x88B5 (local experimental), then the message as it goes over the wire:
  MessagePack. Dissectors show it as data. They are 36 bytes longer than the message, as with the preset `ns3`, whatever
  `overhead_bytes` the radio counts.
- Retransmissions have the retry bit and the sequence number of the first attempt. Frame check sequences are right.
- The radio's own frames (RTS, CTS, ACK) are control frames. A radio that tells no rate, such as `ideal`, leaves that
  field of the radiotap header out.
- LoRa has no link header of its own. Here a frame begins with eight bytes: receiver (0xFFFF: broadcast) and sender in
  two bytes each, 0 for data or 1 for an acknowledgement, 1 for a repetition, and a number in two bytes. The LoRaTap
  header has channel, bandwidth, spreading factor and the sync word of private networks, so dissectors show the rest as
  data.
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
from roamcast.world.radio.models.lora import Lora
from roamcast.world.radio.rate import Rate
from roamcast.world.radio.settings import Radio
from roamcast.world.radio.station import DcfFrame

LINKTYPE_RADIOTAP: Final = 127
LINKTYPE_LORATAP: Final = 270
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

_LORATAP: Final = Struct(">BBHIBBBBBBB")
_LORA_HEAD: Final = Struct(">HHBBH")
_LORA_HZ: Final = 868_100_000  # the first channel of the European plan
_LORA_BANDWIDTH_KHZ: Final = 125  # LoRaTap counts in steps of this
_LORA_UNKNOWN: Final = 0  # signal strength is not told; the bottom of the scale, -139 dBm
_LORA_PRIVATE: Final = 0x12  # sync word of networks other than LoRaWAN
_LORA_EVERYBODY: Final = 0xFFFF


class Capture:
    """Takes frames as they start (`Medium.on_start`); the file is there once it is closed."""

    def __init__(self, path: Path, radio: Radio | None = None) -> None:
        """`radio` is that of the scenario; none: one of the 802.11 radios."""
        self._path = path
        self._loratap = _loratap(radio) if isinstance(radio, Lora) else b""
        self._sent: dict[int, tuple[Frame, int]] = {}  # per node: its last data frame, and that frame's number
        try:
            self._file: Any = NamedTemporaryFile(  # noqa: SIM115  # closed by `close` or `abandon`
                "wb", dir=path.parent, prefix=f".{path.name}.", delete=False
            )
            if path.is_dir():
                raise IsADirectoryError(0, "Is a directory")
            linktype = LINKTYPE_LORATAP if self._loratap else LINKTYPE_RADIOTAP
            self._file.write(_FILE_HEADER.pack(0xA1B23C4D, 2, 4, 0, 0, SNAPLEN, linktype))
        except OSError as error:
            self.abandon()
            raise ConfigurationError(f"{path}: cannot be written: {error.strerror}") from None

    def frame(self, frame: Frame) -> None:
        content = self._loratap + self._lora(frame) if self._loratap else self._wifi(frame)
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

    def _wifi(self, frame: Frame) -> bytes:
        rate = frame.rate if isinstance(frame, DcfFrame) else None
        body = self._control(frame) if frame.message is None else self._data(frame)
        return _radiotap(frame.start, rate) + body + zlib.crc32(body).to_bytes(4, "little")

    def _lora(self, frame: Frame) -> bytes:
        receiver = _LORA_EVERYBODY if frame.receiver == NOBODY else frame.receiver & 0xFFFF
        if frame.message is None:
            return _LORA_HEAD.pack(receiver, frame.sender & 0xFFFF, 1, 0, 0)
        number, is_retry = self._number(frame)
        return _LORA_HEAD.pack(receiver, frame.sender & 0xFFFF, 0, is_retry, number) + msgspec.msgpack.encode(
            frame.message
        )

    def _number(self, frame: Frame) -> tuple[int, bool]:
        """The number of a data frame, and whether it is sent again."""
        last, number = self._sent.get(frame.sender, (None, -1))
        if last is frame:
            return number, True
        number = (number + 1) % _NUMBERS
        self._sent[frame.sender] = (frame, number)
        return number, False

    def _data(self, frame: Frame) -> bytes:
        number, is_retry = self._number(frame)
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


def _loratap(radio: Lora) -> bytes:
    steps = max(1, round(radio.bandwidth_khz / _LORA_BANDWIDTH_KHZ))
    unknown = (_LORA_UNKNOWN,) * 3
    return _LORATAP.pack(0, 0, _LORATAP.size, _LORA_HZ, steps, radio.spreading_factor, *unknown, 0, _LORA_PRIVATE)


def _radiotap(start_s: float, rate: Rate | None) -> bytes:
    kind = _CHANNEL_OFDM if rate is not None and rate.bits_per_symbol else _CHANNEL_CCK
    present = _PRESENT if rate is None else _PRESENT | _PRESENT_RATE
    steps = 0 if rate is None else round(rate.bps / 500_000)
    channel = _CHANNEL_2_GHZ | kind
    return _RADIOTAP.pack(
        0, 0, _RADIOTAP.size, present, round(start_s * 1e6), _FLAG_FCS, steps, _CHANNEL_MHZ, channel
    )
