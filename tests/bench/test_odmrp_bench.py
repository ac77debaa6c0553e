"""The broker's benchmark: that it measures what it says. The figures themselves are for an idle machine."""

from roamcast.bench.odmrp import measure


def test_measures_a_broker() -> None:
    figures = measure(subscriptions=500, events=100, selectivity=0.1)
    assert figures.subscriptions == 500
    assert 40 < figures.hits_per_digest < 120  # one subscription in ten, and false positives on top
    assert 0 <= figures.false_positive_share < 0.5
    assert figures.digests_per_s > 1000
    assert figures.evaluation_us < figures.first_evaluation_us
