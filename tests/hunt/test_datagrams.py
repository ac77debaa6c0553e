"""Forged, replayed, truncated, expired and wrong-key datagrams: none is accepted, none raises, memory stays flat.

`make fuzz` sends 10 million of them.
"""

import os
import resource

from roamcast.hunt.datagrams import Storm
from roamcast.live.codec import DropReason

DATAGRAMS = int(os.environ.get("ROAMCAST_DATAGRAMS", "22000"))
GROWTH_MAX_KIB = 16_384


def test_a_storm_is_dropped_for_the_right_reasons_and_memory_stays_flat() -> None:
    storm = Storm(1)
    storm.blow(11_000)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    reasons = storm.blow(DATAGRAMS)
    assert reasons.total() == DATAGRAMS
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < GROWTH_MAX_KIB
    found: dict[str, set[DropReason]] = {}
    for kind, reason in reasons:
        found.setdefault(kind, set()).add(reason)
    assert found["replayed"] == found["former life"] == {DropReason.REPLAYED}
    assert found["wrong key"] == found["another's name"] == {DropReason.FORGED}
    assert found["unsigned"] <= {DropReason.UNSIGNED, DropReason.FORGED}
    assert found["uncertified"] == {DropReason.UNKNOWN_SENDER}
    assert (found["expired"], found["revoked"]) == ({DropReason.EXPIRED}, {DropReason.REVOKED})
    assert found["noise"] <= {DropReason.UNSEALED, DropReason.FOREIGN_VERSION, DropReason.FOREIGN_NETWORK}
    assert found["truncated"] <= {DropReason.UNSEALED, DropReason.FORGED}
    assert len(found) == 11
