"""Objects that notice when they were altered: JSON and tables that carry a digest of their own content.

Trace files are named in commits, with their digests. What says which files and runs there are, the commits themselves,
the campaign's description and its plan, has nothing above it. So each of these carries its own digest: JSON as its last
member, a Parquet file in its metadata, where zeros stand while the digest of the file is taken.

Objects of earlier versions have no digest and are read as they are. What looks like a digest is taken for one even if a
bit of it is wrong.
"""

import re
from hashlib import blake2b

import pyarrow as pa
import pyarrow.parquet as pq

from roamcast.errors import RoamcastError

_SEAL = re.compile(rb',"(.{6})":"(.{32})"\}$', re.DOTALL)
_TABLE_KEY = b"digest-of-this-file"
_TABLE_SEAL = re.compile(_TABLE_KEY + rb"\x18 (.{32})", re.DOTALL)  # as Parquet writes a text of 32 bytes
_TABLE_SIGNS = (_TABLE_KEY[:10], _TABLE_KEY[10:])  # one wrong bit leaves one of them
_UNSEALED = b"0" * 32


class AlteredError(RoamcastError):
    """An object does not have the content with which it was written."""


def digest_of(content: bytes | memoryview) -> str:
    return blake2b(content, digest_size=16).hexdigest()


def sealed_json(content: bytes) -> bytes:
    """A JSON object with its digest as one more member."""
    return content[:-1] + b',"digest":"' + digest_of(content).encode() + b'"}'


def unsealed_json(content: bytes) -> bytes:
    """The JSON object as it was sealed."""
    seal = _SEAL.search(content)
    if seal is None:
        return content
    inside = content[: seal.start()] + b"}"
    if seal[1] != b"digest" or digest_of(inside).encode() != seal[2]:
        raise AlteredError("was altered")
    return inside


def sealed_table(table: pa.Table) -> bytes:
    """The table as Parquet, with its digest."""
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, table.schema, write_page_checksum=True, store_schema=False) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({_TABLE_KEY.decode(): _UNSEALED.decode()})
    content = sink.getvalue().to_pybytes()
    [seal] = _TABLE_SEAL.finditer(content)
    return _with_seal(content, seal, digest_of(content).encode())


def unsealed_table(content: bytes) -> pa.Table:
    """The table as it was sealed."""
    if any(sign in content for sign in _TABLE_SIGNS):
        seals = list(_TABLE_SEAL.finditer(content))
        if len(seals) != 1 or digest_of(_with_seal(content, seals[0], _UNSEALED)).encode() != seals[0][1]:
            raise AlteredError("was altered")
    try:
        table = pq.read_table(pa.BufferReader(content), page_checksum_verification=True)
    except (OSError, ValueError, pa.ArrowException) as error:
        raise AlteredError(f"cannot be read: {str(error).partition(chr(10))[0]}") from None
    return table.replace_schema_metadata(None)


def _with_seal(content: bytes, seal: re.Match[bytes], digest: bytes) -> bytes:
    return content[: seal.start(1)] + digest + content[seal.end(1) :]
