"""The radios that a scenario can name: one module each.

A module of this package defines a subclass of `Radio` with a tag. That is all: the tag becomes a value of
`scenario.radio.model` and of `--radio`, and the fields become settings.
"""

from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Union

from roamcast.world.radio.settings import Radio


def _found() -> dict[str, type[Radio]]:
    """By name, in the order of the modules' names."""
    found: dict[str, type[Radio]] = {}
    for name in sorted(module.name for module in iter_modules(__path__)):
        module = import_module(f"{__name__}.{name}")
        for kind in vars(module).values():
            if isinstance(kind, type) and issubclass(kind, Radio) and kind.__module__ == module.__name__:
                found[str(kind.__struct_config__.tag)] = kind
    return found


RADIOS = _found()

if TYPE_CHECKING:
    AnyRadio = Radio
else:
    AnyRadio = Union[tuple(RADIOS.values())]  # noqa: UP007  # what msgspec reads; X | Y cannot be made of a list
