"""How much one peer may send: token buckets for datagrams and for bytes.

Only datagrams whose sender is proved by seal and signature are counted, so no node can use up another's share. The
table is bounded; the peer that was heard least recently is forgotten, and starts with a full bucket if it returns.
"""

from typing import Final

import msgspec

PEERS_MAX: Final = 4096


class Quota(msgspec.Struct, frozen=True):
    """What one peer may send in the long run, and how much at once."""

    datagrams_per_s: float = 1000.0
    datagrams_burst: float = 4000.0  # a message of the largest size takes 200
    bytes_per_s: float = 1e6
    bytes_burst: float = 4e6


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

    def allows(self, peer: int, size_bytes: int, now_s: float) -> bool:
        """Whether the peer may send this datagram now; counts it if so."""
        quota = self._quota
        bucket = self._buckets.pop(peer, None)
        if bucket is None:
            bucket = _Bucket(quota, now_s)
            if len(self._buckets) >= PEERS_MAX:
                del self._buckets[next(iter(self._buckets))]
        self._buckets[peer] = bucket
        elapsed_s = max(0.0, now_s - bucket.filled_s)
        bucket.filled_s = now_s
        bucket.datagrams = min(quota.datagrams_burst, bucket.datagrams + elapsed_s * quota.datagrams_per_s)
        bucket.bytes = min(quota.bytes_burst, bucket.bytes + elapsed_s * quota.bytes_per_s)
        if bucket.datagrams < 1 or bucket.bytes < size_bytes:
            return False
        bucket.datagrams -= 1
        bucket.bytes -= size_bytes
        return True
