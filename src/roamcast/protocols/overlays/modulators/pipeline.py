"""Modulators as pipelines of operators.

    filter(content > 30) | crop(100, 0, 0, 32, 31) | sample(5)

An event passes the operators from left to right. The text itself crosses the network and is parsed again by every
broker, so a broker runs nothing that this module has not put together.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from roamcast.errors import ConfigurationError, PeerError
from roamcast.events import Event
from roamcast.protocols.overlays.modulators.api import Modulator, Outcome
from roamcast.protocols.overlays.modulators.expression import Parser
from roamcast.protocols.overlays.modulators.grids import (
    Combine,
    Crop,
    Downsample,
    MeasureOperator,
    RunoffDepths,
    Stencil,
)
from roamcast.protocols.overlays.modulators.operator import Fate, Operator
from roamcast.protocols.overlays.modulators.operators import (
    AggregateOperator,
    Assign,
    Filter,
    Project,
    Sample,
    Transform,
    Work,
)
from roamcast.protocols.overlays.modulators.windows import Batch, Changed, Moving, Within

OPERATORS: Final[dict[str, type[Operator]]] = {
    kind.name: kind
    for kind in (
        *(Filter, Project, Crop, Sample, AggregateOperator, Transform, Assign, Work),
        *(Moving, Within, Batch, Changed),
        *(Downsample, Stencil, Combine, MeasureOperator, RunoffDepths),
    )
}
OPERATORS_MAX: Final = 16
STATE_BYTES_MAX: Final = 131_072
CONTENT_MAX: Final = 1e300  # as `fields.Real` has it

_decoder = msgspec.msgpack.Decoder(list[list[float] | bytes])


class Pipeline(Modulator):
    def __init__(self, operators: list[Operator], texts: list[str], inputs: Mapping[str, bytes]) -> None:
        self._operators = operators
        self._texts = texts  # of the operators, as they were written
        self._inputs = inputs

    def process(self, event: Event) -> Outcome:
        """The result for an event. Its publisher's signature does not cover what an operator has changed; the host
        signs in its place what it sends."""
        published = event
        for operator in self._operators:
            result = operator.apply(event)
            if isinstance(result, Fate):
                return Outcome((), is_kept=result is Fate.KEPT)
            event = result
        if isinstance(event.content, float) and not abs(event.content) <= CONTENT_MAX:
            return Outcome(())  # no event may say so
        return Outcome((event if event == published else msgspec.structs.replace(event, signature=None),))

    def cost_s(self, event: Event) -> float:
        return sum(operator.cost_s(event) for operator in self._operators)

    def least_s(self) -> float:
        return sum(operator.least_s() for operator in self._operators)

    def adopt(self, former: Modulator) -> None:
        """Operators that are the same from the beginning on keep their state: what was changed stands behind them."""
        if not isinstance(former, Pipeline) or former._inputs != self._inputs:
            return
        for place, text in enumerate(self._texts):
            if place >= len(former._texts) or former._texts[place] != text:
                break
            self._operators[place].restore(former._operators[place].state())

    def state(self) -> bytes:
        return msgspec.msgpack.encode([operator.state() for operator in self._operators])

    def restore(self, state: bytes) -> None:
        try:
            if len(state) > STATE_BYTES_MAX:
                raise ValueError(f"{len(state)} bytes")
            parts = _decoder.decode(state)
            for operator, part in zip(self._operators, parts, strict=True):
                operator.restore(part)
        except (ValueError, msgspec.MsgspecError) as error:
            raise PeerError(f"modulator: its state cannot be restored: {error}") from None


def compile_modulator(text: str, inputs: Mapping[str, bytes] | None = None) -> Pipeline:
    """The modulator that `text` describes, with no memory yet; `ConfigurationError` if it describes none."""
    parser = Parser(text, inputs)
    operators: list[Operator] = []
    texts: list[str] = []
    while not operators or parser.accept("|"):
        began = parser.token.at
        name = parser.accept(*OPERATORS)
        if name is None:
            raise parser.refusal(f"one of {', '.join(OPERATORS)} expected")
        parser.expect("(")
        operators.append(OPERATORS[name].parse(parser))
        parser.expect(")")
        texts.append(" ".join(text[began : parser.token.at].rstrip(" |").split()))
        if len(operators) > OPERATORS_MAX:
            raise ConfigurationError(f"modulator: more than {OPERATORS_MAX} operators")
    if parser.token.kind != "end":
        raise parser.refusal("'|' expected")
    return Pipeline(operators, texts, inputs or {})
