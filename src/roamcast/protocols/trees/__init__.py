"""Publish/subscribe trees: the machinery shared by all tree protocols, and the three with a single tree."""

from roamcast.protocols.trees.dsapst import Dsapst
from roamcast.protocols.trees.ps_maodv import PsMaodv
from roamcast.protocols.trees.sp_combo import SpCombo

__all__ = ["Dsapst", "PsMaodv", "SpCombo"]
