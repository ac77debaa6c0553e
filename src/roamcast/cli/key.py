"""`roamcast key`: the key file that the members of a network share (`live/keys.py`), its authority
(`live/authority.py`) and the identities of its nodes (`live/identity.py`)."""

import secrets
import sys
import time
from base64 import b64decode, b64encode
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from roamcast.cli.output import console, print_json
from roamcast.doors.access import change_user, password_line, token_line
from roamcast.errors import ConfigurationError
from roamcast.live.authority import Authority, new_authority
from roamcast.live.identity import PUBLIC_BYTES, Certificate, Statement, new_identity, read_identity
from roamcast.live.keys import KeyRing, fingerprint, new_ring, read_ring, write_ring
from roamcast.live.secret_files import read_secret, write_secret

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="Make and change the key of a live network; certify and revoke members.",
)

AsJson = Annotated[bool, typer.Option("--json", help="Answer with one JSON object.")]
File = Annotated[Path, typer.Argument(help="The key file.")]


@app.command()
def new(
    file: File,
    network: Annotated[str, typer.Option(help="The network's name, as in roamcast node --network.")] = "roamcast",
    shared: Annotated[
        bool, typer.Option("--shared", help="Without an authority: members are not told apart and trust each other.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Make the key of a new network, and its authority.

    FILE goes to every node, by a channel you trust. The authority is a second file, with the ending .authority; it
    stays with you, and says who is a member (roamcast key certify).

    Example: roamcast key new rescue.key --network rescue
    """
    if file.suffix == ".authority":
        raise ConfigurationError(f"key: {file}: this ending is that of the authority's file")
    authority = None if shared else new_authority(network)
    ring = new_ring(network, time.time(), None if authority is None else authority.public)
    if authority is not None and not file.exists():
        write_secret(file.with_suffix(".authority"), authority, "authority")
    write_ring(file, ring)
    _tell(file, ring, as_json)


@app.command()
def identity(
    file: Annotated[Path, typer.Argument(help="The identity file of this node.")],
    certificate: Annotated[
        Path | None, typer.Option(help="Put this certificate, made by roamcast key certify --public, into the file.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Make a node's identity on the node itself, so that its secret never travels.

    Give the public key that this prints to the authority, which makes a certificate of it. The address of the node
    follows from its key.
    """
    if certificate is None:
        found = new_identity()
        write_secret(file, found, "identity")
    else:
        statement = read_secret(certificate, Statement, "certificate", "a certificate")
        found = msgspec.structs.replace(read_identity(file), certificate=statement)
        write_secret(file, found, "identity", replace=True)
    public = b64encode(found.public).decode()
    if as_json:
        print_json({"file": str(file), "address": found.address, "public": public})
    else:
        console().print(f"{file}: node {found.address}, public key {public}", highlight=False)


@app.command()
def certify(
    authority: Annotated[Path, typer.Argument(help="The authority's file.")],
    file: Annotated[Path, typer.Argument(help="The identity file; it is made if there is none.")],
    public: Annotated[
        str | None, typer.Option(help="Certify this public key instead; FILE becomes the certificate.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="For people. [default: the file's name]")] = None,
    days: Annotated[float, typer.Option(help="How long the certificate is valid.")] = 365.0,
    publish: Annotated[
        list[str] | None,
        typer.Option(help="What it may publish, as an interest; repeatable. [default: anything]"),
    ] = None,
    subscribe: Annotated[
        list[str] | None,
        typer.Option(help="What it may subscribe to, as an interest; repeatable. [default: anything]"),
    ] = None,
    modulates: Annotated[
        bool, typer.Option("--modulates", help="It may change events, as a broker that runs modulators does.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Certify a node: make its identity, or renew the certificate of one that it has.

    Example: roamcast key certify rescue.authority alice.node --days 30 --publish 'fire/**'
    """
    if not 0 < days <= 36_500:
        raise ConfigurationError(f"--days = {days:g}: must be above 0 and at most 36500")
    ruler = _read_authority(authority)
    found = None if public is not None else read_identity(file) if file.exists() else new_identity()
    now_s = int(time.time())
    certificate = Certificate(
        network=ruler.network,
        public=_public_key(public or "") if found is None else found.public,
        name=name or file.stem,
        issued_s=now_s,
        expires_s=now_s + round(days * 86_400),
        publishes=None if publish is None else tuple(publish),
        subscribes=None if subscribe is None else tuple(subscribe),
        modulates=modulates,
    )
    ruler, statement = ruler.certified(certificate)
    if found is None:
        write_secret(file, statement, "certificate")
    else:
        write_secret(file, msgspec.structs.replace(found, certificate=statement), "identity", replace=True)
    write_secret(authority, ruler, "authority", replace=True)
    fields = {
        "file": str(file),
        "address": certificate.address,
        "name": certificate.name,
        "expires": _when(certificate.expires_s),
    }
    if as_json:
        print_json(fields)
    else:
        console().print("{file}: node {address}, certified until {expires}".format(**fields), highlight=False)


@app.command()
def revoke(
    authority: Annotated[Path, typer.Argument(help="The authority's file.")],
    file: Annotated[Path, typer.Argument(help="The network's key file, which gets the revocation.")],
    node: Annotated[str, typer.Argument(help="Address or name of the node that is no member any more.")],
    as_json: AsJson = False,
) -> None:
    """Revoke a node. Copy the key file to some nodes and send each a SIGHUP: they tell all others.

    A revoked node still has the network's key and can read along until roamcast key rotate has changed it.
    """
    ruler, told = _read_authority(authority).revoked(node, time.time())
    ring = read_ring(file)
    if ring.authority != ruler.public:
        raise ConfigurationError(f"revoke: {authority} is not the authority of {file}")
    write_secret(authority, ruler, "authority", replace=True)
    ring = msgspec.structs.replace(ring, revoked=tuple(told))
    write_ring(file, ring, replace=True)
    _tell(file, ring, as_json)


@app.command()
def rotate(
    file: File,
    after_s: Annotated[float, typer.Option("--after", help="Seconds until nodes send with the new key.")] = 86_400.0,
    as_json: AsJson = False,
) -> None:
    """Add a key that comes into use later. Copy the file to every node before then, and send each node a SIGHUP.

    Nodes accept the keys before it as well, so no frame is lost on the way. The oldest key goes with the second
    rotation after its own.
    """
    if not 0 <= after_s <= 10 * 365 * 86_400:
        raise ConfigurationError(f"--after = {after_s:g}: must be between 0 s and ten years")
    ring = read_ring(file).rotated(time.time() + after_s)
    write_ring(file, ring, replace=True)
    _tell(file, ring, as_json)


@app.command()
def show(file: File, as_json: AsJson = False) -> None:
    """Show what a key file holds, without its secrets."""
    _tell(file, read_ring(file), as_json)


def _read_authority(path: Path) -> Authority:
    return read_secret(path, Authority, "authority", "an authority")


def _public_key(text: str) -> bytes:
    try:
        public = b64decode(text, validate=True)
    except ValueError:
        public = b""
    if len(public) != PUBLIC_BYTES:
        raise ConfigurationError(f"--public: {text!r} is not a public key as roamcast key identity prints it")
    return public


def _when(time_s: float) -> str:
    return datetime.fromtimestamp(time_s, UTC).isoformat(timespec="seconds")


@app.command()
def user(
    file: Annotated[Path, typer.Argument(help="The file of users of a door; it is made if there is none.")],
    name: Annotated[str, typer.Argument(help="The user's name.")],
    token: Annotated[
        bool, typer.Option("--token", help="A token instead of a password; it is made and shown once.")
    ] = False,
    remove: Annotated[bool, typer.Option("--remove", help="Forget the user.")] = False,
    as_json: AsJson = False,
) -> None:
    """Add a user of a node's doors, or change the password.

    The password is the first line of standard input. Files of mosquitto_passwd are understood, too.

    Example: roamcast key user clients.users alice
    """
    secret = ""
    if remove:
        line = None
    elif token:
        secret = secrets.token_urlsafe(24)
        line = token_line(name, secret)
    else:
        line = password_line(name, _password())
    change_user(file, name, line)
    if as_json:
        print_json({"file": str(file), "user": name, **({"token": secret} if secret else {})})
    elif secret:
        typer.echo(secret)
    else:
        console().print(f"{file}: {'forgot' if remove else 'knows'} {name}", highlight=False)


def _password() -> str:
    password: str = typer.prompt("Password", hide_input=True) if sys.stdin.isatty() else sys.stdin.readline()
    if not password.strip("\r\n"):
        raise ConfigurationError("password: is empty; write it as the first line of standard input")
    return password.strip("\r\n")


def _tell(file: Path, ring: KeyRing, as_json: bool) -> None:
    sending = ring.sending(time.time())
    keys: list[dict[str, Any]] = [
        {
            "id": key.id,
            "fingerprint": fingerprint(key.secret),
            "sends_from": _when(key.sends_from_s),
            "in_use": key is sending,
        }
        for key in ring.keys
    ]
    if as_json:
        authority = None if ring.authority is None else fingerprint(ring.authority)
        members = {"authority": authority, "revoked": len(ring.revoked)}
        print_json({"file": str(file), "network": ring.network, "keys": keys, **members})
        return
    console().print(f"{file}: network {ring.network!r}", highlight=False)
    for key in keys:
        use = "in use" if key["in_use"] else "accepted"
        console().print(
            f"  key {key['id']}  {key['fingerprint']}  sends from {key['sends_from']}  {use}", highlight=False
        )
    if ring.authority is None:
        console().print("  no authority: members are not told apart", highlight=False)
    else:
        revoked = f", {len(ring.revoked)} revoked" if ring.revoked else ""
        console().print(f"  authority  {fingerprint(ring.authority)}{revoked}", highlight=False)
