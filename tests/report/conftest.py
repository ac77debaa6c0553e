"""What the tests of pages share: a browser, and small recordings."""

from collections.abc import Callable, Iterable

import pytest

from roamcast.events import event_id
from roamcast.report.replay.recordings import RecordedRun, Recording
from roamcast.trace.recorder import Recorder
from roamcast.trace.schema import Record
from roamcast.world.radio.models.ideal import Ideal
from roamcast.world.scenario import Mobility, Run, Scenario, Workload
from roamcast.world.simulator import simulate

Recorded = Callable[..., Recording]
HOSTILE = "</script><img src=x onerror=document.title='owned'>"



def recorded(rows: Iterable[Record], run: Run | None = None, run_id: str = "run-1") -> Recording:
    recorder = Recorder(run_id)
    for row in rows:
        recorder.add(row)
    known = RecordedRun(run_id) if run is None else RecordedRun(run_id, run.protocol, run.seed, run=run)
    return Recording(known, recorder.table(), [known])


@pytest.fixture(scope="session")
def record() -> Recorded:
    """A recording made of hand-written rows."""
    return recorded


@pytest.fixture(scope="session")
def line_run() -> Run:
    """Four nodes in a line, 150 m apart; the first publishes, all want everything."""
    return Run(
        protocol="flooding",
        scenario=Scenario(
            nodes=4,
            area_m=(600.0, 200.0),
            duration_s=12.0,
            mobility=Mobility(model="static", positions_m=((50, 100), (200, 100), (350, 100), (500, 100))),
            radio=Ideal(range_m=200.0),
            workload=Workload(publishers=1, selectivity=1.0, rate_per_s=1.0, start_s=2.0, tail_s=2.0),
        ),
    )


@pytest.fixture(scope="session")
def line(line_run: Run) -> Recording:
    """Its recording with one row per frame."""
    result = simulate(line_run, raw_frames=True)
    known = RecordedRun(result.recorder.run_id, line_run.protocol, line_run.seed, run=line_run)
    return Recording(known, result.recorder.table(), [known])


@pytest.fixture(scope="session")
def chain(record: Recorded) -> Recording:
    """A causal chain of three events over three nodes, a tree, a crash, and a topic that would like to be markup."""
    a, b, c = event_id(0, 1), event_id(1, 1), event_id(2, 1)
    places = ((0, 0.0, 0.0), (1, 100.0, 0.0), (2, 50.0, 80.0))
    return record(
        [
            *(Record(0.0, "position", node, x_m=x_m, y_m=y_m) for node, x_m, y_m in places),
            Record(0.0, "contact", 0, 1, value=1.0),
            Record(0.0, "contact", 1, 2, value=1.0),
            Record(0.0, "subscribed", 1, category="topics", detail="a"),
            Record(0.0, "subscribed", 2, category="topics", detail="**"),
            Record(0.5, "structure", 0, value=0.0, category="parent", detail="0"),
            Record(0.6, "structure", 1, 0, value=1.0, category="parent", detail="0"),
            Record(0.7, "structure", 2, 1, value=2.0, category="parent", detail="0"),
            Record(1.0, "published", 0, event_id=a, bytes=8, category="topics", detail="a", shortest_hops=[0, 1, 2]),
            Record(1.1, "delivered", 1, 0, a, value=0.1, hops=1, bytes=8),
            Record(1.2, "delivered", 2, 0, a, value=0.2, hops=2, bytes=8),
            Record(1.3, "published", 1, event_id=b, cause_id=a, bytes=8, category="topics", detail=HOSTILE),
            Record(1.5, "delivered", 2, 1, b, a, 0.2, 1, 8),
            Record(1.6, "published", 2, event_id=c, cause_id=b, bytes=8, category="topics", detail="c"),
            Record(2.0, "fault", 2, detail="crash"),
            Record(2.0, "contact", 1, 2, value=0.0),
            Record(2.5, "published", 0, event_id=a + 1, category="topics", detail="z", shortest_hops=[0, 1, -1]),
            Record(3.0, "fault", 2, detail="return"),
            Record(4.0, "end", count=3),
        ]
    )
