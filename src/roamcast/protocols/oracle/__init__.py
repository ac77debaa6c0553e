"""The oracle: event routing with perfect knowledge, the limit that real protocols are measured against."""

from roamcast.protocols.oracle.oracle import OracleTrees

__all__ = ["OracleTrees"]
