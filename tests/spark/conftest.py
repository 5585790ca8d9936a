"""One local Spark for all tests of this folder."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from planner.errors import OutOfReachError
from planner.orchestration.checks.java import check_java
from spark_apps.common.session import session
from tests.clusters.errors import CannotRunHereError
from tests.quick_spark import start_spark_quickly


@pytest.fixture(scope="session")
def java() -> None:
    """Nothing, on a machine with a Java that Spark can run on; every Spark started from here on is quick to start."""
    try:
        check_java()
    except OutOfReachError as error:
        raise CannotRunHereError("Java", str(error)) from error
    start_spark_quickly()


@pytest.fixture(scope="session")
def spark(java: None) -> Iterator[SparkSession]:  # noqa: ARG001
    """The apps' own session."""
    with session("tests") as running:
        yield running
