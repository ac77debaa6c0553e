"""One end of a measurement of live publish/subscribe: a process that publishes, or one that receives.

    python -m roamcast.bench.live_worker subscribe CONTENDER PORT FOLDER
    python -m roamcast.bench.live_worker publish CONTENDER PORT FOLDER RATE COUNT

The subscriber says `ready`, and what it received as one JSON object when it is told to end (a line on standard input).
A payload carries its number and the time at which it was handed over, on the machine's monotonic clock.
"""

import asyncio
import json
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from struct import Struct
from typing import Any

from roamcast.live.endpoints import open_socket
from roamcast.live.loop import run

PAYLOAD_BYTES = 64
TOPIC = "bench/live"
_HEAD = Struct(">QQ")

Receive = Callable[[bytes], None]


class LatencyLog:
    def __init__(self) -> None:
        self.latencies_ns: list[int] = []
        self.numbers: set[int] = set()
        self.first_ns = 0
        self.last_ns = 0
        self._cpu_s = 0.0  # when the first arrived

    def take(self, payload: bytes) -> None:
        now_ns = time.monotonic_ns()
        number, sent_ns = _HEAD.unpack_from(payload)
        self.latencies_ns.append(now_ns - sent_ns)
        self.numbers.add(number)
        if not self.first_ns:
            self.first_ns = now_ns
            self._cpu_s = time.process_time()
        self.last_ns = now_ns

    def report(self) -> dict[str, Any]:
        ordered = sorted(self.latencies_ns) or [0]
        return {
            "received": len(self.numbers),
            "duplicates": len(self.latencies_ns) - len(self.numbers),
            "p50_us": ordered[len(ordered) // 2] / 1000,
            "p99_us": ordered[len(ordered) * 99 // 100] / 1000,
            "seconds": (self.last_ns - self.first_ns) / 1e9,
            "receiving_s": time.process_time() - self._cpu_s,
        }


def payload(number: int) -> bytes:
    return _HEAD.pack(number, time.monotonic_ns()).ljust(PAYLOAD_BYTES, b".")


class Pace:
    """When the next event is due, at a steady rate."""

    def __init__(self, rate_per_s: float) -> None:
        self._step_s = 1 / rate_per_s
        self._due_s = time.monotonic()

    def wait_s(self) -> float:
        self._due_s += self._step_s
        return self._due_s - time.monotonic()


def node_options(contender: str, address: int, port: int, folder: Path) -> dict[str, Any]:
    others = {1: 2, 2: 1}
    options: dict[str, Any] = {
        "listen": f"127.0.0.1:{port + address}",
        "peers": [f"127.0.0.1:{port + others[address]}"],
        "protocol": "flooding",
        "parameters": {"jitter_s": 0.0, "hops_max": 1},
    }
    if contender != "roamcast-plain":
        options["key"] = folder / "bench.key"
    if contender == "roamcast-signed":
        options["identity"] = folder / f"{address}.node"
        options["address"] = None
    if contender == "roamcast-repair":
        options["repair"] = True
    if contender == "roamcast-overlays":
        options |= {"protocol": "overlays", "parameters": {"brokers": "1", "machine_load": False}}
    return {"address": address} | options


async def roamcast_subscriber(contender: str, port: int, folder: Path, receive: Receive, ended: asyncio.Event) -> None:
    import roamcast

    async with roamcast.Node(**node_options(contender, 2, port, folder)) as node:
        node.subscribe(TOPIC)
        node.observe(lambda delivery: receive(delivery.event.payload))
        print("ready", flush=True)
        await ended.wait()


async def roamcast_publisher(contender: str, port: int, folder: Path, rate: float, count: int) -> None:
    import roamcast

    async with roamcast.Node(**node_options(contender, 1, port, folder)) as node:
        while not node.counters["neighbours"]:
            await asyncio.sleep(0.05)
        await asyncio.sleep(5 if contender == "roamcast-overlays" else 1)  # brokers; certificates
        await _paced(rate, count, lambda number: node.publish(TOPIC, payload(number)))
        await asyncio.sleep(0.5)


def _report(began_s: float) -> None:
    print(json.dumps({"sending_s": time.process_time() - began_s}), flush=True)


async def _paced(rate: float, count: int, send: Callable[[int], Any]) -> None:
    pace = Pace(rate)
    began_s = time.process_time()
    for number in range(count):
        answer = send(number)
        if answer is not None:
            await answer
        wait_s = pace.wait_s()
        if wait_s > 0 or number % 64 == 63:
            await asyncio.sleep(max(0.0, wait_s))
    _report(began_s)


async def udp_subscriber(port: int, receive: Receive, ended: asyncio.Event) -> None:
    class Receiver(asyncio.DatagramProtocol):
        def datagram_received(self, data: bytes, addr: tuple[str | Any, int]) -> None:
            receive(data)

    loop = asyncio.get_running_loop()
    endpoint = open_socket(("127.0.0.1", port), None)
    transport, _ = await loop.create_datagram_endpoint(Receiver, sock=endpoint)
    print("ready", flush=True)
    await ended.wait()
    transport.close()


async def udp_publisher(port: int, rate: float, count: int) -> None:
    loop = asyncio.get_running_loop()
    transport, _ = await loop.create_datagram_endpoint(asyncio.DatagramProtocol, remote_addr=("127.0.0.1", port))
    await _paced(rate, count, lambda number: transport.sendto(payload(number)))
    await asyncio.sleep(0.2)
    transport.close()


def zenoh_session(port: int, listens: bool) -> Any:
    import zenoh

    config = zenoh.Config()
    config.insert_json5("scouting/multicast/enabled", "false")
    config.insert_json5("mode", '"peer"')
    config.insert_json5("listen/endpoints", f'["tcp/127.0.0.1:{port if listens else 0}"]')
    if not listens:
        config.insert_json5("connect/endpoints", f'["tcp/127.0.0.1:{port}"]')
    return zenoh.open(config)


def zenoh_subscriber(port: int, receive: Receive, ended: threading.Event) -> None:
    session = zenoh_session(port, True)
    subscriber = session.declare_subscriber(TOPIC, lambda sample: receive(sample.payload.to_bytes()))
    print("ready", flush=True)
    ended.wait()
    subscriber.undeclare()
    session.close()


def zenoh_publisher(port: int, rate: float, count: int) -> None:
    session = zenoh_session(port, False)
    publisher = session.declare_publisher(TOPIC)
    time.sleep(1)
    _paced_blocking(rate, count, lambda number: publisher.put(payload(number)))
    time.sleep(0.5)
    session.close()


def mqtt_client(port: int) -> Any:
    from paho.mqtt.client import Client
    from paho.mqtt.enums import CallbackAPIVersion

    client = Client(CallbackAPIVersion.VERSION2)
    client.max_queued_messages_set(0)
    client.connect("127.0.0.1", port)
    client.loop_start()
    return client


def mqtt_subscriber(port: int, receive: Receive, ended: threading.Event) -> None:
    client = mqtt_client(port)
    client.on_message = lambda _client, _data, message: receive(message.payload)
    client.subscribe(TOPIC)
    time.sleep(0.5)
    print("ready", flush=True)
    ended.wait()
    client.disconnect()


def mqtt_publisher(port: int, rate: float, count: int) -> None:
    client = mqtt_client(port)
    time.sleep(0.5)
    _paced_blocking(rate, count, lambda number: client.publish(TOPIC, payload(number)))
    while client.want_write():
        time.sleep(0.01)
    time.sleep(0.5)
    client.disconnect()


def _paced_blocking(rate: float, count: int, send: Callable[[int], Any]) -> None:
    pace = Pace(rate)
    began_s = time.process_time()
    for number in range(count):
        send(number)
        wait_s = pace.wait_s()
        if wait_s > 0.0002:
            time.sleep(wait_s)
    _report(began_s)


def _at_the_end(tell: Callable[[], object]) -> None:
    def wait() -> None:
        sys.stdin.readline()
        tell()

    threading.Thread(target=wait, daemon=True).start()


def subscribe(contender: str, port: int, folder: Path) -> None:
    receipts = LatencyLog()
    if contender in ("zenoh", "mosquitto"):
        stopped = threading.Event()
        _at_the_end(stopped.set)
        (zenoh_subscriber if contender == "zenoh" else mqtt_subscriber)(port, receipts.take, stopped)
    else:

        async def main() -> None:
            ended = asyncio.Event()
            loop = asyncio.get_running_loop()
            _at_the_end(lambda: loop.call_soon_threadsafe(ended.set))
            if contender == "udp":
                await udp_subscriber(port, receipts.take, ended)
            else:
                await roamcast_subscriber(contender, port, folder, receipts.take, ended)

        run(main())
    print(json.dumps(receipts.report()), flush=True)


def publish(contender: str, port: int, folder: Path, rate: float, count: int) -> None:
    if contender == "zenoh":
        zenoh_publisher(port, rate, count)
    elif contender == "mosquitto":
        mqtt_publisher(port, rate, count)
    elif contender == "udp":
        run(udp_publisher(port, rate, count))
    else:
        run(roamcast_publisher(contender, port, folder, rate, count))


if __name__ == "__main__":
    role, name, number, place, *rest = sys.argv[1:]
    if role == "subscribe":
        subscribe(name, int(number), Path(place))
    else:
        publish(name, int(number), Path(place), float(rest[0]), int(rest[1]))
