"""Kafka's own assignor classes in one warmed JVM."""

import hashlib
import json
import os
import subprocess
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.clusters.artifacts import Coordinate, cached, class_path, find_program
from tests.clusters.errors import StartFailedError

GROUP_ID = "org.apache.kafka"
OLD_CLIENT = "3.9.2"
NEWEST = "4.4.0"
SERVER_STRATEGIES = ("uniform", "range-server")

_HERE = Path(__file__).parent
_SHARED_SOURCES = (_HERE.parent / "java" / "Json.java", *sorted((_HERE / "java" / "client").glob("*.java")))
_SERVER_SOURCES = tuple(sorted((_HERE / "java" / "server").glob("*.java")))
_BATCH = 2_000

Document = dict[str, Any]


class KafkaOracle:
    """One JVM that answers Kafka requests with the classes of one version.

    ``with_server`` takes the group coordinator's jars too: ``uniform`` and ``range-server`` need them.
    """

    def __init__(self, version: str, *, with_server: bool = False) -> None:
        parts = ("clients", "group-coordinator") if with_server else ("clients",)
        jars = class_path("kafka-assignors", [Coordinate(GROUP_ID, f"kafka-{part}", version) for part in parts])
        classes = _compiled(jars, (*_SHARED_SOURCES, *(_SERVER_SOURCES if with_server else ())))
        self.version = version
        self._process = subprocess.Popen(
            [
                find_program("java"),
                *("-Xmx1g", "-XX:+UseSerialGC", "-Dfile.encoding=UTF-8"),
                *("-cp", os.pathsep.join(map(str, (classes, *jars))), "KafkaOracle"),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the JVM; it ends by itself once its input is closed."""
        self._process.communicate(timeout=30)

    def answers(self, requests: Iterable[Document]) -> list[Document]:
        """Return the classes' answers, member to partitions; ``{"error": …}`` where a class raised."""
        lines = [json.dumps(request) for request in requests]
        found: list[Document] = []
        for start in range(0, len(lines), _BATCH):
            found += self._batch(lines[start : start + _BATCH])
        return found

    def answer(self, request: Document) -> Document:
        """Return the classes' answer to one request."""
        return self._batch([json.dumps(request)])[0]

    def nanoseconds(self, request: Document, milliseconds: int = 1_000) -> int:
        """Return the median time of one call of the warmed class, in nanoseconds of processor time."""
        answer = self.answer({**request, "bench": milliseconds})
        if "error" in answer:
            raise StartFailedError(f"the oracle {self.version} could not time this: {answer['error']}")
        return int(answer["nanos"])

    def _batch(self, lines: Sequence[str]) -> list[Document]:
        """Send the lines while reading, as neither side's pipe holds them all."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        sending = self._process.stdin

        def send() -> None:
            sending.write("".join(f"{line}\n" for line in lines).encode() + b"\n")
            sending.flush()

        sender = threading.Thread(target=send, daemon=True)
        sender.start()
        found: list[Document] = []
        while (line := self._process.stdout.readline()) not in {b"\n", b""}:
            found.append(json.loads(line))
        sender.join()
        if len(found) != len(lines):
            raise StartFailedError(
                f"the oracle {self.version} answered {len(found)} of {len(lines)} requests, then ended"
            )
        return found


def _compiled(jars: Sequence[Path], sources: Sequence[Path]) -> Path:
    """Return the directory of our compiled classes, made once for each content of sources and class path."""
    digest = hashlib.sha256()
    for source in sources:
        digest.update(source.read_bytes())
    digest.update("\n".join(jar.name for jar in jars).encode())
    return cached("oracles", digest.hexdigest()[:16], lambda fresh: _compile(jars, sources, fresh))


def _compile(jars: Sequence[Path], sources: Sequence[Path], target: Path) -> None:
    command = [find_program("javac"), "-encoding", "UTF-8", "-proc:none", "-d", str(target)]
    class_path_text = os.pathsep.join(map(str, jars))
    run = subprocess.run(
        [*command, "-cp", class_path_text, *map(str, sources)], capture_output=True, text=True, check=False
    )
    if run.returncode != 0:
        raise StartFailedError(f"javac ended with {run.returncode}\n{run.stderr[:4000]}")
