"""Kafka's own assignor classes in one warmed JVM."""

from pathlib import Path

from tests.clusters.artifacts import Coordinate, class_path
from tests.clusters.errors import StartFailedError
from tests.oracles.jvm import Document, JvmOracle, compiled

__all__ = ["NEWEST", "OLD_CLIENT", "SERVER_STRATEGIES", "Document", "KafkaOracle"]

GROUP_ID = "org.apache.kafka"
OLD_CLIENT = "3.9.2"
NEWEST = "4.4.0"
SERVER_STRATEGIES = ("uniform", "range-server")

_HERE = Path(__file__).parent
_SHARED_SOURCES = (_HERE.parent / "java" / "Json.java", *sorted((_HERE / "java" / "client").glob("*.java")))
_SERVER_SOURCES = tuple(sorted((_HERE / "java" / "server").glob("*.java")))


class KafkaOracle(JvmOracle):
    """One JVM that answers Kafka requests with the classes of one version.

    ``with_server`` takes the group coordinator's jars too: ``uniform`` and ``range-server`` need them.
    """

    def __init__(self, version: str, *, with_server: bool = False) -> None:
        parts = ("clients", "group-coordinator") if with_server else ("clients",)
        jars = class_path("kafka-assignors", [Coordinate(GROUP_ID, f"kafka-{part}", version) for part in parts])
        classes = compiled(jars, (*_SHARED_SOURCES, *(_SERVER_SOURCES if with_server else ())))
        super().__init__(version, "KafkaOracle", (classes, *jars))

    def nanoseconds(self, request: Document, milliseconds: int = 1_000) -> int:
        """Return the median time of one call of the warmed class, in nanoseconds of processor time."""
        answer = self.answer({**request, "bench": milliseconds})
        if "error" in answer:
            raise StartFailedError(f"the oracle {self.version} could not time this: {answer['error']}")
        return int(answer["nanos"])
