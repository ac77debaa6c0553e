"""SOMER with what was found to improve it."""

from roamcast.protocols.somer_plus.somer_plus import SomerPlus

__all__ = ["SomerPlus"]
