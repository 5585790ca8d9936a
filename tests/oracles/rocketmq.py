"""RocketMQ's own strategy classes in one warmed JVM, and the examples' classes beside them."""

from pathlib import Path

from tests.clusters.artifacts import Coordinate, class_path
from tests.oracles.jvm import Document, JvmOracle, compiled

__all__ = ["CLIENT_VERSIONS", "SERVER_VERSION", "Document", "RocketMQOracle"]

GROUP_ID = "org.apache.rocketmq"
CLIENT_VERSIONS = ("4.9.8", "5.5.0")
SERVER_VERSION = "5.5.0"

_HERE = Path(__file__).parent
_ROOT = _HERE.parent.parent
_SOURCES = (
    *sorted((_HERE / "java").glob("*.java")),
    *sorted((_ROOT / "examples" / "java").rglob("*.java")),
)


class RocketMQOracle(JvmOracle):
    """One JVM that answers allocation requests with the classes of one client version.

    ``with_server`` takes the broker's jars, which hold the client's too: POP requests need them.
    """

    def __init__(self, version: str, *, with_server: bool = False) -> None:
        parts = ("namesrv", "broker", "tools") if with_server else ("client",)
        kind = "rocketmq-server" if with_server else "rocketmq-client"
        jars = class_path(kind, [Coordinate(GROUP_ID, f"rocketmq-{part}", version) for part in parts])
        classes = compiled(jars, _SOURCES)
        logs = classes / "logs"
        quiet = ("-Drocketmq.client.logUseSlf4j=true", f"-Duser.home={logs}", f"-Drocketmq.client.logRoot={logs}")
        super().__init__(version, "AllocationOracle", (classes, *jars), ("-XX:TieredStopAtLevel=4", *quiet))
