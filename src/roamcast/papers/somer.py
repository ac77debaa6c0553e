"""SOMER's figures, those of the thesis' chapter 6; `somer_setting` says under which settings."""

from roamcast.papers import somer_itself as itself
from roamcast.papers import somer_rivals as rivals

FIGURES = (
    itself.FIGURE_6_1,
    itself.FIGURE_6_2,
    itself.FIGURE_6_3A,
    itself.FIGURE_6_3B,
    itself.FIGURE_6_4A,
    itself.FIGURE_6_4B,
    itself.FIGURE_PROCESSING,
    rivals.FIGURE_6_5,
    rivals.FIGURE_6_5_DEADLINE,
    rivals.FIGURE_6_6,
    rivals.FIGURE_6_7,
    rivals.FIGURE_6_8,
)
