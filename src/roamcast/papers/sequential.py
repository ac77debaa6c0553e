"""When a figure has enough seeds: looks at growing samples, with intervals that hold at all looks together.

`reproduce` simulates seeds in rounds until every claim is decided or the paper's number of runs is reached. Looking
several times and stopping at a convenient look is wrong more often than looking once. So the looks are fixed before the
first run: after 8, 16, 32, ... seeds up to the paper's number. The 5 % by which an interval may miss is divided equally
among them (an alpha-spending rule of Pocock's kind, by Bonferroni's inequality, so it assumes nothing about how the
looks depend on each other). The intervals of one claim at all looks then contain the true value *together* with
probability 95 %, and so does their intersection. Two things follow:

- a claim's interval is the intersection of those at all looks so far, so a verdict, once reached, stays, unless later
  seeds show that a look was wrong: if the estimate leaves the intersection, the last interval stands alone;
- a rule that stops for any reason, also an impatient user, keeps the 95 %.

The promise is per claim, not for all claims of a figure at once. An interval without width, which a statistic has that
came out the same whichever seed is left out, decides nothing before the last look: it says that the seeds agree, not
how far others could differ.

Not everything goes on. After a look only those points of the campaign get more seeds that an undecided claim needs
(`needs`). A claim about the least or the largest of several values, as "at every size" is, needs only those values that
do not yet lie where the claim wants them, and that can still decide it. So small networks, which differ most from each
other, get more seeds than large ones, where the answer is clear. This changes no promise: at each of its looks a claim
has the same seeds for all that it is computed from, the intervals of one value at all its looks contain its true value
together, wherever it stops, and those of several values are combined as `estimate` says.

Each look depends on its own seeds alone. A figure that was interrupted, or run again with more seeds, comes to the same
verdicts as one that was not. `tests/papers/test_sequential.py` measures the coverage on synthetic data.
"""

from collections.abc import Sequence
from typing import NamedTuple

from roamcast.analysis.intervals import look_confidence

FIRST_LOOK = 8
GROWTH = 2
LAST_STEP = 1.5
"""The last look comes at least this factor after the one before; else it replaces it."""


class LookPlan(NamedTuple):
    """The seeds of a figure in order, and after how many of them there is a look."""

    seeds: tuple[int, ...]
    looks: tuple[int, ...]

    @property
    def confidence(self) -> float:
        """Of the interval at each look."""
        return look_confidence(len(self.looks))

    def within(self, most: int | None) -> tuple[int, ...]:
        """The looks that a user's limit on seeds leaves; at least the first, which it may cut short."""
        if most is None:
            return self.looks
        return tuple(look for look in self.looks if look <= most) or (min(most, self.looks[0]),)

    def rounds(self, most: int | None = None) -> list[tuple[int, ...]]:
        """The seeds that each look adds to those before."""
        ends = self.within(most)
        return [self.seeds[start:end] for start, end in zip((0, *ends), ends, strict=False)]


def planned(seeds: Sequence[int]) -> LookPlan:
    """The looks at up to all of these seeds."""
    most = len(seeds)
    looks = [min(FIRST_LOOK, most)]
    while looks[-1] < most:
        looks.append(min(looks[-1] * GROWTH, most))
    if len(looks) > 1 and looks[-1] < LAST_STEP * looks[-2]:
        del looks[-2]
    return LookPlan(tuple(seeds), tuple(looks))
