"""How much one peer may send: token buckets for datagrams and for bytes.

Only datagrams whose sender is proved by seal and signature are counted, so no node can use up another's share. The
table is bounded; the peer that was heard least recently is forgotten, and starts with a full bucket if it returns.
"""

from typing import Final

import msgspec

PEERS_MAX: Final = 4096
BURST_S: Final = 2.0


class Quota(msgspec.Struct, frozen=True):
    """What one peer may send in the long run, and how much at once."""

    datagrams_per_s: float = 10_000.0  # an honest node sends a quarter of it at most (`link.py`), and full batches
    datagrams_burst: float = 20_000.0  # a message of the largest size takes 200
    bytes_per_s: float = 10e6
    bytes_burst: float = 20e6


def quota_of(datagrams_per_s: float, bytes_per_s: float) -> Quota:
    """At once a peer may send what it may send in `BURST_S`."""
    return Quota(datagrams_per_s, BURST_S * datagrams_per_s, bytes_per_s, BURST_S * bytes_per_s)


class _Bucket:
    def __init__(self, quota: Quota, now_s: float) -> None:
        self.datagrams = quota.datagrams_burst
        self.bytes = quota.bytes_burst
        self.filled_s = now_s


class Quotas:
    def __init__(self, quota: Quota) -> None:
        self._quota = quota
        self._buckets: dict[int, _Bucket] = {}  # by peer, the one heard least recently first

    def __len__(self) -> int:
        return len(self._buckets)

    def allows(self, peer: int, size_bytes: int, now_s: float, datagrams: float = 1) -> bool:
        """Whether the peer may send this datagram now; counts it if so, as several if it costs as much."""
        quota = self._quota
        bucket = self._buckets.pop(peer, None)
        if bucket is None:
            bucket = _Bucket(quota, now_s)
            if len(self._buckets) >= PEERS_MAX:
                del self._buckets[next(iter(self._buckets))]
        self._buckets[peer] = bucket  # the last of them now
        elapsed_s = now_s - bucket.filled_s
        if elapsed_s > 0.0:
            bucket.filled_s = now_s
            bucket.datagrams += elapsed_s * quota.datagrams_per_s
            if bucket.datagrams > quota.datagrams_burst:
                bucket.datagrams = quota.datagrams_burst
            bucket.bytes += elapsed_s * quota.bytes_per_s
            if bucket.bytes > quota.bytes_burst:
                bucket.bytes = quota.bytes_burst
        datagrams = min(datagrams, quota.datagrams_burst)
        if bucket.datagrams < datagrams or bucket.bytes < size_bytes:
            return False
        bucket.datagrams -= datagrams
        bucket.bytes -= size_bytes
        return True
