"""The oracles: event routing with perfect knowledge, the limits that real protocols are measured against."""

from roamcast.protocols.oracle.broadcast import OracleBroadcast
from roamcast.protocols.oracle.oracle import OracleTrees

__all__ = ["OracleBroadcast", "OracleTrees"]
