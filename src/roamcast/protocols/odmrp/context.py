"""The context of Pub/Sub ODMRP as bytes: questions in Join Requests, summaries in Join Tables.

Many nodes read the same context, in the simulator all of them; so what was read is cached.
"""

from functools import lru_cache
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from roamcast.errors import PeerError
from roamcast.protocols.odmrp.packed import JoinQuestion, PackedEntry
from roamcast.protocols.odmrp.summaries import Family, SummaryEntry

QUESTIONS_MAX: Final = 64
ENTRIES_MAX: Final = 128
_CACHED: Final = 1 << 12

_encode = msgspec.msgpack.Encoder().encode
_questions: Final[Any] = msgspec.msgpack.Decoder(
    Annotated[tuple[JoinQuestion, ...], Meta(max_length=QUESTIONS_MAX)]
)
_entries: Final[Any] = msgspec.msgpack.Decoder(
    Annotated[tuple[PackedEntry, ...], Meta(max_length=ENTRIES_MAX)]
)


def questions_as_context(questions: list[JoinQuestion]) -> bytes:
    return _encode(tuple(questions))


@lru_cache(_CACHED)
def questions_in(context: bytes) -> tuple[JoinQuestion, ...]:
    """The questions of a Join Request; none if the context makes no sense."""
    try:
        found: tuple[JoinQuestion, ...] = _questions.decode(context)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return ()
    return found


@lru_cache(_CACHED)
def entries_in(family: Family, context: bytes) -> tuple[SummaryEntry, ...]:
    """The summary of a member; `PeerError` if the context makes no sense."""
    try:
        packed: tuple[PackedEntry, ...] = _entries.decode(context)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise PeerError(f"summary: {error}") from None
    return tuple([family.unpacked(each) for each in packed])
