"""Forged, replayed, truncated, expired and wrong-key datagrams: none is accepted, none raises, memory stays flat.

`make fuzz` sends 10 million of them.
"""

import os
import resource

from roamcast.hunt.datagrams import Storm
from roamcast.live.codec import Drop

DATAGRAMS = int(os.environ.get("ROAMCAST_DATAGRAMS", "22000"))
GROWTH_MAX_KIB = 16_384


def test_a_storm_is_dropped_for_the_right_reasons_and_memory_stays_flat() -> None:
    storm = Storm(1)
    storm.blow(11_000)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    reasons = storm.blow(DATAGRAMS)
    assert reasons.total() == DATAGRAMS
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < GROWTH_MAX_KIB
    found: dict[str, set[Drop]] = {}
    for kind, reason in reasons:
        found.setdefault(kind, set()).add(reason)
    assert found["replayed"] == found["former life"] == {Drop.REPLAYED}
    assert found["wrong key"] == found["another's name"] == {Drop.FORGED}
    assert found["unsigned"] <= {Drop.UNSIGNED, Drop.FORGED}
    assert found["uncertified"] == {Drop.UNKNOWN_SENDER}
    assert (found["expired"], found["revoked"]) == ({Drop.EXPIRED}, {Drop.REVOKED})
    assert found["noise"] <= {Drop.UNSEALED, Drop.FOREIGN_VERSION, Drop.FOREIGN_NETWORK}
    assert found["truncated"] <= {Drop.UNSEALED, Drop.FORGED}
    assert len(found) == 11
