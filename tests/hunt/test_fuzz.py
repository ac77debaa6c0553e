"""Datagrams made of real ones: nothing but a refusal comes out of the decoder and of any protocol.

`make fuzz` sends far more of them, and keeps messages of new shapes.
"""

import os
from pathlib import Path

import msgspec
import pytest

from roamcast.errors import ConfigurationError
from roamcast.hunt.draw import HUNTED
from roamcast.hunt.fuzz import Corpus, Counts, Fuzzer, Mutator, add_counts, shape
from roamcast.live.codec import Codec, Datagram, DatagramKind, DropReason
from roamcast.protocols.catalogue import PROTOCOLS
from roamcast.seeds import Random

CORPUS = Path(__file__).parent / "corpus"
DATAGRAMS = int(os.environ.get("ROAMCAST_FUZZ", "20000"))


@pytest.mark.parametrize("protocol", HUNTED)
def test_nothing_but_a_refusal_comes_out(protocol: str) -> None:
    fuzzer = Fuzzer(protocol, Corpus.read(CORPUS / f"{protocol}.txt"), seed=1)
    fuzzer.fire(DATAGRAMS)
    assert fuzzer.counts.decoded == DATAGRAMS
    assert fuzzer.counts.messages > DATAGRAMS / 50  # or the protocol would never be reached
    assert fuzzer.counts.messages < DATAGRAMS  # or nothing would be refused


@pytest.mark.parametrize("protocol", HUNTED)
def test_the_corpus_is_what_the_protocol_sends(protocol: str) -> None:
    codec = Codec("fuzz", protocol, PROTOCOLS[protocol].messages)
    messages = Corpus.read(CORPUS / f"{protocol}.txt").messages
    assert messages
    for body in messages:
        assert not isinstance(codec.decode(codec.encode(Datagram(DatagramKind.BROADCAST, 9), body)), DropReason)


def test_mutations_are_of_many_shapes_and_follow_from_the_seed() -> None:
    corpus = Corpus.read(CORPUS / "waymark.txt").messages
    one, two = Mutator(corpus, Random(3)), Mutator(corpus, Random(3))
    bodies = [one.body() for _ in range(2000)]
    assert bodies == [two.body() for _ in range(2000)]
    assert len(set(bodies)) > 1500
    assert not set(bodies) <= set(corpus)


def test_counts_add_up(tmp_path: Path) -> None:
    path = tmp_path / "results" / "fuzz.json"
    add_counts({"flooding": Counts(decoded=3, messages=1)}, path)
    add_counts({"flooding": Counts(decoded=4), "gossip": Counts(decoded=1)}, path)
    added = msgspec.json.decode(path.read_bytes(), type=dict[str, Counts])
    assert added == {"flooding": Counts(decoded=7, messages=1), "gossip": Counts(decoded=1)}


def test_a_corpus_keeps_one_message_of_each_shape(tmp_path: Path) -> None:
    corpus = Corpus()
    assert corpus.learn(msgspec.msgpack.encode([16, 1, [2, 3]]))
    assert not corpus.learn(msgspec.msgpack.encode([16, 7, [8, 9]]))
    assert corpus.learn(msgspec.msgpack.encode([17, 7, [8, 9]]))  # another kind of message
    assert corpus.learn(msgspec.msgpack.encode([16, 7, [8, 9, 10]]))
    assert len({shape([16, leaf]) for leaf in ("a", b"a", 1.5, 1, None, True)}) == 6
    path = tmp_path / "corpus.txt"
    corpus.write(path)
    assert sorted(Corpus.read(path).messages) == sorted(corpus.messages)
    path.write_text("nonsense", encoding="ascii")
    with pytest.raises(ConfigurationError, match="cannot be read"):
        Corpus.read(path)
