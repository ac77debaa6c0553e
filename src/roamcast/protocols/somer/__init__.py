"""SOMER as published: a self-organizing event routing architecture of several trees, aware of causal dependencies."""

from roamcast.protocols.somer.somer import Somer

__all__ = ["Somer"]
