"""Garbage collection in Spark's Python processes."""

import gc
from functools import cache


@cache
def settle_memory() -> None:
    """Once per process: takes what is loaded out of garbage collection.

    Spark collects garbage after every task. With all of Roamcast's modules loaded, that takes longer than everything
    else around a simulation, or around measuring a file.
    """
    gc.collect()
    gc.freeze()
