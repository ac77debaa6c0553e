"""Objects that notice when they were altered: JSON and tables that carry a digest of their own content.

Trace files are named in commits, with their digests. What says which files and runs there are, the commits themselves,
the campaign's description and its plan, has nothing above it. So each of these carries its own digest: JSON as its last
member, a table in the metadata of its schema. The digest of a table covers what was read from the file, so it does not
matter where in the file a bit is wrong.

Objects of earlier versions have no digest and are read as they are.
"""

import re
from hashlib import blake2b

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from roamcast.errors import RoamcastError

_SEAL = re.compile(rb',"digest":"([0-9a-f]{32})"\}$')
_KEY = b"digest"


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
    if digest_of(inside).encode() != seal[1]:
        raise AlteredError("was altered")
    return inside


def sealed_table(table: pa.Table) -> pa.Buffer:
    """The table as Parquet, with its digest."""
    sink = pa.BufferOutputStream()
    noted = table.replace_schema_metadata({_KEY: _digest(table).encode()})
    pq.write_table(noted, sink, write_page_checksum=True)
    return sink.getvalue()


def unsealed_table(content: bytes) -> pa.Table:
    """The table as it was sealed."""
    try:
        table = pq.read_table(pa.BufferReader(content), page_checksum_verification=True)
        noted = (table.schema.metadata or {}).get(_KEY)
        if noted is not None and noted.decode() != _digest(table):
            raise AlteredError("was altered")
    except (OSError, ValueError, pa.ArrowException) as error:
        raise AlteredError(f"cannot be read: {str(error).partition(chr(10))[0]}") from None
    return table.replace_schema_metadata(None)


def _digest(table: pa.Table) -> str:
    """Of names, types and values, however the file stores them."""
    digest = blake2b(digest_size=16)
    for name in table.column_names:
        values = table[name].to_pylist()
        digest.update(msgspec.json.encode([name, str(table.schema.field(name).type), values]))
    return digest.hexdigest()
