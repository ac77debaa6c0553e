"""Every tunable is a parameter of its protocol, within its range, and not what it is anyway."""

import pytest

from roamcast.advise.candidates import TUNABLES, Candidate, candidate, candidates
from roamcast.errors import ConfigurationError
from roamcast.protocols.catalogue import PROTOCOLS, protocol_parameters


def test_tunables_are_accepted_and_change_something() -> None:
    for protocol, parameters in TUNABLES.items():
        defaults = protocol_parameters(protocol, {})
        for name, values in parameters.items():
            for value in values:
                assert getattr(protocol_parameters(protocol, {name: value}), name) != getattr(defaults, name)


def test_every_protocol_that_can_be_deployed_takes_part_as_it_comes_and_tuned() -> None:
    found = candidates()
    deployable = {name for name, kind in PROTOCOLS.items() if not kind.is_limit}
    assert {each.protocol for each in found} == deployable == set(TUNABLES)
    assert {each.label for each in found if not each.parameters} == set(TUNABLES)
    assert len({each.label for each in found}) == len(found)


def test_some_protocols_only() -> None:
    assert [each.label for each in candidates(["flooding", "flooding"])] == [
        "flooding",
        "flooding jitter_s=0.002",
        "flooding jitter_s=0.05",
    ]


def test_what_cannot_be_deployed_or_is_unknown_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="'oracle' runs in the simulator only"):
        candidates(["oracle"])
    with pytest.raises(ConfigurationError, match="'swallows' is unknown"):
        candidates(["swallows"])


def test_a_candidate_is_an_entry_of_a_campaign_and_options_of_a_command() -> None:
    tuned = candidate("odmrp", {"mobility_prediction": "true", "route_wait_s": "0.25"})
    assert tuned == Candidate(
        "odmrp mobility_prediction=true route_wait_s=0.25", "odmrp", {"mobility_prediction": True, "route_wait_s": 0.25}
    )
    assert tuned.entry["name"] == "odmrp"
    assert tuned.settings == ["--set", "mobility_prediction=true", "--set", "route_wait_s=0.25"]
