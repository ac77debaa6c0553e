"""Doors as users meet them: real processes, mosquitto's clients, curl's view, and ten hops between two clients."""

import asyncio
import json
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.doors.nodes import ANYWHERE, PATIENCE_S, endpoints, free_port, row, run

from roamcast.testing.namespaces import Fleet, NamespaceMachines, why_impossible

MOSQUITTO = pytest.mark.skipif(shutil.which("mosquitto_sub") is None, reason="no mosquitto_sub and mosquitto_pub")
IMPOSSIBLE = why_impossible()
HOPS = 10
SUBSCRIBE = "import paho.mqtt.subscribe as s; print(s.simple('fire/#', qos=1).payload.decode(), flush=True)"
PUBLISH = "import paho.mqtt.publish as p; p.single('fire/north', 'smoke', qos=1)"


@MOSQUITTO
def test_mosquitto_clients_of_two_nodes_talk() -> None:
    async def work() -> None:
        door = {"mqtt": {"listen": ANYWHERE}}
        async with row(door, door) as (here, there):
            ports = [str(doors.open["mqtt"].port) for doors in (here, there)]
            await command("mosquitto_pub", "-p", ports[0], "-t", "status/door", "-m", "open", "-q", "1", "-r")
            listen = ["mosquitto_sub", "-p", ports[1], "-t", "status/+", "-t", "fire/#", "-q", "1", "-C", "2", "-v"]
            listener = await asyncio.create_subprocess_exec(*listen, stdout=subprocess.PIPE)
            try:
                assert listener.stdout is not None
                assert await listener.stdout.readline() == b"status/door open\n"  # retained, asked for by its node
                await command("mosquitto_pub", "-p", ports[0], "-t", "fire/north/hall", "-m", "smoke")
                assert await listener.stdout.readline() == b"fire/north/hall smoke\n"
                assert await listener.wait() == 0
            finally:
                if listener.returncode is None:
                    listener.kill()

    run(work)


async def command(*words: str) -> None:
    process = await asyncio.create_subprocess_exec(*words)
    assert await process.wait() == 0


@pytest.fixture
def machines() -> Iterator[NamespaceMachines]:
    made = NamespaceMachines(HOPS + 1)
    try:
        for machine in made.machines:
            made.connect(machine)
        yield made
    finally:
        made.close()


@pytest.mark.skipif(IMPOSSIBLE is not None, reason=str(IMPOSSIBLE))
def test_mqtt_clients_talk_over_ten_hops(machines: NamespaceMachines) -> None:
    """Eleven nodes in a row, each a process on a machine of its own. Both clients use the usual port on loopback."""
    arguments = {}
    for machine in machines.machines:
        peers = [each for each in (machine - 1, machine + 1) if each in machines.machines]
        words = ["--address", str(machine), "--listen", f"10.77.0.{machine}:9000", "--plain", "--json"]
        for peer in peers:
            words += ["--peer", f"10.77.0.{peer}:9000"]
        if len(peers) == 1:
            words += ["--door", "mqtt", "--subscribe", "fire/**"]
        arguments[machines.name(machine)] = words
    fleet = Fleet(arguments)
    inside = {end: ["ip", "netns", "exec", machines.name(end), sys.executable, "-c"] for end in (1, HOPS + 1)}
    try:
        for node in fleet.nodes:
            node.next("started", patience_s=PATIENCE_S)
        listener = subprocess.Popen([*inside[HOPS + 1], SUBSCRIBE], stdout=subprocess.PIPE, text=True)
        try:
            deadline_s = time.monotonic() + PATIENCE_S
            while listener.poll() is None:  # until the interest has come all the way
                assert time.monotonic() < deadline_s
                subprocess.run([*inside[1], PUBLISH], check=True, timeout=PATIENCE_S)
            assert listener.stdout is not None
            assert listener.stdout.read() == "smoke\n"
        finally:
            listener.kill()
            listener.wait()
        delivered = fleet.nodes[-1].next("delivered", content="fire/north")
        assert (delivered["publisher"], delivered["hops"], delivered["payload"]) == (1, HOPS, "smoke")
    finally:
        fleet.close()


def test_a_node_opens_the_doors_of_its_file_and_options(tmp_path: Path) -> None:
    port = free_port()
    (tmp_path / "node.toml").write_text(
        f'address = 1\npeer = ["{endpoints(1)[0]}"]\n[door.http]\nlisten = "127.0.0.1:{port}"\nusers = "clients"\n'
        '[door.http.access."*"]\npublish = "fire/**"\n[door.metrics]\nlisten = "127.0.0.1:0"\n'
    )
    (tmp_path / "clients").write_text("")
    words = ["node", "--config", str(tmp_path / "node.toml"), "--json"]
    process = subprocess.Popen(
        [sys.executable, "-m", "roamcast", *words, "--log-format", "json"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        assert process.stderr is not None
        assert json.loads(process.stdout.readline())["kind"] == "started"
        notices = [json.loads(process.stderr.readline()) for _ in range(2)]
        assert sorted(notice["door"] for notice in notices if notice["kind"] == "door") == ["http", "metrics"]
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=PATIENCE_S) as answer:
            assert json.load(answer)["status"] == "ok"
        refused = urllib.request.Request(f"http://127.0.0.1:{port}/events/fire", data=b"", method="POST")
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(refused, timeout=PATIENCE_S)
        out, err = process.communicate("quit\n", timeout=PATIENCE_S)
        assert process.returncode == 0, err
        assert json.loads(out.splitlines()[-1])["kind"] == "stopped"
    finally:
        process.kill()
        process.wait()


def test_a_door_that_cannot_be_opened_is_one_line() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        place = f"127.0.0.1:{taken.getsockname()[1]}"
        words = ["node", "--address", "1", "--peer", endpoints(1)[0], "--door", f"http={place}"]
        done = subprocess.run(
            [sys.executable, "-m", "roamcast", *words], capture_output=True, text=True, timeout=PATIENCE_S, check=False
        )
    assert done.returncode == 2
    assert f"door.http.listen: {place}" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_node_without_doors_loads_none_of_their_libraries() -> None:
    program = (
        "import sys, roamcast.cli.node; "
        "libraries = {'aiohttp', 'amqtt', 'paho', 'prometheus_client', 'opentelemetry'}; "
        "print(sorted(libraries & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
