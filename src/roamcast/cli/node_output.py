"""What `roamcast node` writes: answers and deliveries on standard output, its log on standard error.

Lines are complete when they appear, for programs that read along, and writing them never blocks the node. The log has
three formats: `text` for people, `json` for programs, and `journal`: text after the syslog level in angle brackets,
which systemd takes as its priority. `auto` is `journal` if standard error is systemd's journal, else `text`.
"""

import os
from base64 import b64encode
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import msgspec

from roamcast.cli.lines import Lines
from roamcast.doors.envelope import opened
from roamcast.errors import ConfigurationError
from roamcast.events import Event
from roamcast.live.endpoints import Endpoint
from roamcast.live.host import Failure
from roamcast.live.node import Delivery, LiveNode
from roamcast.live.notices import Level, Notice

FORMATS = ("auto", "text", "json", "journal")


class LogSettings(msgspec.Struct, frozen=True):
    level: Level = Level.INFO  # what matters less is not written
    format: str = "text"


def log_settings(level: str, form: str) -> LogSettings:
    levels = {each.name.lower(): each for each in Level}
    if level not in levels:
        raise ConfigurationError(f"--log-level: {level!r} is unknown; allowed: {', '.join(levels)}")
    if form not in FORMATS:
        raise ConfigurationError(f"--log-format: {form!r} is unknown; allowed: {', '.join(FORMATS)}")
    return LogSettings(levels[level], ("journal" if _is_journal() else "text") if form == "auto" else form)


def _is_journal() -> bool:
    """Whether systemd connected standard error to its journal."""
    try:
        here = os.fstat(2)
    except OSError:
        return False
    return os.environ.get("JOURNAL_STREAM") == f"{here.st_dev}:{here.st_ino}"


def written(notice: Notice, form: str) -> str:
    """A line of the log."""
    if form == "json":
        time = datetime.now(UTC).isoformat(timespec="milliseconds")
        level = notice.level.name.lower()
        fields = {"time": time, "level": level, "kind": notice.kind, "text": notice.text, **notice.fields}
        return msgspec.json.encode(fields).decode()
    if form == "journal":
        return f"<{notice.level.value}>{notice.text}"
    return f"roamcast: {'WARNING: ' if notice.level == Level.WARNING else ''}{notice.text}"


def shown_endpoint(endpoint: Endpoint) -> str:
    host, port = endpoint
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


class Printer:
    def __init__(self, as_json: bool, log: LogSettings, on_broken: Callable[[], object]) -> None:
        self.log = log
        self._as_json = as_json
        self._lines = Lines(1, on_broken)
        self._complaints = Lines(2, lambda: None)

    def close(self) -> None:
        self._lines.close()
        self._complaints.close()

    def held(self) -> None:
        self._print("held", {}, "waits for a line")

    def started(self, node: LiveNode) -> None:
        settings = node.settings
        security = "plain" if settings.key is None else "sealed" if settings.identity is None else "sealed and signed"
        interfaces = node.discovery.interfaces
        fields = {
            "address": settings.address,
            "protocol": settings.protocol,
            "listen": None if node.listens is None else shown_endpoint(node.listens),
            "interfaces": interfaces,
            "security": security,
        }
        places = [*interfaces, *([] if fields["listen"] is None else [fields["listen"]])]
        where = ", ".join(map(str, places)) or "no interface yet"
        text = f"node {settings.address} runs {settings.protocol} on {where}, {security}"
        self._print("started", fields, text)
        if settings.plain and settings.key is None:
            text = "no key: anyone in range can read and forge what this node sends"
            self.noticed(Notice(Level.WARNING, "plain", text))

    def published(self, event: Event, neighbours: int, awaited: str) -> None:
        """`awaited` is what the event waits for, empty if for nothing."""
        fields: dict[str, Any] = {"event_id": event.id, "time_s": event.time_s, "neighbours": neighbours}
        heard = f"{neighbours} in range" if neighbours else "no neighbour in range yet"
        if awaited:
            fields["awaited"] = awaited
            heard += f"; it waits for {awaited}"
        self._print("published", fields, f"published {event.publisher}/{event.number}: {heard}")

    def delivered(self, delivery: Delivery, then: Callable[[], object] | None = None) -> None:
        """`then` is called in another thread when the line has been written."""
        event = delivery.event
        content = msgspec.json.encode(event.content).decode()  # a peer's text may not steer the terminal
        attributes, body = opened(event.payload)
        try:
            payload = {"payload": body.decode()}
        except UnicodeDecodeError:
            payload = {"payload_base64": b64encode(body).decode()}
        fields = {
            "event_id": event.id,
            "publisher": event.publisher,
            "content": event.content,
            **payload,
            "hops": delivery.hops,
            "latency_ms": 1000 * delivery.latency_s,
            **({"again": True} if delivery.again else {}),
            **({"attributes": attributes} if attributes else {}),
        }
        said = " ".join(msgspec.json.encode(text).decode() for text in payload.values() if text)
        how = f"{delivery.hops} hops, {1000 * delivery.latency_s:.1f} ms" + (", again" if delivery.again else "")
        text = " ".join(filter(None, (f"{event.publisher}:", content, said, f"({how})")))
        self._print("delivered", fields, text, then)

    def counters(self, kind: str, node: LiveNode) -> None:
        counters = node.counters() | {"output_lost": self._lines.lost}
        shown = "; ".join(f"{name} {_shown(value)}" for name, value in counters.items() if value not in ({}, 0))
        self._print(kind, counters, f"{kind}: {shown}")

    def failed(self, failure: Failure) -> None:
        """A bug that the node has survived: on standard error, with all that is needed to report it."""
        restarts = "; the protocol starts over" if failure.restarts else ""
        datagram = f"; datagram {failure.datagram.hex()}" if failure.datagram else ""
        text = f"protocol failed: {failure.error}{restarts}{datagram}"
        self.noticed(Notice(Level.ERROR, "protocol-failed", text, {"restarts": failure.restarts}))

    def refused(self, error: ConfigurationError) -> None:
        self.noticed(Notice(Level.ERROR, "refused", " ".join(str(error).split())))

    def noticed(self, notice: Notice) -> None:
        if notice.level <= self.log.level:
            self._complaints.add(written(notice, self.log.format))

    def _print(self, kind: str, fields: dict[str, Any], text: str, then: Callable[[], object] | None = None) -> None:
        self._lines.add(msgspec.json.encode({"kind": kind, **fields}).decode() if self._as_json else text, then)


def _shown(value: Any) -> str:
    return ", ".join(f"{name} {count}" for name, count in value.items()) if isinstance(value, dict) else str(value)
