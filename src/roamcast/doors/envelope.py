"""What travels with an event besides its topic and payload: attributes, such as its content type or trace.

An event without attributes travels as it is, so that programs with `roamcast.Node` and clients of doors understand each
other. One with attributes is `MAGIC` and, in MessagePack, the attributes and the payload. `MAGIC` begins with a byte
that occurs neither in UTF-8 nor in MessagePack. What only looks like an envelope is a payload.

Attributes are texts: `content-type`, `traceparent`, `tracestate`, `retain`, and those of CloudEvents after `ce-`.
"""

from collections.abc import Mapping

import msgspec

from roamcast.errors import ConfigurationError

MAGIC = b"\xc1RC1"
ATTRIBUTES_MAX = 32
NAME_CHARACTERS_MAX = 64
ATTRIBUTES_CHARACTERS_MAX = 8192  # all names and values together


class _Envelope(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    attributes: dict[str, str]
    payload: bytes


_decoder = msgspec.msgpack.Decoder(_Envelope)


def wrapped(payload: bytes, attributes: Mapping[str, str]) -> bytes:
    """The payload of the event."""
    if not attributes and not payload.startswith(MAGIC):
        return payload
    mistake = _mistake(attributes)
    if mistake:
        raise ConfigurationError(f"attributes: {mistake}")
    return MAGIC + msgspec.msgpack.encode(_Envelope(dict(attributes), payload))


def opened(payload: bytes) -> tuple[dict[str, str], bytes]:
    """The attributes and the payload that was wrapped."""
    if not payload.startswith(MAGIC):
        return {}, payload
    try:
        envelope = _decoder.decode(memoryview(payload)[len(MAGIC) :])
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return {}, payload
    if _mistake(envelope.attributes):
        return {}, payload
    return envelope.attributes, envelope.payload


def _mistake(attributes: Mapping[str, str]) -> str:
    if len(attributes) > ATTRIBUTES_MAX:
        return f"{len(attributes)}; allowed: at most {ATTRIBUTES_MAX}"
    characters = 0
    for name, value in attributes.items():
        if not 0 < len(name) <= NAME_CHARACTERS_MAX or not name.isprintable():
            return f"{name[:NAME_CHARACTERS_MAX]!r} is not a name of 1 to {NAME_CHARACTERS_MAX} characters"
        if any(ord(character) < 32 or ord(character) == 127 for character in value):
            return f"{name}: has control characters"
        characters += len(name) + len(value)
    if characters > ATTRIBUTES_CHARACTERS_MAX:
        return f"{characters} characters; allowed: at most {ATTRIBUTES_CHARACTERS_MAX}"
    return ""
