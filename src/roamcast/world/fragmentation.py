"""Messages larger than a frame in the simulated network (`protocols/fragments.py` has the rules).

A node hands its fragments to the radio one at a time: the next one follows when the radio's queue is empty, so a large
message never overflows the queue and the node's other frames go first.

Most networks never send such a message. Until one does, the radio talks to the protocols directly. The first
large message puts a `FragmentLink` between the radio and the protocol of every node.
"""

from typing import Any

import msgspec

from roamcast.protocols.api import Listener, Message
from roamcast.protocols.fragment import Fragment
from roamcast.protocols.fragments import Outbox, Reassembly
from roamcast.world.radio.medium import Medium


class FragmentLink(Listener):
    """What is between the radio and the protocol of one node, for one life."""

    def __init__(
        self, medium: Medium, node: int, life: int, listener: Listener, messages: Any, *, extra_bytes: int
    ) -> None:
        self._medium = medium
        self._extra_bytes = extra_bytes
        self._node = node
        self._listener = listener
        self._outbox = Outbox(life, medium.frame_bytes_max - extra_bytes)
        self._reassembly = Reassembly(medium.lose)
        self._decoder: Any = msgspec.msgpack.Decoder(messages)
        self._is_closed = False

    def __len__(self) -> int:
        """Fragments that have not reached the radio."""
        return len(self._outbox)

    def send(self, receiver: int, message: Message, data: bytes) -> None:
        """Sends a message that is larger than a frame; `receiver` is `NOBODY` for a broadcast."""
        if self._outbox.add(receiver, message, data):
            self._feed()
        else:
            self._medium.lose("queue")

    def close(self) -> None:
        self._is_closed = True

    def on_message(self, sender: int, message: Message) -> None:
        if type(message) is not Fragment:
            self._listener.on_message(sender, message)
            return
        data = self._reassembly.add(sender, message, self._medium.scheduler.now)
        if data is not None:
            self._listener.on_message(sender, self._decoder.decode(data))

    def on_send_failed(self, neighbour: int, message: Message) -> None:
        if type(message) is not Fragment:
            self._listener.on_send_failed(neighbour, message)
            return
        whole = self._outbox.failed(message)
        if whole is not None:
            self._listener.on_send_failed(neighbour, whole)

    def _feed(self) -> None:
        """Hands fragments to the radio while it has nothing else to send."""
        while not self._is_closed and not self._medium.backlog(self._node):
            following = self._outbox.next()
            if following is None:
                return
            receiver, fragment = following
            self._medium.transmit(self._node, receiver, fragment, encoded_bytes(fragment) + self._extra_bytes)
        if not self._is_closed and len(self._outbox):
            self._medium.when_idle(self._node, self._feed)


class Fragmentation:
    """The fragment links of a network, made when the first large message is sent."""

    def __init__(self, medium: Medium, extra_bytes: int = 0) -> None:
        self._medium = medium
        self._extra_bytes = extra_bytes  # that security adds to each frame
        self._listeners: dict[int, tuple[int, Listener, Any]] = {}  # nodes that are up: life, listener, messages
        self._links: dict[int, FragmentLink] = {}
        self._is_used = False

    def attach(self, node: int, life: int, listener: Listener | None, messages: Any = None) -> None:
        """From now on `listener` gets what arrives at `node`, one of these `messages`; None: the node is down."""
        link = self._links.pop(node, None)
        if link is not None:
            link.close()
        if listener is None:
            self._listeners.pop(node, None)
            self._medium.attach(node, None)
            return
        self._listeners[node] = (life, listener, messages)
        if self._is_used:
            self._insert_link(node)
        else:
            self._medium.attach(node, listener)

    def send(self, sender: int, receiver: int, message: Message, data: bytes) -> None:
        if not self._is_used:
            self._is_used = True
            for node in self._listeners:
                self._insert_link(node)
        link = self._links.get(sender)
        if link is not None:
            link.send(receiver, message, data)

    def backlog(self, node: int) -> int:
        """Fragments of this node that have not reached the radio."""
        link = self._links.get(node)
        return 0 if link is None else len(link)

    def _insert_link(self, node: int) -> None:
        life, listener, messages = self._listeners[node]
        link = FragmentLink(self._medium, node, life, listener, messages, extra_bytes=self._extra_bytes)
        self._links[node] = link
        self._medium.attach(node, link)


def encoded_bytes(message: Message) -> int:
    return len(msgspec.msgpack.encode(message))


