"""Real gRPC clients of RocketMQ 5, which only know a proxy."""

import os
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.clusters.artifacts import Coordinate, class_path, find_program
from tests.clusters.java_programs import program_jars
from tests.clusters.processes import ManagedProcess, stop_together

CLIENT = Coordinate("org.apache.rocketmq", "rocketmq-client-java", "5.0.8")
READY_S = 180.0
"""A limit against hanging only: a busy machine takes its time."""
SOURCES = Path(__file__).parents[1] / "load" / "grpc" / "src"
_JVM = ("-Xmx192m", "-Xss512k", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto")


@dataclass
class GrpcConsumerProcess:
    """One process with one push consumer a group."""

    process: ManagedProcess = field(repr=False)

    def await_ready(self, timeout_s: float = READY_S) -> None:
        """Return once every consumer has started; raise StartFailedError with the log tail otherwise."""
        self.process.wait_for_line(r"(?m)^READY$", timeout_s)

    @property
    def consumed(self) -> int:
        """Messages that its listeners have finished, as of its last second."""
        counts = re.findall(r"(?m)^CONSUMED (\d+)$", self.process.output())
        return int(counts[-1]) if counts else 0

    def kill(self) -> None:
        """Crash it (SIGKILL): the proxy keeps its messages and lists it for 120 s more."""
        self.process.kill()


class GrpcLoad:
    """Starts gRPC consumers at one proxy; ``stop`` ends all that still run."""

    def __init__(self, endpoints: str, directory: Path) -> None:
        self.endpoints = endpoints
        self._directory = directory
        self.processes: list[ManagedProcess] = []

    def start_consumers(
        self, topics: Mapping[str, str], *, service_ms: int = 5, wait_ready: bool = True
    ) -> GrpcConsumerProcess:
        """Start one process with a push consumer of each group (group -> its topic), four threads each."""
        name = f"grpc-{next(iter(topics))}"
        directory = Path(tempfile.mkdtemp(prefix=f"load-{name}-", dir=self._directory))
        argv = grpc_consumer(self.endpoints, topics, service_ms=service_ms, home=str(directory))
        process = ManagedProcess(name, argv, directory)
        self.processes.append(process)
        process.start()
        consumers = GrpcConsumerProcess(process)
        if wait_ready:
            consumers.await_ready()
        return consumers

    def stop(self) -> None:
        """End every client that still runs. Killed: one that closes waits for its long polling, 20 s."""
        stop_together(self.processes, 0.0)


def grpc_consumer(endpoints: str, topics: Mapping[str, str], *, service_ms: int, home: str) -> list[str]:
    """Return the command of a process with a push consumer of each group (group -> its topic).

    Raises as ``rocketmq_load.compiled`` does.
    """
    jars = program_jars("program-grpc", sorted(SOURCES.rglob("*.java")), class_path("rocketmq-grpc-client", [CLIENT]))
    program = [find_program("java"), *_JVM, f"-Duser.home={home}", "-cp", os.pathsep.join(map(str, jars))]
    groups = (f"{group}={topic}" for group, topic in topics.items())
    return [*program, "dev.consumerplanner.load.grpc.GrpcConsumers", endpoints, str(service_ms), *groups]
