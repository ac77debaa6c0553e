"""One driver at a time in a campaign.

On a local disk the operating system holds the lock and drops it with its process. Elsewhere the lock is an object that
its owner renews; one that was not renewed for a minute is taken to be left over. Two drivers that start within the
same second may both get it: no harm is done to the data (see `commits`), but runs are simulated twice.
"""

import fcntl
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from time import time
from typing import TextIO

import msgspec

from roamcast.campaign.location import StoreLocation
from roamcast.errors import ConfigurationError

LOCK = "lock"
RENEW_S = 15.0
STALE_S = 60.0


class _Holder(msgspec.Struct, frozen=True):
    owner: str
    host: str
    renewed: float  # seconds since 1970


def require_free(campaign: StoreLocation, owner: str) -> None:
    """Refuses a campaign that another driver holds now."""
    if not campaign.is_local:
        _require_no_holder(campaign, owner)
    elif (campaign.path / LOCK).exists():
        with (campaign.path / LOCK).open() as lock:
            _take(lock, campaign, fcntl.LOCK_SH)


@contextmanager
def locked(campaign: StoreLocation, owner: str) -> Iterator[None]:
    with _on_disk(campaign) if campaign.is_local else _on_object(campaign, owner):
        yield


@contextmanager
def _on_disk(campaign: StoreLocation) -> Iterator[None]:
    campaign.path.mkdir(parents=True, exist_ok=True)
    with (campaign.path / LOCK).open("w") as lock:
        _take(lock, campaign, fcntl.LOCK_EX)
        yield


def _take(lock: TextIO, campaign: StoreLocation, kind: int) -> None:
    try:
        fcntl.flock(lock, kind | fcntl.LOCK_NB)
    except OSError:
        message = f"out: {str(campaign)!r} is in use by another campaign run; wait for it or stop it"
        raise ConfigurationError(message) from None


@contextmanager
def _on_object(campaign: StoreLocation, owner: str) -> Iterator[None]:
    _require_no_holder(campaign, owner)
    ended = threading.Event()

    def renew() -> None:
        while not ended.wait(RENEW_S):
            _hold(campaign, owner)

    _hold(campaign, owner)
    thread = threading.Thread(target=renew, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        campaign.remove([LOCK])


def _require_no_holder(campaign: StoreLocation, owner: str) -> None:
    holder = _holder(campaign)
    if holder is not None and holder.owner != owner and time() - holder.renewed < STALE_S:
        raise ConfigurationError(
            f"out: {str(campaign)!r} is in use by another campaign run on {holder.host}; wait for it or stop it"
        )


def _hold(campaign: StoreLocation, owner: str) -> None:
    holder = _Holder(owner, f"{socket.gethostname()}, process {os.getpid()}", time())
    campaign.write(LOCK, msgspec.json.encode(holder))


def _holder(campaign: StoreLocation) -> _Holder | None:
    try:
        return msgspec.json.decode(campaign.read(LOCK), type=_Holder)
    except (FileNotFoundError, msgspec.MsgspecError, UnicodeDecodeError):
        return None
