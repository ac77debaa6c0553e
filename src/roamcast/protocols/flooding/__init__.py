"""Flooding and gossip: the smallest protocols, and the ones to read first."""

from roamcast.protocols.flooding.flooding import Flooding
from roamcast.protocols.flooding.gossip import Gossip

__all__ = ["Flooding", "Gossip"]
