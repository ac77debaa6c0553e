"""A client's bond with its home broker, as far as the client knows."""

from roamcast.protocols.api import NOBODY


class Home:
    __slots__ = ("broker", "epoch", "heard_s", "hops")

    def __init__(self) -> None:
        self.broker = NOBODY
        self.hops = 0  # frames in a row that its last answer took; 0: not known
        self.epoch = 0  # raised by the client alone, when it attaches without having been handed over
        self.heard_s = 0.0  # when the broker last showed that it serves this client
