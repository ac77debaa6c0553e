"""What tests share: one Spark session, started by the first that asks for it, a browser, and traces written by hand."""

import itertools
import shutil
import signal
from collections.abc import Iterator

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, settings
from playwright.sync_api import Browser, sync_playwright
from pyspark.sql import DataFrame, SparkSession

from roamcast.trace.recorder import Recorder
from roamcast.trace.schema import Record

# Tests are repeatable and do not depend on how fast the machine is.
settings.register_profile("patient", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")

# A shell that starts tests in the background lets them ignore Ctrl-C, and the programs that they start inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

_tests = itertools.count()
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with slow tests first, so that no worker is left with one of them at the end."""
    slow = {item.path for item in items if item.get_closest_marker("slow") is not None}
    items.sort(key=lambda item: item.path not in slow)


@pytest.fixture(autouse=True)
def _state_of_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Nodes of one test know nothing of those of another."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.getbasetemp() / f"state-{next(_tests)}"))


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("left out: there is no Chromium here; apt-get install chromium brings it")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    from roamcast.campaign.session import start_session

    session = start_session("local[2]", settings={"spark.sql.shuffle.partitions": "2"})
    yield session
    session.stop()


class Rows:
    """Short names for the records that the analysis reads."""

    @staticmethod
    def table(run_id: str, records: list[Record]) -> pa.Table:
        recorder = Recorder(run_id)
        for record in records:
            recorder.add(record)
        return recorder.table()

    @staticmethod
    def frame(spark: SparkSession, *tables: pa.Table) -> DataFrame:
        return spark.createDataFrame(pa.concat_tables(tables))

    @staticmethod
    def subscribed(t: float, node: int, interest: str, language: str = "intervals") -> Record:
        return Record(t, "subscribed", node, category=language, detail=interest)

    @staticmethod
    def unsubscribed(t: float, node: int, interest: str, language: str = "intervals") -> Record:
        return Record(t, "unsubscribed", node, category=language, detail=interest)

    @staticmethod
    def published(
        t: float,
        node: int,
        event: int,
        content: float | str,
        shortest: list[int] | None = None,
        cause: int | None = None,
    ) -> Record:
        number, topic = (None, content) if isinstance(content, str) else (float(content), None)
        language = "intervals" if topic is None else "topics"
        return Record(
            t,
            "published",
            node,
            event_id=event,
            cause_id=cause,
            value=number,
            bytes=10,
            category=language,
            detail=topic,
            shortest_hops=shortest,
        )

    @staticmethod
    def delivered(t: float, node: int, event: int, latency_s: float, hops: int) -> Record:
        return Record(t, "delivered", node, peer=0, event_id=event, value=latency_s, hops=hops, bytes=10)

    @staticmethod
    def ended(t: float, nodes: int) -> Record:
        return Record(t, "end", count=nodes)


@pytest.fixture(scope="session")
def rows() -> Rows:
    return Rows()
