"""Demands and objectives as users write them."""

import pytest

from roamcast.advise.demands import SHORT_NAMES, Demand, parse_demand, parse_objective, short_name
from roamcast.errors import ConfigurationError
from roamcast.trace.measures import MEASURES


def test_a_demand_is_a_bound_on_a_measure() -> None:
    assert parse_demand("delivery>=0.95") == Demand("delivery_ratio", ">=", 0.95)
    assert parse_demand(" latency_p95 <= 200 ") == Demand("latency_ms_p95", "<=", 200.0)
    assert parse_demand("within(250ms)>=0.9") == Demand("within_250ms", ">=", 0.9)
    assert parse_demand("within( own ) >= 0.9") == Demand("within_own", ">=", 0.9)
    assert parse_demand("frames_total<=1e4") == Demand("frames_total", "<=", 10_000.0)


def test_a_capacity_is_delivery_at_a_rate() -> None:
    demand = parse_demand("capacity>=2.5")
    assert demand == Demand("delivery_ratio", ">=", 0.95, 2.5)
    assert (demand.key, str(demand)) == ("delivery_ratio@2.5", "capacity >= 2.5 per s")
    assert short_name(demand.key) == "delivery at 2.5 per s"


def test_its_margin_is_positive_inside_the_bound() -> None:
    assert parse_demand("delivery>=0.5").margin(0.75) == 0.25
    assert parse_demand("latency<=10").margin(30) == -20


def test_it_reads_as_it_was_written_with_its_unit() -> None:
    assert str(parse_demand("delivery>=0.95")) == "delivery >= 0.95"
    assert str(parse_demand("latency<=200")) == "latency <= 200 ms"
    assert str(parse_demand("within(1s)>=0.5")) == "within(1s) >= 0.5"


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("delivery", "write it as in"),
        ("delivery>0.9", "write it as in"),
        ("delivery>=", "write it as in"),
        ("speed>=3", "'speed' is not a measure; allowed: delivery,"),
        ("delivery>=much", "'much' in 'delivery>=much' is not a number"),
        ("delivery>=nan", "finite"),
        ("delivery>=inf", "finite"),
        ("delivery>=90", "asks for 90, but delivery is a share from 0 to 1; write 0.9 for 90 %"),
        ("within(250ms)>=1.5", "a share from 0 to 1"),
        ("within(3h)>=0.9", "'within(3h)' is not a measure; allowed: delivery,"),
        ("latency<=-1", "latency is never below 0"),
        ("latency_common_ms_mean<=10", "is not a measure"),
        ("capacity>=0", "write capacity>=2 for two events per second"),
        ("capacity<=3", "write capacity>=2 for two events per second"),
    ],
)
def test_nonsense_is_refused_in_one_line(text: str, part: str) -> None:
    with pytest.raises(ConfigurationError) as refusal:
        parse_demand(text)
    assert part in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_costs_can_be_minimised_and_gains_maximised() -> None:
    assert parse_objective("airtime", None) == "airtime_per_delivery_ms"
    assert parse_objective("latency_ms_p99", None) == "latency_ms_p99"
    assert parse_objective(None, "within(250ms)") == "within_250ms"
    assert parse_objective(None, None) == "delivery_ratio"
    with pytest.raises(ConfigurationError, match="lower is better; allowed: latency,"):
        parse_objective("fairness", None)
    with pytest.raises(ConfigurationError, match="higher is better; allowed: delivery,"):
        parse_objective(None, "airtime")
    with pytest.raises(ConfigurationError, match="not a measure"):
        parse_objective("money", None)
    with pytest.raises(ConfigurationError, match="only one"):
        parse_objective("airtime", "delivery")


def test_short_names_lead_to_measures_and_back() -> None:
    for short, measure in SHORT_NAMES.items():
        assert measure in MEASURES
        assert short_name(measure) == short
    assert short_name("frames_total") == "frames_total"
