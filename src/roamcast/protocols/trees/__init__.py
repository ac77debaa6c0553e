"""Publish/subscribe trees: the machinery shared by all tree protocols, and the three with a single tree."""

from roamcast.protocols.trees.ps_maodv import PsMaodv

__all__ = ["PsMaodv"]
