"""Fuzzing of datagrams: what real networks send, changed in its structure and in its bytes.

A corpus holds messages of every kind that protocols sent in simulations, one per line in hexadecimal, a file per
protocol. A mutator takes one of them apart as MessagePack, changes numbers to the ends of ranges, drops, repeats and
swaps parts, grafts parts of other messages onto it, and puts it together again; or it changes the bytes themselves. The
result goes through the decoder of live nodes, from which nothing may escape. What is a message after all goes to a node
in the middle of a network, from which nothing but a `PeerError` may escape.

A message that decodes and has a shape that the corpus lacks is worth keeping: `Corpus.learn`.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from roamcast.errors import ConfigurationError, PeerError
from roamcast.hunt.nonsense import Nonsense
from roamcast.interests import Intervals
from roamcast.live.codec import FRAME_BYTES_MAX, Codec, Datagram, DatagramKind
from roamcast.protocols.api import Message, Protocol, Site
from roamcast.protocols.catalogue import protocol_class
from roamcast.protocols.fragment import Fragment
from roamcast.seeds import Random, derive
from roamcast.testing import TinyNet, line
from roamcast.world.radio import medium
from roamcast.world.scenario import Run
from roamcast.world.simulator import Simulation

NODES = 4
EDGES: tuple[Any, ...] = (
    0, 1, -1, 2, 127, 128, 255, 256, 2**16, 2**31 - 1, 2**32 - 1, 2**32, 2**53, 2**63 - 1, -(2**63), 2**64 - 1,
    0.0, -0.0, 1e-300, 1e300, -1e300, float("inf"), float("-inf"), float("nan"), True, False, None, "", b"", [],
    "é", "**", "a/**", "\x00", "x" * 300,
)  # fmt: skip
"""What numbers, texts and switches are replaced by."""

SIBLINGS = 7  # of each body: the same with a byte changed, or cut short
LOOKED_AT = 8  # every so many messages one may be new to the corpus
SHAPES_MAX = 400  # of messages in a corpus
DEPTH_MAX = 12


class Corpus:
    """Encoded messages of a protocol, each of another shape."""

    def __init__(self, messages: Iterable[bytes] = ()) -> None:
        self._by_shape: dict[str, bytes] = {}
        for message in messages:
            self.learn(message)

    @property
    def messages(self) -> list[bytes]:
        return list(self._by_shape.values())

    def learn(self, data: bytes) -> bool:
        """Keeps a message if no other has its shape; true if it did."""
        key = shape(msgspec.msgpack.decode(data))
        if key in self._by_shape or len(self._by_shape) >= SHAPES_MAX or len(data) > FRAME_BYTES_MAX:
            return False
        self._by_shape[key] = data
        return True

    @classmethod
    def read(cls, path: Path) -> "Corpus":
        try:
            return cls(bytes.fromhex(text) for text in path.read_text(encoding="ascii").split())
        except (OSError, ValueError, msgspec.MsgspecError) as error:
            raise ConfigurationError(f"corpus: {path} cannot be read: {error}") from None

    def write(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{data.hex()}\n" for data in sorted(self.messages)), encoding="ascii")


def shape(value: Any, depth: int = 0) -> str:
    """Types and nesting of a value, without what the leaves say; a message's tag is part of it."""
    if isinstance(value, list | tuple):
        if depth > 5:
            return "[.]"
        tag = f"{value[0]}:" if value and depth == 0 else ""
        parts = [shape(part, depth + 1) for part in value]
        kinds = parts if len(parts) < 8 else sorted(set(parts))
        return f"[{tag}{','.join(kinds)}]"
    return type(value).__name__[:2]


def gather(run: Run, corpus: Corpus) -> None:
    """Keeps messages that a simulated network sends."""
    simulation = Simulation(run)

    def note(frame: medium.Frame) -> None:
        if frame.message is not None:
            corpus.learn(msgspec.msgpack.encode(frame.message))

    simulation.watch_frames(note)
    simulation.run_until(run.scenario.duration_s)


class Mutator:
    """Makes datagram bodies out of a corpus."""

    def __init__(self, corpus: list[bytes], random: Random) -> None:
        self._corpus = corpus
        self._trees = [msgspec.msgpack.decode(data) for data in corpus]
        self._random = random

    def litter(self) -> list[bytes]:
        """A body and its siblings. They are what a link that damages frames makes of it, and cheap."""
        whole = self.body()
        if not whole:
            return [whole]
        bits = self._random.getrandbits(32 * SIBLINGS)
        made = [whole]
        for _ in range(SIBLINGS):
            at = (bits & 0xFFFF) % len(whole)
            value = bits >> 16 & 0xFF
            made.append(whole[:at] if value < 16 else b"%b%c%b" % (whole[:at], value, whole[at + 1 :]))
            bits >>= 32
        return made

    def body(self) -> bytes:
        random = self._random
        if random.random() < 0.25:
            return self._bytes(random.choice(self._corpus))
        tree = random.choice(self._trees)
        for _ in range(random.choice((1, 1, 2, 4))):
            tree = self._tree(tree, 0)
        data = msgspec.msgpack.encode(tree)
        return self._bytes(data) if random.random() < 0.1 else data

    def _tree(self, value: Any, depth: int) -> Any:
        """The value with one part changed, somewhere."""
        random = self._random
        if not isinstance(value, list | tuple) or not value or depth > DEPTH_MAX:
            return self._leaf(value)
        parts = list(value)
        at = random.randrange(len(parts))
        action = random.randrange(12)
        if action < 7:
            parts[at] = self._tree(parts[at], depth + 1)
        elif action == 7:
            del parts[at]
        elif action == 8:
            parts[at:at] = [parts[at]] * random.choice((1, 2, 70))
        elif action == 9:
            parts[at] = self._graft()
        elif action == 10:
            other = random.randrange(len(parts))
            parts[at], parts[other] = parts[other], parts[at]
        else:
            parts.append(self._graft())
        return parts

    def _leaf(self, value: Any) -> Any:
        random = self._random
        if isinstance(value, int) and not isinstance(value, bool) and random.random() < 0.5:
            return value + random.choice((-2, -1, 1, 2, 256, 2**16)) if abs(value) < 2**62 else 0
        if isinstance(value, bytes) and random.random() < 0.7:
            return random.randbytes(random.choice((0, 1, len(value), 2 * len(value) + 1)))
        return random.choice(EDGES)

    def _graft(self) -> Any:
        """A part of some message."""
        part = self._random.choice(self._trees)
        while isinstance(part, list) and part and self._random.random() < 0.7:
            part = self._random.choice(part)
        return part

    def _bytes(self, data: bytes) -> bytes:
        random = self._random
        changed = bytearray(data)
        for _ in range(random.choice((1, 1, 2, 8))):
            at = random.randrange(len(changed) + 1)
            action = random.randrange(4)
            if action == 0 and at < len(changed):
                changed[at] ^= 1 << random.randrange(8)
            elif action == 1:
                changed[at:at] = random.randbytes(random.choice((1, 2, 5)))
            elif action == 2:
                del changed[at : at + random.choice((1, 2, 8))]
            else:
                other = random.choice(self._corpus)
                changed[at:] = other[random.randrange(len(other) + 1) :]
        return bytes(changed)


class Counts(msgspec.Struct):
    decoded: int = 0  # datagrams that went through the decoder
    messages: int = 0  # of these, those that were messages and went to the protocol
    refused: int = 0  # by the protocol, with a `PeerError`
    learned: int = 0  # shapes that the corpus lacked

    def add(self, other: "Counts") -> None:
        for field in Counts.__struct_fields__:
            setattr(self, field, getattr(self, field) + getattr(other, field))


def add_counts(counts: dict[str, Counts], path: Path) -> None:
    """Adds to what earlier runs counted."""
    before = msgspec.json.decode(path.read_bytes(), type=dict[str, Counts]) if path.exists() else {}
    for name, each in counts.items():
        before.setdefault(name, Counts()).add(each)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.encode(before))


class Fuzzer:
    """One protocol under fire."""

    def __init__(self, protocol: str, corpus: Corpus, seed: int) -> None:
        self.protocol = protocol
        self.corpus = corpus
        self.counts = Counts()
        self._random = derive(seed, "fuzz", protocol)
        kind = protocol_class(protocol)
        self._codec = Codec("fuzz", protocol, kind.messages)
        nonsense = Nonsense(kind.messages, derive(seed, "nonsense", protocol), [0, 1, 2, 9], [9])
        for _ in range(100):  # kinds that no simulation has sent
            corpus.learn(msgspec.msgpack.encode(nonsense.message()))
        self._mutator = Mutator(corpus.messages, self._random)
        self._net = self._network(seed)
        self._header = self._codec.encode(Datagram(DatagramKind.BROADCAST, 9), b"")

    def fire(self, datagrams: int, *, at_protocol: bool = True) -> None:
        """Sends that many datagrams; an exception is raised with the bytes that caused it."""
        last = self.counts.decoded + datagrams
        decode, header = self._codec.decode, self._header
        while self.counts.decoded < last:
            for body in self._mutator.litter()[: last - self.counts.decoded]:
                try:
                    decoded = decode(header + body)
                    if type(decoded) is Datagram and decoded.message is not None:
                        self._received(decoded.message, at_protocol)
                except Exception as error:
                    error.add_note(f"{self.protocol}: body {body.hex()}")
                    raise
                self.counts.decoded += 1

    def _received(self, message: Message, at_protocol: bool) -> None:
        if self.counts.messages % LOOKED_AT == 0:
            plain = msgspec.msgpack.encode(message)  # without fields that were ignored
            self.counts.learned += self.corpus.learn(plain)
        if not at_protocol or type(message) is Fragment:  # which the link puts together
            return
        self.counts.messages += 1
        victim = self._net.host(self._random.choice((1, 2)))
        try:
            victim.arrives(self._random.choice((0, 2, 3, 9)), message)
        except PeerError:
            self.counts.refused += 1
        if self.counts.messages % 10 == 0:
            self._net.run(0.02)
            self._net.records.clear()

    def _network(self, seed: int) -> TinyNet[Protocol]:
        parameters = {"brokers": "1-2"} if self.protocol == "overlays" else {}
        net: TinyNet[Protocol] = TinyNet(
            line(NODES),
            self.protocol,
            parameters,
            seed=seed,
            site=Site(600.0, 200.0, 150.0),
            positions_m={node: (50.0 + 120.0 * node, 100.0) for node in range(NODES)},
            oracle=True,
            language="intervals",
        )
        net.subscribe(NODES - 1, Intervals.of((0, 100)))
        net.run(5.0)
        return net
