"""The figure of the Pub/Sub ODMRP paper (section 4.1), and one that it leaves open.

Settings. 100 nodes at random places in a square of 1000 m, 20 publishers, 50 subscribers, one golf forum subscription
each; refresh every 5 s, forwarding timeout 25 s. The paper gives neither range nor radio nor rate: 200 m as it names
for 802.11, a DCF at 2 Mbit/s, one event every two seconds per publisher. Every node is a broker. Routes are set up by
advertisement, so that publishing brokers get to know all subscriptions of a type: with a question per event only those
that match answer, and there is little left to group.

That messages match 60 % of the subscriptions can mean two things, and both are run. With *mixed tastes* each
subscription matches its own 60 % of all events. With a *divided audience* 60 % of the subscriptions match every event
and the others none, which is the case that the paper describes for K-means: to keep those far from the majority apart.
A third case is ours: with *narrow tastes* each subscription matches 1 % of all events, so that many events match none.
Only there can the least constrained subscription, which lets through what no subscription wants, differ from the graph.

Runs have the paper's own behaviour, except that routes are advertised and that each publisher has its own forwarding
group: in a shared mesh without filters, every forwarder repeats every event, whatever the grouping.
"""

from collections.abc import Sequence
from functools import partial

import pandas as pd
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from roamcast.analysis.cost import breakdowns
from roamcast.analysis.measures import measure_runs
from roamcast.analysis.traces import RUN, of_kind, only_runs, read_traces
from roamcast.campaign.store import Store
from roamcast.papers.figure import Claim, Figure, Tables, Values, X, at_least, at_most, between, least
from roamcast.protocols.odmrp.parameters import AS_PUBLISHED

LEAST, GRAPH, KMEANS = "least constrained", "graph", "K-means"
FILTERING = " + filter"
DIVIDED, MIXED, NARROW = "divided audience", "mixed tastes", "narrow tastes"
FRAMES, BYTES, CHANNELS = "frames per delivery", "bytes per delivery", "channels"
_GROUPINGS = {LEAST: "least-constrained", GRAPH: "graph", KMEANS: "k-means"}
_AUDIENCE, _SELECTIVITY = "scenario.workload.audience_share", "scenario.workload.selectivity"
_TASTES: list[Tables] = [
    {_AUDIENCE: 0.6, _SELECTIVITY: 0.6},
    {_AUDIENCE: 0.0, _SELECTIVITY: 0.6},
    {_AUDIENCE: 0.0, _SELECTIVITY: 0.01},
]

PAPER_SEEDS = 30


def campaign(
    contenders: Sequence[Tables],
    grid: Tables,
    *,
    seeds: int,
    duration_s: int,
    selectivity: float,
    subscriptions: int = 1,
) -> Tables:
    """The tables of a campaign under the common settings."""
    return {
        "protocols": list(contenders),
        "seeds": seeds,
        "scenario": {
            "nodes": 100,
            "area_m": 1000,
            "duration_s": duration_s,
            "mobility": {"model": "static"},
            "workload": {
                "language": "content",
                "publishers": 20,
                "subscribers": 50,
                "subscriptions_per_node": subscriptions,
                "selectivity": selectivity,
                "rate_per_s": 0.5,
                "start_s": 12,
                "tail_s": 3,
            },
        },
        "grid": grid,
    }


def _contender(label: str, grouping: str, *, filtering: bool) -> Tables:
    chosen: Tables = {
        "name": "odmrp",
        "label": label,
        "advertisement": True,
        "shared_mesh": False,
        "grouping": grouping,
        "forwarding_filter": filtering,
    }
    return AS_PUBLISHED | chosen


def _contenders() -> list[Tables]:
    plain = [_contender(label, grouping, filtering=False) for label, grouping in _GROUPINGS.items()]
    filtering = [_contender(label + FILTERING, _GROUPINGS[label], filtering=True) for label in (GRAPH, KMEANS)]
    return plain + filtering


# -- odmrp-10: groupings -------------------------------------------------------------------------------------------


def channels_per_publisher(trace: DataFrame) -> DataFrame:
    """Per run: how many channels a publishing broker has at the end, on average."""
    told = of_kind(trace, "structure").where(f.col("category") == "channels")
    last = told.groupBy(RUN, "node").agg(f.max_by("value", "t").alias("channels"))
    return last.groupBy(RUN).agg(f.avg("channels").alias(CHANNELS)).select(RUN, CHANNELS)


def taste_of(audience_share: float, selectivity: float) -> str:
    if audience_share > 0:
        return DIVIDED
    return MIXED if selectivity > 0.1 else NARROW


def grouping_rows(session: SparkSession, store: Store) -> pd.DataFrame:
    """Frames and bytes per delivery, and channels, of every run, by grouping and taste."""
    columns = ["run_id", "protocol", "seed", "audience_share", "selectivity"]
    plan = session.createDataFrame(store.plan().select(columns))
    trace = only_runs(read_traces(session, store.trace), plan)
    measured = measure_runs(trace, names=("frames_total", "bytes_total", "delivered"))
    cost = measured.select(
        RUN,
        (f.col("frames_total") / f.col("delivered")).alias(FRAMES),
        (f.col("bytes_total") / f.col("delivered")).alias(BYTES),
    )
    found = plan.join(cost, RUN).join(channels_per_publisher(trace), RUN).toPandas()
    pairs = zip(found["audience_share"].astype(float), found["selectivity"].astype(float), strict=True)
    taste = pd.Series([taste_of(*pair) for pair in pairs], index=found.index)
    parts = [
        pd.DataFrame(
            {
                "curve": measure + ", " + taste,
                "x": found["protocol"],
                "seed": found["seed"],
                "value": found[measure].astype(float),
            }
        )
        for measure in (CHANNELS, FRAMES, BYTES)
    ]
    return pd.concat(parts, ignore_index=True)


def to_graph(values: Values) -> Values:
    """Every value as a multiple of the aggregated graph's."""
    return {curve: {x: value / course[GRAPH] for x, value in course.items()} for curve, course in values.items()}


def saved(values: Values, curve: str, x: X, baseline: X) -> float:
    """Which share of the cost at `baseline` is saved at `x`."""
    return 1 - values[curve][x] / values[curve][baseline]


def _saves(measure: str, taste: str, *, reported: str, finding: str = "") -> Claim:
    return Claim(
        f"K-means needs fewer {measure} than the aggregated graph, {taste}",
        reported=reported,
        statistic=partial(saved, curve=f"{measure}, {taste}", x=KMEANS, baseline=GRAPH),
        region=at_least(0.0),
        finding=finding,
    )


FIGURE_10 = Figure(
    id="odmrp-10",
    title="Channels and traffic by grouping",
    paper="odmrp",
    section="Section 4.1, figure 10",
    setting="Channels per publishing broker at the end, and frames and bytes of the whole run per delivery, as "
    "multiples of the aggregated graph's. Without filters at the relays, so that only the grouping decides where an "
    "event goes; and with them, for comparison. The graph and the least constrained subscription have one channel by "
    "definition.",
    quick=campaign(_contenders(), {"taste": _TASTES}, seeds=PAPER_SEEDS, duration_s=45, selectivity=0.6),
    paper_scale=campaign(_contenders(), {"taste": _TASTES}, seeds=PAPER_SEEDS, duration_s=215, selectivity=0.6),
    quick_note="15 messages per publisher instead of 100.",
    rows=grouping_rows,
    shown=to_graph,
    x_title="grouping",
    y_title="relative to the aggregated graph",
    mark="bar",
    claims=(
        _saves(FRAMES, DIVIDED, reported="less traffic"),
        _saves(BYTES, DIVIDED, reported="less traffic"),
        _saves(FRAMES, MIXED, reported="less traffic"),
        _saves(
            BYTES,
            MIXED,
            reported="less traffic",
            finding="Where every subscription takes its own 60 % of all events, nearly every event matches a member of "
            "every channel, so it travels on all of them; what the smaller channels save is less than the cost of "
            "telling all nodes who is in which.",
        ),
        Claim(
            "The graph keeps apart what the least constrained subscription merges: it needs fewer frames per delivery "
            "where many events match no subscription, narrow tastes",
            reported="a subscriber to everything causes flooding (3.4.1)",
            statistic=partial(saved, curve=f"{FRAMES}, {NARROW}", x=GRAPH, baseline=LEAST),
            region=at_least(0.0),
        ),
        Claim(
            "With filters at the relays the grouping makes little difference: frames per delivery within 2 %",
            reported="not reported",
            of_paper=False,
            statistic=partial(saved, curve=f"{FRAMES}, {DIVIDED}", x=KMEANS + FILTERING, baseline=GRAPH + FILTERING),
            region=between(-0.02, 0.02),
        ),
    ),
)


# -- odmrp-bloom: the size of filters ------------------------------------------------------------------------------

FALSE, DATA, ALL_BYTES, ARRIVED = "false positives", "event frames", "bytes in total", "delivery ratio"
BLOOM = "odmrp"
QUICK_BITS = (32, 64, 128, 256, 512)
PAPER_BITS = (16, 32, 64, 128, 256, 512, 1024, 2048)
USUAL_BITS = 256.0


def bloom_rows(session: SparkSession, store: Store) -> pd.DataFrame:
    """What filters of each size let through: events per delivery that reached a broker without a subscriber because its
    own filter matched, frames that carried events, bytes in total, and the delivery ratio."""
    plan = session.createDataFrame(store.plan().select(["run_id", "seed", "bloom_bits"]))
    trace = only_runs(read_traces(session, store.trace), plan)
    wanted = measure_runs(trace, names=("delivered", "delivery_ratio_reachable", "bytes_total"))
    parts = breakdowns(trace)
    dropped = _broken_down(parts, "dropped", "false-positive", "false_positives")
    carried = _broken_down(parts, "frames", "Data", "data_frames")
    found = plan.join(wanted, RUN).join(dropped, RUN, "left").join(carried, RUN, "left").toPandas().fillna(0.0)
    values = {
        FALSE: found["false_positives"] / found["delivered"],
        DATA: found["data_frames"],
        ALL_BYTES: found["bytes_total"],
        ARRIVED: found["delivery_ratio_reachable"],
    }
    x = found["bloom_bits"].astype(float)
    frames = [
        pd.DataFrame({"curve": curve, "x": x, "seed": found["seed"], "value": value.astype(float)})
        for curve, value in values.items()
    ]
    return pd.concat(frames, ignore_index=True)


def _broken_down(parts: DataFrame, measure: str, key: str, name: str) -> DataFrame:
    rows = parts.where((f.col("measure") == measure) & (f.col("key") == key))
    return rows.select(RUN, f.col("value").alias(name))


def to_usual_size(values: Values) -> Values:
    """Frames and bytes as multiples of those with 256 bits; false positives per delivery as they are."""
    shown = {FALSE: values[FALSE]}
    for curve in (DATA, ALL_BYTES):
        shown[curve] = {x: value / values[curve][USUAL_BITS] for x, value in values[curve].items()}
    return shown


def _bloom(bits: Sequence[int], seeds: int, duration_s: int) -> Tables:
    contender = _contender(BLOOM, "k-means", filtering=True)
    grid = {"odmrp.bloom_bits": list(bits)}
    tables = campaign([contender], grid, seeds=seeds, duration_s=duration_s, selectivity=0.05, subscriptions=2)
    tables["scenario"]["radio"] = {"model": "ideal"}  # so that only the filters decide what arrives
    return tables


FIGURE_BLOOM = Figure(
    id="odmrp-bloom",
    title="False positives and wasted frames by size of the filters",
    paper="odmrp",
    section="Section 3.3; not measured in the paper",
    setting="Two subscriptions per subscriber, each matching 5 % of all events; no collisions, K-means, filters at "
    "the relays, 4 positions per value. False positives are events that reached a broker because its own summary "
    "matched though no subscription of its does, per delivery; frames and bytes are multiples of those with 256 bits.",
    quick=_bloom(QUICK_BITS, PAPER_SEEDS, 45),
    paper_scale=_bloom(PAPER_BITS, PAPER_SEEDS, 215),
    quick_note="Five sizes, 15 messages per publisher.",
    rows=bloom_rows,
    shown=to_usual_size,
    x_title="bits per filter",
    y_title="false positives per delivery; frames, bytes over those of 256 bits",
    claims=(
        Claim(
            "Twice the size means fewer false positives: with 256 bits at most half of those with 64",
            reported="falls exponentially with the size",
            statistic=lambda values: values[FALSE][256.0] / values[FALSE][64.0],
            region=at_most(0.5),
        ),
        Claim(
            "Events need fewer frames with 256 bits than with 32",
            reported="not measured",
            of_paper=False,
            statistic=partial(saved, curve=DATA, x=256.0, baseline=32.0),
            region=at_least(0),
        ),
        Claim(
            "Whatever the size, all that is wanted arrives: the lowest delivery ratio of any size is 99.9 % or more",
            reported="errors are always false positives",
            statistic=least(lambda values: values[ARRIVED]),
            region=at_least(0.999),
        ),
    ),
)

FIGURES = (FIGURE_10, FIGURE_BLOOM)
