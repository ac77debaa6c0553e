"""The campaign's answer in a few lines: for each thing that may count, who is to be chosen at how many places."""

from typing import NamedTuple

import pandas as pd

from roamcast.campaign.file import Campaign
from roamcast.report.decisions import QUESTIONS, decisions

SHOWN_MAX = 3


class RankedProtocol(NamedTuple):
    """One contender, as one thing counts."""

    name: str
    among: int  # the places at which it may be the best
    alone: int  # the places at which it has won


class Answer(NamedTuple):
    question: str
    places: int
    standings: list[RankedProtocol]  # the foremost
    others: int  # how many more may be the best somewhere


def answers(campaign: Campaign, plan: pd.DataFrame, runs: pd.DataFrame) -> list[Answer]:
    """One per question; none where there is nothing to decide."""
    found = decisions(campaign, plan, runs)
    told = []
    for measure, question in QUESTIONS.items():
        choices = [decision.choices[measure] for decision in found if measure in decision.choices]
        names = dict.fromkeys(name for choice in choices for name in choice.names)
        standings = [
            RankedProtocol(
                name,
                sum(name in choice.names for choice in choices),
                sum(choice.names == [name] for choice in choices),
            )
            for name in names
        ]
        standings.sort(key=lambda each: (-each.among, -each.alone))
        if standings:
            shown = standings[:SHOWN_MAX]
            told.append(Answer(question, len(choices), shown, len(standings) - len(shown)))
    return told
