"""The tables that measures are computed from, for one run.

`pairs`: one row per publication and node that was expected or arrived.

| column | meaning |
|---|---|
| `expected` | whether the node should have received it (`roamcast.trace.pairs`) |
| `arrivals` | its `delivered` rows |
| `shortest` | hops of the shortest path when it was published, -1 if none or unknown; absent if not expected |
| `latency_s`, `hops` | of its first delivery; absent if it did not arrive |
| `published_s` | when it was published; absent if it never was |
| `utility` | what its receipt was worth (`roamcast.trace.utility`), 0 if it did not arrive |
| `utility_max` | the most that it could be worth; both absent if not expected or without a curve |

`loads`: one row per node that sent something, with sums over its `load` rows: `airtime_s`, `bytes`, `frames`.

`graphs`: one row per causal graph (`roamcast.trace.chains`).

`startup`: the `frame` rows of the whole seconds before the first publication; none if nothing was published.

Any kind of trace rows, such as `published` or `frame`: these rows, with the trace's columns (`roamcast.trace.schema`).

The *first* delivery of a pair is its `delivered` row with the smallest t, among these the one with the fewest hops.
Deliveries of events that were never published are pairs too, unexpected ones.

`roamcast.analysis.relations` yields the same tables from many runs with Spark.
"""

from collections.abc import Callable
from math import floor, inf
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from roamcast.trace.chains import causal_graphs
from roamcast.trace.columns import Booleans, ColumnValues, Floats, Integers, Rows, rows_of_packed
from roamcast.trace.pairs import expected_pairs, subscriptions
from roamcast.trace.recorder import Recorder
from roamcast.trace.utility import Points, parse_utility

if TYPE_CHECKING:
    import pyarrow as pa

COLUMNS: dict[str, dict[str, tuple[str, ...]]] = {
    "pairs": {
        "published": ("t", "node", "event_id", "value", "category", "detail", "shortest_hops", "utility"),
        "delivered": ("t", "node", "event_id", "value", "hops"),
        "subscribed": ("t", "node", "category", "detail"),
        "unsubscribed": ("t", "node", "category", "detail"),
    },
    "loads": {"load": ("node", "value", "bytes", "count")},
    "graphs": {"published": ("t", "event_id", "cause_id", "count"), "waited": ("event_id", "value")},
    "startup": {"published": ("t",), "frame": ("t", "value", "category")},
}
"""What each derived relation is made of: kinds of trace rows, and their columns."""

LOAD_COLUMNS = {"airtime_s": "value", "bytes": "bytes", "frames": "count"}


class TraceRelations:
    """The relations of one run, each made when it is first asked for."""

    def __init__(self, rows: Callable[[tuple[str, ...]], Rows]) -> None:
        self._rows = rows  # the trace rows of these kinds
        self._made: dict[str, Rows] = {}

    @classmethod
    def of_recorder(cls, recorder: Recorder) -> "TraceRelations":
        """Of what was recorded so far."""
        packed = recorder.packed()
        return cls(lambda kinds: rows_of_packed(packed, kinds))

    @classmethod
    def of_trace(cls, trace: "pa.Table") -> "TraceRelations":
        """Of a table with all rows of a run."""
        from roamcast.trace.arrow import rows_of_table

        rows = rows_of_table(trace)
        kinds = rows["kind"]
        names = kinds.texts or ()

        def of(wanted: tuple[str, ...]) -> Rows:
            places = np.isin(kinds.values, [place for place, name in enumerate(names) if name in wanted])
            return rows_of_table(trace.filter(places))

        return cls(of)

    def __call__(self, name: str) -> Rows:
        if name not in self._made:
            derived = {
                "pairs": self._pairs, "loads": self._loads, "graphs": self._graphs, "startup": self._startup
            }  # fmt: skip
            self._made[name] = derived[name]() if name in derived else self._rows((name,))
        return self._made[name]

    def _pairs(self) -> Rows:
        published = self("published")
        periods = subscriptions(self._rows(("subscribed", "unsubscribed")))
        delivered = self._rows(("delivered",))  # not kept: in a large network, deliveries are most of the trace
        return met_pairs(published, delivered, expected_pairs(published, periods))

    def _loads(self) -> Rows:
        load = self("load")
        nodes, places = np.unique(load.numbers("node"), return_inverse=True)
        return Rows.of({
            name: ColumnValues(np.bincount(places, load.numbers(column), len(nodes)).astype(load.numbers(column).dtype))
            for name, column in LOAD_COLUMNS.items()
        })  # fmt: skip

    def _graphs(self) -> Rows:
        return causal_graphs(self("published"), self("waited"))

    def _startup(self) -> Rows:
        published_s, frames = self("published").numbers("t"), self("frame")
        first_s = floor(published_s.min()) if len(published_s) else -inf
        return frames.taken(np.flatnonzero(frames.numbers("t") < first_s))


def met_pairs(published: Rows, delivered: Rows, expected: Any) -> Rows:
    """The relation `pairs`: expected pairs beside what arrived. Expected ones come first, by publication and node."""
    first = _first_deliveries(delivered, published)
    shortest = _shortest_hops(published, expected)
    # Both lists are ascending and without repetition, so each expected pair finds its delivery by bisection.
    width = 1 + int(max(expected.node.max(initial=0), first.node.max(initial=0)))
    keys = np.where(first.publication >= 0, first.publication * width + first.node, -1)
    wanted = expected.publication * width + expected.node
    at = _narrow(np.searchsorted(keys, wanted))
    arrived = np.zeros(len(wanted), dtype=np.bool_)
    inside = at < len(keys)
    arrived[inside] = keys[at[inside]] == wanted[inside]
    del wanted, inside
    unexpected = np.ones(len(keys), dtype=np.bool_)
    unexpected[at[arrived]] = False
    del keys
    which = np.concatenate((np.where(arrived, at, 0), np.flatnonzero(unexpected)))  # 0 stands for none
    is_expected = np.zeros(len(which), dtype=np.bool_)
    is_expected[: len(arrived)] = True
    has_arrived = np.concatenate((arrived, np.ones(len(which) - len(arrived), dtype=np.bool_)))
    del at, arrived
    publication = np.concatenate((expected.publication, first.publication[unexpected]))
    published_s = _taken(published.numbers("t"), publication)
    latency_s = _taken(first.latency_s, which)
    utility, utility_max = _utilities(published, publication, latency_s, has_arrived, is_expected)
    shortest = np.concatenate((shortest, np.zeros(int(unexpected.sum()), shortest.dtype)))
    return Rows.of({
        "expected": ColumnValues(is_expected),
        "arrivals": ColumnValues(np.where(has_arrived, _taken(first.arrivals, which), 0)),
        "shortest": ColumnValues(shortest, is_expected),
        "latency_s": ColumnValues(latency_s, has_arrived),
        "hops": ColumnValues(_taken(first.hops, which), has_arrived),
        "published_s": ColumnValues(published_s, publication >= 0),
        "utility": utility,
        "utility_max": utility_max,
    })  # fmt: skip


class _FirstDeliveries(NamedTuple):
    """The first delivery of each pair that arrived, by publication and node, both ascending."""

    publication: Integers  # its place among the `published` rows, -1 for events that were never published
    node: Integers
    arrivals: Integers
    latency_s: Floats
    hops: Integers


def _first_deliveries(delivered: Rows, published: Rows) -> _FirstDeliveries:
    publication = _places(delivered.numbers_once("event_id"), published.numbers("event_id"))
    node = delivered.numbers_once("node")
    order = _by_pair(publication, node)
    if order is not None:
        publication, node = publication[order], node[order]
        once = np.broadcast_to(np.int64(1), len(order))
        latency_s = delivered.numbers_once("value")[order]
        return _FirstDeliveries(publication, node, once, latency_s, delivered.numbers_once("hops")[order])
    event, t, hops, latency_s = (delivered.numbers_once(name) for name in ("event_id", "t", "hops", "value"))
    order = np.lexsort((hops, t, node, event, publication))
    event, node = event[order], node[order]
    is_first = np.ones(len(order), dtype=np.bool_)
    is_first[1:] = (event[1:] != event[:-1]) | (node[1:] != node[:-1])
    starts = np.flatnonzero(is_first)
    arrivals = np.diff(np.append(starts, len(order)))
    order, node = order[starts], node[starts]
    publication = publication[order]
    by_pair = np.lexsort((node, publication))
    order = order[by_pair]
    return _FirstDeliveries(publication[by_pair], node[by_pair], arrivals[by_pair], latency_s[order], hops[order])


def _places(event: Integers, published_events: Integers) -> Integers:
    """For each event its place among the published ones, -1 if it is not among them."""
    by_event = np.argsort(published_events, kind="stable")
    place = np.searchsorted(published_events, event, sorter=by_event)
    if not len(by_event):
        return np.full(len(event), -1, dtype=np.int64)
    publication = by_event[np.minimum(place, len(by_event) - 1)]
    del place
    publication[published_events[publication] != event] = -1
    return publication


def _by_pair(publication: Integers, node: Integers) -> Integers | None:
    """Fast path: the order by pair if every pair arrived once and was published; else none."""
    if not len(node) or publication.min() < 0:
        return None
    keys = publication * (int(node.max()) + 1) + node
    order = _narrow(np.argsort(keys, kind="stable"))
    keys = keys[order]
    return None if (keys[1:] == keys[:-1]).any() else order


def _shortest_hops(published: Rows, pairs: Any) -> Integers:
    """For each pair the length of the shortest path when it was published, -1 if there was none or it is unknown."""
    lists = published["shortest_hops"]
    assert lists.elements is not None
    lengths = lists.values.astype(np.int64)
    starts = np.cumsum(lengths) - lengths
    shortest = np.full(len(pairs.node), -1, dtype=lists.elements.dtype)
    known = pairs.node < lengths[pairs.publication]
    shortest[known] = lists.elements[starts[pairs.publication[known]] + pairs.node[known]]
    return shortest


def _utilities(
    published: Rows,
    publication: Integers,
    latency_s: Floats,
    has_arrived: Booleans,
    is_expected: Booleans,
) -> tuple[ColumnValues, ColumnValues]:
    """What each receipt was worth and could have been worth at most."""
    count = len(publication)
    curves = published["utility"]
    if curves.texts is None or not curves.is_present.any():
        none = ColumnValues(np.broadcast_to(0.0, count), np.broadcast_to(np.bool_(False), count))
        return none, none
    codes = _taken(np.where(curves.is_present, curves.values.astype(np.int64), -1), publication)
    utility, most = np.zeros(count), np.zeros(count)
    carries = np.zeros(count, dtype=np.bool_)
    for code in np.unique(codes[codes >= 0]).tolist():
        points = parse_utility(curves.texts[code])
        if not points:
            continue
        mine = is_expected & (codes == code)
        carries |= mine
        most[mine] = max(value for _, value in points)
        met = mine & has_arrived
        utility[met] = worth(points, latency_s[met])
    return ColumnValues(utility, carries), ColumnValues(most, carries)


def worth(points: Points, ages_s: Floats) -> Floats:
    """What a receipt at each of these ages is worth by a curve."""
    knots_s = np.array([age_s for age_s, _ in points])
    worths = np.array([value for _, value in points])
    after = np.searchsorted(knots_s, ages_s, side="left")  # points at a lower age
    before = np.clip(after - 1, 0, len(knots_s) - 1)
    at = np.clip(after, 0, len(knots_s) - 1)
    span_s = knots_s[at] - knots_s[before]
    share = np.divide(ages_s - knots_s[before], span_s, out=np.zeros_like(ages_s), where=span_s > 0)
    inside = worths[before] + share * (worths[at] - worths[before])
    return np.asarray(np.where(after == 0, worths[0], np.where(after == len(knots_s), worths[-1], inside)))


def _narrow(values: Any) -> Any:
    """Indices of 32 bits instead of 64, where that is enough."""
    return values.astype(np.int32) if len(values) < 2**31 - 1 else values


def _taken(values: Any, places: Integers) -> Any:
    """The values at these places; where there are none, or the place is -1, anything."""
    return values[places] if len(values) else np.zeros(len(places), dtype=values.dtype)
