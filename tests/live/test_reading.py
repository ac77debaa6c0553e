"""How a socket is read."""

import socket

import pytest

from roamcast.live.reading import CLOSE_S, DRAIN_MAX, DatagramReader


def test_what_arrives_alone_is_read_alone_and_a_burst_in_one_go(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = 100.0
    monkeypatch.setattr("roamcast.live.reading.time.monotonic", lambda: now_s)
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver,
    ):
        receiver.bind(("127.0.0.1", 0))
        receiver.setblocking(False)
        got: list[bytes] = []
        reader = DatagramReader(receiver, lambda data, source: got.append(data), lambda: None)
        for number in range(DRAIN_MAX + 2):
            sender.sendto(b"%d" % number, receiver.getsockname())
        reader.read()
        assert got == [b"0"]
        now_s += CLOSE_S / 2
        reader.read()
        assert len(got) == 1 + DRAIN_MAX
        now_s += 2 * CLOSE_S
        reader.read()
        assert got == [b"%d" % number for number in range(DRAIN_MAX + 2)]
        reader.read()  # nothing there


def test_a_reader_stops_when_its_socket_is_closed_by_what_arrived(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("roamcast.live.reading.time.monotonic", lambda: 0.0)
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver,
    ):
        receiver.bind(("127.0.0.1", 0))
        receiver.setblocking(False)
        got: list[bytes] = []

        def take(data: bytes, source: object) -> None:
            got.append(data)
            receiver.close()

        sender.sendto(b"a", receiver.getsockname())
        sender.sendto(b"b", receiver.getsockname())
        DatagramReader(receiver, take, lambda: None).read()
        assert got == [b"a"]
