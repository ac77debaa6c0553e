"""A consumer's function for its events, as it travels to a broker."""

from typing import Annotated

import msgspec
from msgspec import Meta

SOURCE_CHARACTERS_MAX = 65_536
INPUT_BYTES_MAX = 98_304
INPUTS_MAX = 4

InputName = Annotated[str, Meta(max_length=64)]
InputBytes = Annotated[bytes, Meta(max_length=INPUT_BYTES_MAX)]


class Modulation(msgspec.Struct, frozen=True, array_like=True):
    """What a broker shall do to the events of one subscription. `roamcast.protocols.overlays.modulators` explains the
    languages. An empty source passes events on as they are."""

    source: Annotated[str, Meta(max_length=SOURCE_CHARACTERS_MAX)] = ""
    # Static data that the function uses beside the events, by name, such as a terrain.
    inputs: Annotated[tuple[tuple[InputName, InputBytes], ...], Meta(max_length=INPUTS_MAX)] = ()

    @property
    def size_bytes(self) -> int:
        return len(self.source) + sum(len(data) for _, data in self.inputs)


PLAIN = Modulation()
"""Passes events on as they are."""
