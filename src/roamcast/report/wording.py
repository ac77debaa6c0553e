"""Names and numbers as people read them."""

import math

_UNITS = {
    "mps": "m/s",
    "mbps": "Mbit/s",
    "per_s": "per s",
    "bytes": "bytes",
    "ms": "ms",
    "s": "s",
    "m": "m",
}
_MINUS = "−"
_ROUNDING = 1e-9  # of a mean: seeds that differ by less are equal


def setting_title(name: str) -> str:
    """`speed_max_mps` as `speed max (m/s)`: units are last in names. A whole path goes without its `scenario`."""
    name = name.removeprefix("scenario_")
    for suffix, unit in _UNITS.items():
        if name.endswith(f"_{suffix}"):
            return f"{name.removesuffix(f'_{suffix}').replace('_', ' ')} ({unit})"
    return name.replace("_", " ")


def setting_value(name: str, value: object) -> str:
    """`speed_max_mps` and 2 as `speed max 2 m/s`."""
    title, _, unit = setting_title(name).partition(" (")
    return f"{title} {value} {unit.rstrip(')')}".strip()


def number(value: float | None, half_width: float | None = None) -> str:
    """As many digits as the half-width justifies: two of its own; four in all without one."""
    if value is None or math.isnan(value):
        return "–"
    if half_width is None or not math.isfinite(half_width) or half_width <= _ROUNDING * abs(value):
        return _signed(f"{value:,.4g}" if abs(value) < 10_000 else f"{value:,.0f}")
    return _signed(f"{value:,.{_decimals(half_width)}f}")


def with_interval(mean: float | None, low: float | None, high: float | None) -> str:
    """`0.89 ± 0.03` if the interval is about symmetric, else `0.99 [0.84, 1.00]`."""
    if mean is None or math.isnan(mean):
        return "–"
    if low is None or high is None or not math.isfinite(high - low):  # one seed alone has no interval
        return number(mean)
    half_width = (high - low) / 2
    if half_width <= _ROUNDING * abs(mean):
        return f"{number(mean)} ± 0"
    if abs((high + low) / 2 - mean) <= half_width / 10:
        return f"{number(mean, half_width)} ± {half_width:,.{_decimals(half_width)}f}"
    return f"{number(mean, half_width)} [{number(low, half_width)}, {number(high, half_width)}]"


def percent(share: float | None) -> str:
    if share is None or math.isnan(share) or math.isinf(share):
        return "–"
    return _signed(f"{100 * share:+.{0 if abs(share) >= 0.1 else 1}f} %")


def _decimals(half_width: float) -> int:
    return max(0, 1 - math.floor(math.log10(half_width)))


def _signed(text: str) -> str:
    return text.replace("-", _MINUS)
