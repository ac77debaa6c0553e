"""Random parameters of a protocol, within what is allowed.

A number moves by a factor of up to four from its default, a choice takes another value, a switch is thrown. What the
parameters refuse, by itself or together with the others, is not taken.
"""

from typing import Any, Literal, get_args, get_origin, get_type_hints

from roamcast.errors import ConfigurationError
from roamcast.protocols.catalogue import protocol_class, protocol_parameters
from roamcast.seeds import Random

CHANGED_SHARE = 0.2  # of the parameters
FIXED = frozenset({"brokers", "cell_side_m"})
"""Texts with a grammar of their own, such as lists of addresses; and a length that must fit the radio: nodes leave
cells that are far smaller than its range all the time."""


def draw_parameters(random: Random, protocol: str, given: dict[str, Any]) -> dict[str, Any]:
    """`given` with some parameters changed."""
    kind = protocol_class(protocol).Parameters
    hints = get_type_hints(kind)
    chosen = dict(given)
    for field in kind.__struct_fields__:
        if random.random() >= CHANGED_SHARE or field in FIXED:
            continue
        default = getattr(protocol_parameters(protocol, chosen), field)
        tried = {**chosen, field: _changed(random, default, hints[field])}
        try:
            protocol_parameters(protocol, tried)
        except ConfigurationError:
            continue
        chosen = tried
    return chosen


def _changed(random: Random, default: Any, hint: Any) -> Any:
    if isinstance(default, bool):
        return not default
    if get_origin(hint) is Literal:
        return random.choice(get_args(hint))
    if isinstance(default, int):
        return max(0, round((default or 1) * 4.0 ** random.uniform(-1.0, 1.0)))
    if isinstance(default, float):
        return float(f"{(default or 0.1) * 4.0 ** random.uniform(-1.0, 1.0):.4g}")
    return default
