"""Frames as a capture file: every byte of it, and what tshark makes of it where it is installed."""

import shutil
import struct
import subprocess
import zlib
from pathlib import Path
from typing import Any

import msgspec
import pytest

from roamcast.errors import ConfigurationError
from roamcast.protocols.flooding.messages import Flood
from roamcast.world.capture import Capture, hardware_address
from roamcast.world.scenario import Run, Scenario, Workload
from roamcast.world.scenario_file import run_from_tables
from roamcast.world.simulator import simulate

Record = tuple[int, bytes, bytes]
"""When in nanoseconds, the radiotap header, and the frame with its check sequence."""


def captured(path: Path, protocol: str = "flooding", **radio: Any) -> tuple[list[Record], dict[str, int]]:
    """The records of a run, and how many frames of which label its trace counts."""
    scenario = {"nodes": 12, "area_m": 400, "duration_s": 14, "radio": radio}
    run = run_from_tables({"protocol": protocol, "scenario": scenario})
    capture = Capture(path, run.scenario.radio)
    result = simulate(run, on_frame=capture.frame)
    capture.close()
    counts: dict[str, int] = {}
    for load in result.medium.loads:
        for label, tally in load.items():
            counts[label] = counts.get(label, 0) + tally.count
    return records(path.read_bytes()), counts


def records(data: bytes) -> list[Record]:
    magic, major, minor, _, _, _, linktype = struct.unpack_from("<IHHiIII", data)
    assert (magic, major, minor) == (0xA1B23C4D, 2, 4)
    assert linktype in (127, 270)
    found: list[Record] = []
    at = 24
    while at < len(data):
        seconds, nanoseconds, kept, size = struct.unpack_from("<IIII", data, at)
        assert kept == size
        content = data[at + 16 : at + 16 + size]
        length = struct.unpack_from("<H" if linktype == 127 else ">H", content, 2)[0]
        found.append((seconds * 10**9 + nanoseconds, content[:length], content[length:]))
        at += 16 + size
    return found


def test_every_frame_is_there_once_and_in_order(tmp_path: Path) -> None:
    found, counts = captured(tmp_path / "run.pcap", "ps-maodv")
    times = [t_ns for t_ns, _, _ in found]
    assert times == sorted(times)
    assert len(found) == sum(counts.values()) > 50
    acks = [frame for _, _, frame in found if frame[0] == 0xD4]
    assert len(acks) == counts["ACK"] > 0
    assert all(len(ack) == 14 for ack in acks)
    assert all(zlib.crc32(frame[:-4]) == int.from_bytes(frame[-4:], "little") for _, _, frame in found)


def test_a_data_frame_names_sender_and_receiver_and_carries_the_message(tmp_path: Path) -> None:
    found, _ = captured(tmp_path / "run.pcap")
    _, tap, frame = found[0]
    assert frame[:4] == bytes((0x08, 0, 0, 0))
    assert frame[4:10] == b"\xff" * 6
    sender = int.from_bytes(frame[12:16], "big")
    assert frame[10:16] == hardware_address(sender)
    assert frame[24:32] == bytes.fromhex("aaaa0300000088b5")
    message = msgspec.msgpack.decode(frame[32:-4], type=Flood)
    assert message.event.publisher == sender
    version, _, length, present, _, flags, rate, mhz, channel = struct.unpack("<BBHIQBBHH", tap)
    assert (version, length, present, flags, rate, mhz, channel) == (0, 22, 0b1111, 0x10, 4, 2412, 0x00A0)
    numbers = [int.from_bytes(each[22:24], "little") >> 4 for _, _, each in found if each[10:16] == frame[10:16]]
    assert numbers == list(range(len(numbers)))


def test_repeated_frames_have_the_retry_bit_and_their_old_number(tmp_path: Path) -> None:
    found, _ = captured(tmp_path / "run.pcap", "ps-maodv", loss=0.4)
    latest: dict[bytes, bytes] = {}
    retries = 0
    for _, _, frame in found:
        if frame[0] == 0x08:
            before = latest.get(frame[10:16])
            if frame[1] & 0x08:
                assert before is not None
                assert before[22:-4] == frame[22:-4]
                retries += 1
            elif before is not None:
                assert before[22:24] != frame[22:24]
            latest[frame[10:16]] = frame
    assert retries > 3


def test_rts_and_cts_are_control_frames(tmp_path: Path) -> None:
    found, counts = captured(tmp_path / "run.pcap", "ps-maodv", preset="ns2")
    for label, kind, size in (("RTS", 0xB4, 20), ("CTS", 0xC4, 14)):
        frames = [frame for _, _, frame in found if frame[0] == kind]
        assert len(frames) == counts[label] > 0
        assert all(len(frame) == size for frame in frames)
        assert all(int.from_bytes(frame[2:4], "little") > 300 for frame in frames)  # reserved, in µs


def test_an_ideal_radio_tells_no_rate(tmp_path: Path) -> None:
    found, _ = captured(tmp_path / "run.pcap", model="ideal")
    assert all(struct.unpack_from("<I", tap, 4)[0] == 0b1011 for _, tap, _ in found)


def test_lora_frames_have_their_own_headers(tmp_path: Path) -> None:
    found, counts = captured(tmp_path / "run.pcap", "oracle", model="lora", spreading_factor=8, duty_cycle=1.0)
    assert len(found) == sum(counts.values())
    acknowledgements = [frame for _, _, frame in found if frame[4] == 1]
    assert len(acknowledgements) == counts["ACK"] > 0
    assert all(len(frame) == 8 for frame in acknowledgements)
    tap = struct.unpack(">BBHIBBBBBBB", found[0][1])
    assert tap == (0, 0, 15, 868_100_000, 1, 8, 0, 0, 0, 0, 0x12)
    assert max(len(frame) for _, _, frame in found) <= 255


def test_a_large_message_is_captured_in_its_fragments(tmp_path: Path) -> None:
    scenario = Scenario(nodes=3, area_m=(50.0, 50.0), duration_s=12.0, workload=Workload(payload_bytes=5000))
    capture = Capture(tmp_path / "run.pcap")
    simulate(Run(scenario=scenario), on_frame=capture.frame)
    capture.close()
    sizes = [len(frame) for _, _, frame in records((tmp_path / "run.pcap").read_bytes())]
    assert max(sizes) < 2400
    assert sum(sizes) > 5000


def test_a_file_that_cannot_be_written_is_refused_before_the_run(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"run.pcap: cannot be written: No such file or directory"):
        Capture(tmp_path / "absent" / "run.pcap")
    with pytest.raises(ConfigurationError, match=r"cannot be written: Is a directory"):
        Capture(tmp_path)
    Capture(tmp_path / "given-up.pcap").abandon()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
def test_tshark_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "run.pcap"
    found, _ = captured(path, "ps-maodv", loss=0.2)
    fields = ("wlan.fc.type_subtype", "wlan.ta", "wlan.ra", "wlan.fcs.status", "data.data", "_ws.malformed")
    command = ["tshark", "-r", str(path), "-o", "wlan.check_checksum:TRUE", "-T", "fields", "-E", "separator=|"]
    command += [part for field in fields for part in ("-e", field)]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert len(told) == len(found)
    for line, (_, _, frame) in zip(told, found, strict=True):
        kind, sender, _, checked, data, malformed = line.split("|")
        assert checked in ("1", "Good")
        assert malformed == ""
        if frame[0] == 0x08:
            assert int(kind, 16) == 0x20
            assert sender == ":".join(f"{byte:02x}" for byte in frame[10:16])
            assert data.replace(":", "") == frame[32:-4].hex()
        else:
            assert int(kind, 16) == 0x1D


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
def test_tshark_reads_lora(tmp_path: Path) -> None:
    path = tmp_path / "run.pcap"
    found, _ = captured(path, model="lora", spreading_factor=9, duty_cycle=1.0)
    fields = ("loratap.channel.sf", "loratap.channel.frequency", "data.data", "_ws.malformed")
    command = ["tshark", "-r", str(path), "-T", "fields", "-E", "separator=|"]
    command += [part for field in fields for part in ("-e", field)]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert len(told) == len(found)
    for line, (_, _, frame) in zip(told, found, strict=True):
        factor, hertz, data, malformed = line.split("|")
        assert (int(factor, 0), int(hertz, 0), malformed) == (9, 868_100_000, "")
        assert data.replace(":", "") == frame.hex()
