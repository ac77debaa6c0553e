"""How papers draw their values: shapes turn raw curves into shown ones, and small statistics for claims."""

from collections.abc import Sequence

from roamcast.papers.figure import Shape, Statistic, Values, X


def to_minimum(values: Values) -> Values:
    """Each curve as multiples of its own smallest value."""
    return {curve: {x: value / min(course.values()) for x, value in course.items()} for curve, course in values.items()}


def to_smallest_of_all(values: Values) -> Values:
    """All curves as multiples of the smallest value that any of them has."""
    smallest = min(value for course in values.values() for value in course.values())
    return {curve: {x: value / smallest for x, value in course.items()} for curve, course in values.items()}


def index_to_worst(values: Values) -> Values:
    """For costs: at each x, how many times better than the worst curve (1 is the worst)."""
    worst: dict[X, float] = {}
    for course in values.values():
        for x, value in course.items():
            worst[x] = max(worst.get(x, value), value)
    return {curve: {x: worst[x] / value for x, value in course.items()} for curve, course in values.items()}


def gain_over(baseline: str, label: str = "gain") -> Shape:
    """For costs, of the only other curve: which share of the baseline's cost it saves."""

    def shape(values: Values) -> Values:
        (other,) = (course for curve, course in values.items() if curve != baseline)
        return {label: {x: 1 - other[x] / values[baseline][x] for x in other}}

    return shape


def saving(values: Values, curve: str, baseline: str, x: X) -> float:
    """Which share of the baseline's cost the curve saves at x."""
    return 1 - values[curve][x] / values[baseline][x]


def excess(curve: str, x: X, reference: Sequence[X]) -> Statistic:
    """How much higher the curve is at x than on average over the references, as a share of the latter."""

    def statistic(values: Values) -> float:
        middle = sum(values[curve][place] for place in reference) / len(reference)
        return values[curve][x] / middle - 1

    return statistic


def mean_saving(values: Values, curve: str, baseline: str) -> float:
    """Which share of the baseline's cost a curve saves, on average over x."""
    return sum(saving(values, curve, baseline, x) for x in values[curve]) / len(values[curve])


def growing_saving(values: Values, curve: str, baseline: str) -> float:
    """By how much the saving at the largest x exceeds that at the smallest."""
    least, most = min(values[curve], key=float), max(values[curve], key=float)
    return saving(values, curve, baseline, most) - saving(values, curve, baseline, least)


def excesses(values: Values, curve: str, baseline: str) -> dict[X, float]:
    """By which share the curve exceeds the baseline, over x."""
    return {x: value / values[baseline][x] - 1 for x, value in values[curve].items()}


def mean_lead(values: Values, curve: str, baseline: str) -> float:
    """How much higher the curve is than the baseline, on average over x."""
    return sum(value - values[baseline][x] for x, value in values[curve].items()) / len(values[curve])


def pairwise_excesses(values: Values, curve: str) -> dict[tuple[X, X], float]:
    """By which share each value of a curve exceeds each other one."""
    course = values[curve]
    return {(x, y): course[x] / course[y] - 1 for x in course for y in course if x != y}
