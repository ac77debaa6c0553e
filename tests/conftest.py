"""One Spark session for all tests, started by the first one that asks for it."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    from roamcast.campaign.session import start_session

    session = start_session("local[2]", settings={"spark.sql.shuffle.partitions": "2"})
    yield session
    session.stop()
