"""What an operator decides about doors: the table `[door]` of a node's configuration file.

    [door.mqtt]
    listen = "127.0.0.1:1883"
    users = "clients.users"

    [door.mqtt.access.alice]
    publish = "fire/**"
    subscribe = "**"

Without `users` everybody who reaches the door is `anonymous`. Without any `access` everybody who is let in may publish
and subscribe everything; with it, a user may do what the entry of that name says, else what the entry `"*"` says.
"""

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from roamcast.errors import ConfigurationError
from roamcast.live.endpoints import is_loopback, parse_endpoint

PORTS = {"mqtt": 1883, "http": 8080, "metrics": 9464}
COLLECTOR = "http://127.0.0.1:4318/v1/traces"

Count = Annotated[int, Meta(ge=1, le=1_000_000)]


class Rights(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a user may do: interests in the node's language. Empty: nothing."""

    publish: str = ""
    subscribe: str = ""


class DoorEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Who may come in at a door, and how many."""

    listen: str = ""  # HOST:PORT; empty: the usual port, on loopback
    users: str = ""  # a file of names and passwords or tokens (`roamcast key user`)
    anonymous: bool | None = None  # whether clients without a name are let in; None: if there is no file of users
    access: dict[str, Rights] = {}
    clients: Count = 64  # at a time; more are refused
    queue: Count = 1000  # events that wait for one slow client; then the oldest is dropped

    @property
    def lets_in_anonymous(self) -> bool:
        return not self.users if self.anonymous is None else self.anonymous


class MqttEntry(DoorEntry, frozen=True, forbid_unknown_fields=True, kw_only=True):
    retained: Count = 1000  # retained messages that are kept; then the oldest is dropped
    broker: str = ""  # HOST:PORT of a broker that you run and that is bridged; empty: the door is a broker itself
    user: str = ""  # of that broker
    password_file: str = ""  # a file that holds only the user's password at that broker
    topics: tuple[str, ...] = ("#",)  # what of the network goes to that broker, as MQTT topic filters


class HttpEntry(DoorEntry, frozen=True, forbid_unknown_fields=True, kw_only=True):
    origins: list[str] = []  # web pages of these origins may use the door, as in "https://map.example"
    hosts: list[str] = []  # names under which it may be asked for, besides loopback and its own address


class TracingEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    endpoint: str = COLLECTOR  # of a collector that takes OTLP over HTTP; "console": standard error
    share: Annotated[float, Meta(ge=0, le=1)] = 1.0  # of the traces that begin here and are recorded


class DoorSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """None: that door is closed."""

    mqtt: MqttEntry | None = None
    http: HttpEntry | None = None
    metrics: HttpEntry | None = None
    tracing: TracingEntry | None = None

    @property
    def is_empty(self) -> bool:
        return self == DoorSettings()


def door_settings(table: Mapping[str, Any]) -> DoorSettings:
    """What the table `[door]` says. A door may also be `true`, or where it listens."""
    unknown = [name for name in table if name not in DoorSettings.__struct_fields__]
    if unknown:
        allowed = ", ".join(DoorSettings.__struct_fields__)
        raise ConfigurationError(f"door: {unknown[0][:40]!r} is unknown; allowed: {allowed}")
    plain = {name: _table(name, value) for name, value in table.items() if value is not False}
    try:
        settings = msgspec.convert(plain, DoorSettings)
    except msgspec.ValidationError as error:
        raise ConfigurationError(f"door: {error}") from None
    for name in PORTS:
        entry = getattr(settings, name)
        if entry is not None and not (isinstance(entry, MqttEntry) and entry.broker):
            _require_caution(name, entry)
    return settings


def endpoint(name: str, entry: DoorEntry) -> tuple[str, int]:
    """Where a door listens."""
    return parse_endpoint(f"door.{name}.listen", entry.listen or f"127.0.0.1:{PORTS[name]}")


def _table(name: str, value: Any) -> Any:
    if value is True:
        return {}
    if isinstance(value, str):
        return {"endpoint" if name == "tracing" else "listen": value}
    return value


def _require_caution(name: str, entry: DoorEntry) -> None:
    if not entry.users and entry.anonymous is None and not is_loopback(endpoint(name, entry)):
        raise ConfigurationError(
            f"door.{name}.listen: {entry.listen!r} can be reached from other machines, and anybody may come in; "
            "name a file of users, or allow it with anonymous = true"
        )
