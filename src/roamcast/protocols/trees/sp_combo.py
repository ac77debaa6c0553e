"""SP-COMBO: one tree in which a node weighs distance from the root against the events its interest would add.

What is from where
------------------
From the papers: Huang and Garcia-Molina's SHOPPARENT builds the tree greedily, each node picking the candidate that
scores best. Pei's thesis (sections 4.2.2 and 6.2.4) describes the combined metric as the candidate's level times the
predicted publication overhead, and notes that the rates of publication must be known beforehand.

Our reconstruction, since the paper's own formulas are not at hand: how overhead is reckoned and found out is in
`appraisals.py`. The score is (level + 1) times overhead, lowest wins; without the added one the root would always win.
All else is as in PS-MAODV, settings included.
"""

from typing import Any, ClassVar

from mypy_extensions import mypyc_attr

from roamcast.protocols import api
from roamcast.protocols.trees.messages import Appraisal, Appraised, TreeMessages
from roamcast.protocols.trees.parameters import SpComboParameters
from roamcast.protocols.trees.ps_maodv import SingleTree


@mypyc_attr(allow_interpreted_subclasses=True)
class SpCombo(SingleTree):
    name: ClassVar[str] = "sp-combo"
    summary: ClassVar[str] = "one tree whose nodes weigh distance against publication overhead (SHOPPARENT)"
    Parameters: ClassVar[type[api.Parameters]] = SpComboParameters
    messages: ClassVar[Any] = TreeMessages | Appraisal | Appraised
