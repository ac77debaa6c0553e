"""Who may come in at a door, and what they may publish and subscribe.

A file of users has one user a line: `NAME:$7$ITERATIONS$SALT$HASH` is a password (PBKDF2 with SHA-512, base64; the
format of mosquitto_passwd), `NAME:$token$HASH` a token (SHA-256, hexadecimal). Tokens are long and random, so a plain
hash protects them. The file is read again when it has changed.
"""

import asyncio
import base64
import binascii
import hashlib
import hmac
import os
import secrets
from pathlib import Path

import msgspec

from roamcast.doors.settings import DoorEntry, Rights
from roamcast.errors import ConfigurationError
from roamcast.events import Content, Event
from roamcast.interests import Interest, parse_interest

ANONYMOUS = "anonymous"
EVERYBODY_ELSE = "*"
FILE_BYTES_MAX = 1 << 20
ITERATIONS = 20_000
ITERATIONS_MAX = 1_000_000
CREDENTIAL_CHARACTERS_MAX = 256
_PROVED_MAX = 256
_CHECKS_AT_A_TIME = 2


class Password(msgspec.Struct, frozen=True):
    iterations: int
    salt: bytes
    digest: bytes

    def is_right(self, password: str) -> bool:
        """Takes a while, on purpose."""
        found = hashlib.pbkdf2_hmac("sha512", password.encode(), self.salt, self.iterations, len(self.digest))
        return hmac.compare_digest(found, self.digest)


class Users(msgspec.Struct, frozen=True):
    passwords: dict[str, Password] = {}
    tokens: dict[str, str] = {}  # SHA-256 of the token -> user


def password_line(name: str, password: str) -> str:
    """A line of the file."""
    salt = secrets.token_bytes(12)
    digest = hashlib.pbkdf2_hmac("sha512", password.encode(), salt, ITERATIONS)
    return f"{_name(name)}:$7${ITERATIONS}${base64.b64encode(salt).decode()}${base64.b64encode(digest).decode()}"


def token_line(name: str, token: str) -> str:
    return f"{_name(name)}:$token${_token_digest(token)}"


def read_users(path: Path, field: str = "users") -> Users:
    try:
        if not path.is_file() or path.stat().st_size > FILE_BYTES_MAX:
            raise ConfigurationError(f"{field}: {path} is not a file of users")
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(f"{field}: cannot read {path}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise ConfigurationError(f"{field}: {path} is not text in UTF-8") from None
    users = Users()
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        name, _, secret = line.strip().partition(":")
        try:
            _add(users, _name(name), secret)
        except (ValueError, binascii.Error, ConfigurationError):
            raise ConfigurationError(
                f"{field}: {path}, line {number}: write NAME:$7$... or NAME:$token$..., as `roamcast key user` does"
            ) from None
    return users


def change_user(path: Path, name: str, line: str | None) -> None:
    """Sets or removes the user's line in the file, which only its owner can read."""
    lines: list[str] = []
    if path.exists():
        read_users(path)
        lines = path.read_text(encoding="utf-8").splitlines()
    kept = [each for each in lines if each.partition(":")[0] != _name(name)]
    if line is None and len(kept) == len(lines):
        raise ConfigurationError(f"users: {path} has no user {name!r}")
    try:
        beside = path.with_name(f"{path.name}.new")
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.writelines(f"{each}\n" for each in (*kept, *([] if line is None else [line])))
        beside.replace(path)
    except OSError as error:
        raise ConfigurationError(f"users: cannot write {path}: {error.strerror or error}") from None


def _add(users: Users, name: str, secret: str) -> None:
    empty, kind, *parts = secret.split("$")
    if empty or name == ANONYMOUS:
        raise ValueError(secret)
    if kind == "token":
        (digest,) = parts
        if len(bytes.fromhex(digest)) != 32:
            raise ValueError(digest)
        users.tokens[digest.lower()] = name
    elif kind == "7":
        iterations, salt, digest = parts
        password = Password(int(iterations), base64.b64decode(salt, validate=True), base64.b64decode(digest))
        if not 1 <= password.iterations <= ITERATIONS_MAX or not 16 <= len(password.digest) <= 64:
            raise ValueError(secret)
        users.passwords[name] = password
    else:
        raise ValueError(kind)


class Access:
    """The rules of one door."""

    def __init__(self, door: str, entry: DoorEntry, language: str) -> None:
        self._field = f"door.{door}.users"
        self._entry = entry
        self._users = Users()
        self._modified_ns = -1
        self._read()
        self._rights = {name: _rights(door, name, rights, language) for name, rights in entry.access.items()}
        self._proved: dict[bytes, str] = {}  # digests of names and passwords that were right -> user
        self._salt = secrets.token_bytes(16)
        self._checks = asyncio.Semaphore(_CHECKS_AT_A_TIME)

    async def by_password(self, name: str | None, password: str | None) -> str | None:
        """The user with this name and password; None if there is none."""
        if name is None or not self._entry.users:
            return ANONYMOUS if self._entry.lets_in_anonymous else None
        if password is None or max(len(name), len(password)) > CREDENTIAL_CHARACTERS_MAX:
            return None
        self._read()
        if self.by_token(password) == name:
            return name
        proof = hmac.digest(self._salt, f"{name}\0{password}".encode(errors="replace"), "sha256")
        if proof in self._proved:
            return name
        known = self._users.passwords.get(name)
        if known is None:
            return None
        async with self._checks:
            is_right = await asyncio.to_thread(known.is_right, password)
        if not is_right:
            return None
        if len(self._proved) >= _PROVED_MAX:
            self._proved.clear()
        self._proved[proof] = name
        return name

    def by_token(self, token: str) -> str | None:
        self._read()
        return self._users.tokens.get(_token_digest(token)) if len(token) <= CREDENTIAL_CHARACTERS_MAX else None

    def may_publish(self, user: str, content: Content) -> bool:
        allowed = self._allowed(user)
        return allowed is None or (allowed[0] is not None and allowed[0].matches(Event(1, 0.0, content)))

    def may_subscribe(self, user: str, interest: Interest) -> bool:
        allowed = self._allowed(user)
        return allowed is None or (allowed[1] is not None and allowed[1].covers(interest))

    def may_receive(self, user: str, content: Content) -> bool:
        allowed = self._allowed(user)
        return allowed is None or (allowed[1] is not None and allowed[1].matches(Event(1, 0.0, content)))

    def _allowed(self, user: str) -> tuple[Interest | None, Interest | None] | None:
        """What the user may publish and subscribe; None: everything."""
        if not self._rights:
            return None
        return self._rights.get(user) or self._rights.get(EVERYBODY_ELSE) or (None, None)

    def _read(self) -> None:
        if not self._entry.users:
            return
        path = Path(self._entry.users)
        try:
            modified_ns = path.stat().st_mtime_ns
        except OSError as error:
            raise ConfigurationError(f"{self._field}: cannot read {path}: {error.strerror or error}") from None
        if modified_ns != self._modified_ns:
            self._users = read_users(path, self._field)
            self._modified_ns = modified_ns
            self._proved = {}


def _rights(door: str, user: str, rights: Rights, language: str) -> tuple[Interest | None, Interest | None]:
    try:
        publish = parse_interest(language, rights.publish) if rights.publish else None
        subscribe = parse_interest(language, rights.subscribe) if rights.subscribe else None
    except ConfigurationError as error:
        raise ConfigurationError(f"door.{door}.access.{user}: {error}") from None
    return publish, subscribe


def _name(name: str) -> str:
    if not name or not name.isprintable() or ":" in name or len(name) > CREDENTIAL_CHARACTERS_MAX:
        raise ConfigurationError(f"user: {name[:80]!r} is not a name; write printable characters without a colon")
    return name


def _token_digest(token: str) -> str:
    return hashlib.sha256(token.encode(errors="replace")).hexdigest()
