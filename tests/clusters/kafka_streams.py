"""Real Kafka Streams applications, started from one source file."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from tests.clusters.artifacts import Coordinate, class_path, find_program
from tests.clusters.kafka_load import GROUP_ID
from tests.clusters.processes import ManagedProcess, stop_together

VERSION = "4.3.1"
READY_S = 180.0
SOURCE = Path(__file__).parents[1] / "load" / "streams" / "src" / "StreamsApp.java"
_LOGGING = Coordinate("org.slf4j", "slf4j-simple", "1.7.36")
_JVM = ("-Xmx192m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn")


@contextlib.contextmanager
def streams_application(
    bootstrap: str, application: str, topic: str, directory: Path, *, protocol: str = "classic", threads: int = 2
) -> Iterator[ManagedProcess]:
    """Run a Streams application without state, its group id being ``application``, and yield once it is running."""
    jars = class_path("kafka-streams", [Coordinate(GROUP_ID, "kafka-streams", VERSION), _LOGGING])
    options = [*_JVM, "-cp", os.pathsep.join(map(str, jars))]
    arguments = [bootstrap, application, topic, str(directory / application), protocol, str(threads)]
    process = ManagedProcess(application, [find_program("java"), *options, str(SOURCE), *arguments], directory)
    process.start()
    try:
        process.wait_for_line(r"(?m)^RUNNING$", READY_S)
        yield process
    finally:
        stop_together([process], 0.0)
