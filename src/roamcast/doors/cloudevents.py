"""CloudEvents 1.0: the JSON format, and the structured and binary modes of its HTTP binding.

A CloudEvent's `subject` is the topic, its data the payload. All other attributes travel with the event. An event that
was published otherwise becomes a CloudEvent, too: its `id` is its publisher and number, its `source` the node.
https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/spec.md
"""

import base64
import binascii
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote

import msgspec

from roamcast.doors.gate import ClientEvent
from roamcast.errors import ConfigurationError

STRUCTURED = "application/cloudevents+json"
BATCH = "application/cloudevents-batch+json"
PREFIX = "ce-"
TYPE = "roamcast.event"  # of events that were not published as CloudEvents
TRACE = ("traceparent", "tracestate")  # the extension "Distributed Tracing"
_REQUIRED = ("id", "source", "type")
_NAME = re.compile(r"[a-z0-9]{1,20}")
_TRACEPARENT = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")


class Parsed(msgspec.Struct, frozen=True):
    subject: str  # empty: the request has to name the topic
    attributes: dict[str, str]
    payload: bytes


def checked_traceparent(text: str) -> str:
    """W3C Trace Context, section 3.2."""
    if not _TRACEPARENT.fullmatch(text):
        raise ConfigurationError(f"traceparent: {text[:80]!r} is not like 00-TRACE-SPAN-01 in lower case hexadecimal")
    return text


def from_structured(body: bytes) -> Parsed:
    try:
        event = msgspec.json.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigurationError(f"CloudEvent: is not JSON: {error}") from None
    if not isinstance(event, dict):
        raise ConfigurationError("CloudEvent: is not a JSON object")
    content_type = event.get("datacontenttype", "application/json")
    if "data" in event and "data_base64" in event:
        raise ConfigurationError("CloudEvent: has both data and data_base64")
    if "data_base64" in event:
        try:
            payload = base64.b64decode(event["data_base64"], validate=True)
        except (TypeError, ValueError, binascii.Error):
            raise ConfigurationError("CloudEvent: data_base64 is not base64") from None
    elif "data" not in event:
        payload = b""
    elif isinstance(event["data"], str) and not _is_json(content_type):
        payload = event["data"].encode(errors="replace")
    else:
        payload = msgspec.json.encode(event["data"])
    texts = {name: _text(name, value) for name, value in event.items() if name not in ("data", "data_base64")}
    return _parsed(texts, payload)


def from_binary(headers: Mapping[str, str], body: bytes) -> Parsed:
    texts = {}
    for name, value in headers.items():
        if name.lower().startswith(PREFIX):
            texts[name.lower()[len(PREFIX) :]] = unquote(value)
    for name in TRACE:
        if name in headers:
            texts.setdefault(name, headers[name])
    if "Content-Type" in headers:
        texts["datacontenttype"] = headers["Content-Type"]
    return _parsed(texts, body)


def to_structured(arrival: ClientEvent, network: str) -> dict[str, Any]:
    """The event as a JSON object."""
    attributes = to_attributes(arrival, network)
    content_type = attributes.get("datacontenttype")
    if not arrival.payload:
        return attributes
    try:
        text = arrival.payload.decode()
        if content_type is None:  # no content type: valid UTF-8 is text
            return {**attributes, "datacontenttype": "text/plain", "data": text}
        return {**attributes, "data": msgspec.json.decode(text) if _is_json(content_type) else text}
    except (UnicodeDecodeError, msgspec.MsgspecError, RecursionError):
        return {**attributes, "data_base64": base64.b64encode(arrival.payload).decode()}


def to_attributes(arrival: ClientEvent, network: str) -> dict[str, str]:
    """The attributes of the event as a CloudEvent."""
    event = arrival.event
    given = {name[len(PREFIX) :]: value for name, value in arrival.attributes.items() if name.startswith(PREFIX)}
    attributes = {
        "specversion": "1.0",
        "id": f"{event.publisher}/{event.number}",
        "source": f"roamcast://{network}/{event.publisher}",
        "type": TYPE,
        "time": datetime.fromtimestamp(max(0.0, min(event.time_s, 2e11)), UTC).isoformat().replace("+00:00", "Z"),
        **given,
        "subject": str(event.content),
    }
    if "content-type" in arrival.attributes:
        attributes["datacontenttype"] = arrival.attributes["content-type"]
    attributes.update({name: arrival.attributes[name] for name in TRACE if name in arrival.attributes})
    return attributes


def _parsed(texts: dict[str, str], payload: bytes) -> Parsed:
    if texts.pop("specversion", None) != "1.0":
        raise ConfigurationError("CloudEvent: specversion must be 1.0")
    for name in _REQUIRED:
        if not texts.get(name):
            raise ConfigurationError(f"CloudEvent: {name} is missing")
    for name in texts:
        if not _NAME.fullmatch(name):
            raise ConfigurationError(f"CloudEvent: {name[:40]!r} is not a name; write 1 to 20 of a to z and 0 to 9")
    if "traceparent" in texts:
        checked_traceparent(texts["traceparent"])
    subject = texts.pop("subject", "")
    attributes = {name: texts.pop(name) for name in TRACE if name in texts}
    if "datacontenttype" in texts:
        attributes["content-type"] = texts.pop("datacontenttype")
    return Parsed(subject, {**attributes, **{f"{PREFIX}{name}": value for name, value in texts.items()}}, payload)


def _text(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int):
        return str(value)
    raise ConfigurationError(f"CloudEvent: {name[:40]} is neither text nor an integer nor true or false")


def _is_json(content_type: object) -> bool:
    media = str(content_type).partition(";")[0].strip().lower()
    return media == "application/json" or media.endswith("+json")
