"""The contenders of a campaign as reports show them: which are limits, and the colour of each."""

import json
from pathlib import Path

from roamcast.campaign.file import Campaign
from roamcast.protocols.catalogue import protocol_class

_PALETTE = json.loads(Path(__file__).with_name("charts").joinpath("palette.json").read_text(encoding="utf-8"))


def limits(campaign: Campaign) -> set[str]:
    """The labels of the limits."""
    return {contender.label for contender in campaign.contenders if protocol_class(contender.protocol).is_limit}


def colours(campaign: Campaign) -> dict[str, str]:
    """By label, in the order of the campaign file. Limits are grey. Colours repeat when they run out."""
    beyond = limits(campaign)
    used = {"contenders": 0, "limits": 0}
    found = {}
    for contender in campaign.contenders:
        kind = "limits" if contender.label in beyond else "contenders"
        found[contender.label] = str(_PALETTE[kind][used[kind] % len(_PALETTE[kind])])
        used[kind] += 1
    return found
