"""One warmed JVM that answers requests with real classes, a JSON line each: what both oracles share."""

import hashlib
import json
import os
import subprocess
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.clusters.artifacts import cached, find_program
from tests.clusters.errors import StartFailedError

_BATCH = 2_000

Document = dict[str, Any]


class JvmOracle:
    """A running JVM; a context manager. ``version`` is that of the classes that answer."""

    def __init__(self, version: str, main_class: str, class_path: Sequence[Path], options: Sequence[str] = ()) -> None:
        self.version = version
        command = [find_program("java"), "-Xmx1g", "-XX:+UseSerialGC", "-Dfile.encoding=UTF-8", *options]
        self._process = subprocess.Popen(
            [*command, "-cp", os.pathsep.join(map(str, class_path)), main_class],
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
        self._process.communicate(timeout=600)

    def answers(self, requests: Iterable[Document]) -> list[Document]:
        """Return the classes' answers; ``{"error": …}`` where a class raised."""
        lines = [json.dumps(request) for request in requests]
        found: list[Document] = []
        for start in range(0, len(lines), _BATCH):
            found += self._batch(lines[start : start + _BATCH])
        return found

    def answer(self, request: Document) -> Document:
        """Return the classes' answer to one request."""
        return self._batch([json.dumps(request)])[0]

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


def compiled(jars: Sequence[Path], sources: Sequence[Path]) -> Path:
    """Return the directory of our compiled classes, made once for each content of sources and class path.

    It holds an empty folder ``logs`` for what the classes want to write.
    """
    digest = hashlib.sha256()
    for source in sources:
        digest.update(source.read_bytes())
    digest.update("\n".join(jar.name for jar in jars).encode())
    return cached("oracles", digest.hexdigest()[:16], lambda fresh: _compile(jars, sources, fresh))


def _compile(jars: Sequence[Path], sources: Sequence[Path], target: Path) -> None:
    command = [find_program("javac"), "-encoding", "UTF-8", "-proc:none", "-d", str(target)]
    run = subprocess.run(
        [*command, "-cp", os.pathsep.join(map(str, jars)), *map(str, sources)],
        capture_output=True,
        text=True,
        check=False,
    )
    if run.returncode != 0:
        raise StartFailedError(f"javac ended with {run.returncode}\n{run.stderr[:4000]}")
    (target / "logs").mkdir()
