"""A trace becomes what the page plays.

Times become whole ticks since the beginning (a microsecond, coarser in very long runs), nodes and events become their
place in a list, texts their place in a table. Rows of each kind are sorted by time, so the page finds any instant by
bisection. `web/recording.js` is the other side; the names of the columns are the contract between the two:

| group | one row is | columns |
|---|---|---|
| `position` | a corner of a node's path, by node and time | `tick`, `node`, `x_m`, `y_m` |
| `contact` | a contact that begins or ends | `tick`, `a`, `b`, `up` |
| `event` | a publication | `tick`, `node`, `number`, `cause`, `value`, `text`, `bytes` |
| `delivery` | a delivery | `tick`, `node`, `event`, `latency_s`, `hops`, `shortest`, `again` |
| `missed` | a pair that was expected and never arrived | `event`, `node`, `shortest` |
| `structure` | what a node is from now on | `tick`, `node`, `peer`, `aspect`, `value`, `text` |
| `interest` | a subscription, its end, an advertisement | `tick`, `node`, `what`, `text` |
| `fault`, `dropped` | what happened to a node, what it gave up | `tick`, `node`, `event`, `text` |
| `frame` | a frame, if they are recorded one by one | `tick`, `node`, `peer`, `event`, `label`, `airtime_s` |
| `traffic` | the frames of a label in a second, otherwise | `tick`, `label`, `frames` |
| `load` | what a node sent in all, by node | `frames`, `airtime_s` |

A missing node, event or distance is -1; a missing text is 0.
"""

from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from roamcast.events import NUMBER_BITS
from roamcast.report.replay.columns import Columns, TextTable
from roamcast.report.replay.layout import laid_out
from roamcast.report.replay.recordings import Recording
from roamcast.trace.arrow import rows_of_table
from roamcast.trace.pairs import expected_pairs, subscriptions
from roamcast.trace.summary import summarise

TICK_S = 1e-6
TICKS_MAX = 2**31
NOT_KNOWN = -1
INTERESTS = ("subscribed", "unsubscribed", "advertised")

Numbers = npt.NDArray[Any]


class RecordingFacts(NamedTuple):
    """What a recording contains, for callers that want to know before they play it."""

    nodes: int
    duration_s: float
    publications: int
    deliveries: int
    missed: int
    faults: int
    structure: list[str]  # its aspects
    chains: int  # events with a cause
    raw_frames: bool
    positions: bool  # False: only contacts are known, and places are invented


class ReplayData(NamedTuple):
    packed: str
    found: RecordingFacts


def replay_data(recording: Recording) -> ReplayData:
    return _Builder(recording).build()


class _Builder:
    """Fills the columns, one kind after the other."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.trace = recording.trace
        self.columns = Columns()
        self.texts = TextTable()
        end = self._rows("end")
        times_s = self.trace["t"].to_numpy()
        self.origin_s = 0.0 if recording.known.run is not None else float(times_s.min(initial=np.inf))
        last_s = float((end["t"] if len(end) else self.trace["t"]).to_numpy().max(initial=0.0))
        self.duration_s = max(last_s - self.origin_s, TICK_S)
        self.tick_s = max(TICK_S, self.duration_s / TICKS_MAX)
        self.addresses = _addresses(self.trace, int(end["count"][0].as_py()) if len(end) else 0)
        self.published = self._rows("published")
        self.event_ids = self.published["event_id"].to_numpy()
        self.events_by_id = np.argsort(self.event_ids, kind="stable")

    def build(self) -> ReplayData:
        bounds_m, has_positions = self._positions()
        self._contacts()
        self._events()
        deliveries, missed = self._deliveries()
        aspects = self._structure()
        self._interests()
        faults = self._happenings("fault")
        self._happenings("dropped")
        labels, raw = self._frames()
        self._load()
        found = RecordingFacts(
            nodes=len(self.addresses),
            duration_s=self.duration_s,
            publications=len(self.published),
            deliveries=deliveries,
            missed=missed,
            faults=faults,
            structure=aspects,
            chains=len(self.published) - self.published["cause_id"].null_count,
            raw_frames=raw,
            positions=has_positions,
        )
        header = {
            **self._about(),
            "tick_s": self.tick_s,
            "duration_s": self.duration_s,
            "bounds_m": bounds_m,
            "has_positions": has_positions,
            "has_raw_frames": raw,
            "nodes": self.addresses.tolist(),
            "texts": self.texts.all(),
            "aspects": aspects,
            "labels": labels,
            "summary": summarise(self.trace),
        }
        return ReplayData(self.columns.packed(header), found)

    # -- what the run was ----------------------------------------------------------------------------------------

    def _about(self) -> dict[str, Any]:
        known, run = self.recording.known, self.recording.known.run
        about: dict[str, Any] = {
            "run_id": known.run_id,
            "protocol": known.protocol,
            "seed": known.seed,
            "settings": known.settings,
            "parameters": {},
            "range_m": None,
            "area_m": None,
            "partitions": [],
        }
        if run is not None:
            about["parameters"] = run.parameters
            about["range_m"] = None if run.scenario.mobility.model == "contacts" else run.scenario.radio.range_m
            about["area_m"] = run.scenario.area_m
            about["partitions"] = msgspec.to_builtins(run.scenario.partitions())
        return about

    # -- the network ---------------------------------------------------------------------------------------------

    def _positions(self) -> tuple[list[float], bool]:
        """Writes the paths; returns the rectangle (west, south, east, north) that holds them all."""
        rows = self._rows("position")
        node, tick = self._nodes(rows), self._ticks(rows)
        x_m, y_m = rows["x_m"].to_numpy(), rows["y_m"].to_numpy()
        has_positions = len(rows) > 0
        if not has_positions:
            places = self._invented()
            node, tick = np.arange(len(self.addresses)), np.zeros(len(self.addresses))
            x_m, y_m = places[:, 0], places[:, 1]
        nowhere = np.setdiff1d(np.arange(len(self.addresses)), node)
        if len(nowhere):  # live nodes that were not told where they are: in a row below the others
            margin_m = 0.1 * max(float(np.ptp(x_m)), float(np.ptp(y_m)), 10.0)
            node, tick = np.concatenate((node, nowhere)), np.concatenate((tick, np.zeros(len(nowhere))))
            x_m = np.concatenate((x_m, x_m.min() + margin_m * np.arange(len(nowhere))))
            y_m = np.concatenate((y_m, np.full(len(nowhere), y_m.min() - margin_m)))
        order = np.lexsort((tick, node))
        for name, values, kind in (("tick", tick, "uint32"), ("node", node, "uint32"), ("x_m", x_m, "float32"),
                                   ("y_m", y_m, "float32")):  # fmt: skip
            self.columns.add(f"position.{name}", values[order], kind)
        corners_x, corners_y = [float(x_m.min()), float(x_m.max())], [float(y_m.min()), float(y_m.max())]
        run = self.recording.known.run
        if has_positions and run is not None:
            corners_x += [0.0, run.scenario.area_m[0]]
            corners_y += [0.0, run.scenario.area_m[1]]
        return [min(corners_x), min(corners_y), max(corners_x), max(corners_y)], has_positions

    def _invented(self) -> npt.NDArray[np.float64]:
        rows = self._rows("contact")
        a, b = self._nodes(rows), self._nodes(rows, "peer")
        # A contact that begins at t counts until the end, and what it ended early is taken back when it ends.
        left = 1 - (rows["t"].to_numpy() - self.origin_s) / self.duration_s
        signed = np.where(rows["value"].to_numpy() > 0, left, -left)
        nodes = len(self.addresses)
        pairs, place = np.unique(np.minimum(a, b) * nodes + np.maximum(a, b), return_inverse=True)
        share = np.bincount(place, weights=signed, minlength=len(pairs))
        return laid_out(nodes, pairs // nodes, pairs % nodes, np.clip(share, 0.0, 1.0))

    def _contacts(self) -> None:
        rows = self._rows("contact")
        up = rows["value"].to_numpy() > 0
        self._write("contact", rows, a=self._nodes(rows), b=self._nodes(rows, "peer"), up=(up, "uint8"))

    # -- events --------------------------------------------------------------------------------------------------

    def _events(self) -> None:
        rows = self.published
        self._write(
            "event",
            rows,
            node=self._nodes(rows),
            number=(self.event_ids & (1 << NUMBER_BITS) - 1, "uint32"),
            cause=self._event_numbers(rows, "cause_id"),
            value=(_filled(rows, "value", float("nan")), "float64"),
            text=(self.texts.numbers(rows["detail"].to_pylist()), "uint32"),
            bytes=(_filled(rows, "bytes", 0), "uint32"),
        )

    def _deliveries(self) -> tuple[int, int]:
        """Writes deliveries and what is missing among them; returns how many of each."""
        rows = self._rows("delivered")
        event, address = self._event_numbers(rows), rows["node"].to_numpy()
        node = self._nodes(rows)
        order = np.lexsort((rows["t"].to_numpy(), node, event))
        again = np.zeros(len(rows), dtype=np.bool_)
        again[order[1:]] = (event[order[1:]] == event[order[:-1]]) & (node[order[1:]] == node[order[:-1]])
        self._write(
            "delivery",
            rows,
            node=node,
            event=event,
            latency_s=(_filled(rows, "value", float("nan")), "float32"),
            hops=(_filled(rows, "hops", NOT_KNOWN), "int16"),
            shortest=(self._shortest(event, address), "int16"),
            again=(again, "uint8"),
        )
        expected = expected_pairs(
            rows_of_table(self.published), subscriptions(rows_of_table(self._rows("subscribed", "unsubscribed")))
        )
        width = len(self.addresses)
        wanted = expected.publication * width + np.searchsorted(self.addresses, expected.node)
        absent = np.flatnonzero(~np.isin(wanted, event * width + node))
        self.columns.add("missed.event", expected.publication[absent], "int32")
        self.columns.add("missed.node", wanted[absent] % width, "uint32")
        shortest = self._shortest(expected.publication[absent], expected.node[absent])
        self.columns.add("missed.shortest", shortest, "int16")
        return len(rows), len(absent)

    def _shortest(self, event: Numbers, address: Numbers) -> npt.NDArray[np.int64]:
        """Hops of the shortest path when it was published, -1 if there was none, -2 if the trace does not tell."""
        lists = self.published["shortest_hops"]
        lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy().astype(np.int64)
        starts = np.cumsum(lengths) - lengths
        shortest = np.full(len(event), -2, dtype=np.int64)
        told = (event >= 0) & (address < lengths[event]) if len(lengths) else np.zeros(len(event), dtype=np.bool_)
        shortest[told] = pc.list_flatten(lists).to_numpy()[starts[event[told]] + address[told]]
        return shortest

    # -- what nodes are and do -----------------------------------------------------------------------------------

    def _structure(self) -> list[str]:
        rows = self._rows("structure")
        names = [name or "" for name in rows["category"].to_pylist()]
        aspects = sorted(set(names))
        place = {aspect: number for number, aspect in enumerate(aspects)}
        self._write(
            "structure",
            rows,
            node=self._nodes(rows),
            peer=self._nodes(rows, "peer"),
            aspect=(np.array([place[name] for name in names], dtype=np.int64), "uint16"),
            value=(_filled(rows, "value", 0.0), "float32"),
            text=(self.texts.numbers(rows["detail"].to_pylist()), "uint32"),
        )
        return aspects

    def _interests(self) -> None:
        rows = self._rows(*INTERESTS)
        what = np.array([INTERESTS.index(kind) for kind in rows["kind"].to_pylist()], dtype=np.int64)
        text = self.texts.numbers(rows["detail"].to_pylist())
        self._write("interest", rows, node=self._nodes(rows), what=(what, "uint8"), text=(text, "uint32"))

    def _happenings(self, kind: str) -> int:
        rows = self._rows(kind)
        text = self.texts.numbers(rows["detail"].to_pylist())
        self._write(kind, rows, node=self._nodes(rows), event=self._event_numbers(rows), text=(text, "uint32"))
        return len(rows)

    def _frames(self) -> tuple[list[dict[str, str]], bool]:
        """Writes frames one by one or per second; returns their labels and whether it was one by one."""
        rows = self._rows("frame")
        pairs = list(zip(rows["detail"].to_pylist(), rows["category"].to_pylist(), strict=True))
        place = {pair: number for number, pair in enumerate(sorted(set(pairs), key=str))}
        label = np.array([place[pair] for pair in pairs], dtype=np.int64)
        raw = len(rows) > 0 and rows["node"].null_count < len(rows)
        singly = pc.is_valid(rows["node"]).to_numpy(zero_copy_only=False)
        one, summed = rows.filter(pa.array(singly)), rows.filter(pa.array(~singly))
        self._write(
            "frame",
            one,
            node=self._nodes(one),
            peer=self._nodes(one, "peer"),
            event=self._event_numbers(one),
            label=(label[singly], "uint16"),
            airtime_s=(_filled(one, "value", 0.0), "float32"),
        )
        frames = _filled(summed, "count", 0)
        self._write("traffic", summed, label=(label[~singly], "uint16"), frames=(frames, "uint32"))
        return [{"label": name or "", "category": category or ""} for name, category in place], raw

    def _load(self) -> None:
        rows = self._rows("load")
        node, nodes = self._nodes(rows), len(self.addresses)
        for name, column, kind in (("frames", "count", "uint32"), ("airtime_s", "value", "float32")):
            weights = _filled(rows, column, 0)
            self.columns.add(f"load.{name}", np.bincount(node, weights=weights, minlength=nodes), kind)

    # -- rows into columns ---------------------------------------------------------------------------------------

    def _rows(self, *kinds: str) -> pa.Table:
        rows = self.trace.filter(pc.is_in(self.trace["kind"], value_set=pa.array(kinds)))
        return rows.sort_by("t")

    def _write(self, group: str, rows: pa.Table, **columns: "Numbers | tuple[Numbers, str]") -> None:
        self.columns.add(f"{group}.tick", self._ticks(rows), "uint32")
        for name, column in columns.items():
            values, kind = column if isinstance(column, tuple) else (column, "int32")
            self.columns.add(f"{group}.{name}", values, kind)

    def _ticks(self, rows: pa.Table) -> Numbers:
        since_s = np.clip(rows["t"].to_numpy() - self.origin_s, 0.0, self.duration_s)
        ticks: Numbers = np.round(since_s / self.tick_s)
        return ticks

    def _nodes(self, rows: pa.Table, column: str = "node") -> npt.NDArray[np.int64]:
        """Addresses as places in the list of nodes."""
        address = _filled(rows, column, NOT_KNOWN)
        return np.where(address == NOT_KNOWN, NOT_KNOWN, np.searchsorted(self.addresses, address))

    def _event_numbers(self, rows: pa.Table, column: str = "event_id") -> npt.NDArray[np.int64]:
        """Ids as places in the list of publications; an event that was never published is not known."""
        wanted = _filled(rows, column, NOT_KNOWN)
        if not len(self.event_ids):
            return np.full(len(wanted), NOT_KNOWN)
        at = np.searchsorted(self.event_ids, wanted, sorter=self.events_by_id)
        place = self.events_by_id[np.minimum(at, len(self.event_ids) - 1)]
        return np.where(self.event_ids[place] == wanted, place, NOT_KNOWN)


def _filled(rows: pa.Table, column: str, missing: float) -> Numbers:
    values: Any = rows[column]
    filled: Numbers = pc.fill_null(values, missing).to_numpy()
    return filled


def _addresses(trace: pa.Table, count: int) -> npt.NDArray[np.int64]:
    """Every node that the trace speaks of, ascending; in a simulated run also those that never did anything."""
    named = [pc.unique(trace[column].drop_null()).to_numpy() for column in ("node", "peer")]
    known = np.unique(np.concatenate((*named, np.empty(0, dtype=np.int64)))).astype(np.int64)
    return np.arange(max(1, count)) if not len(known) or known[-1] < count else known
