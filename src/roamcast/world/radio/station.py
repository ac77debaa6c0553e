"""What one node's radio knows of the channel and of itself; see `dcf.py` for how it is used."""

from collections import deque

from roamcast.world.radio.dcf_settings import DIFS_S, WINDOW_MIN
from roamcast.world.radio.medium import Frame


class Station:
    __slots__ = (
        "air_until", "awaited", "backoff", "busy_until", "committed", "defer", "exchange", "last_heard", "listened",
        "lock", "node", "noise", "queue", "sending_until", "waiting", "window",
    )  # fmt: skip

    def __init__(self, node: int) -> None:
        self.node = node
        self.air_until = 0.0  # a signal, or the node's own, fills its air until then
        self.busy_until = -1.0  # the same, or a reservation heard
        self.defer = DIFS_S  # silence required after busy_until
        self.sending_until = 0.0
        self.backoff = 0  # slots left to count down
        self.window = WINDOW_MIN
        self.lock: Frame | None = None  # the frame this node is receiving
        self.noise: list[Frame] | None = None  # what has overlapped it here
        self.queue: deque[Frame] = deque()
        self.waiting = False  # an access entry is in the event queue
        self.listened = 0.0  # with no backoff to count, it has listened for DIFS by then
        self.committed = False  # too late to sense what has just started
        self.exchange: Frame | None = None  # unicast that waits for its CTS or ACK
        self.awaited = 0  # counts answers waited for, so that a late timeout is recognised
        self.last_heard: dict[int, Frame] = {}  # sender -> last unicast handed up

    def silence(self) -> None:
        """The node went down."""
        self.queue.clear()
        self.exchange = None
        self.awaited += 1
        self.lock = None
        self.backoff = 0
        self.window = WINDOW_MIN
        self.last_heard.clear()
