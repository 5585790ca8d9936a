"""The worst that each door of the planner can be fed, and what that costs: ``python -m tests.doors NAME``.

Prints one line of JSON: the error's type and sentence, the peak of the resident memory in MiB. Each runs in a process
of its own, as only so its memory can be told.
"""

import json
import re
import resource
import socket
import sys
import threading
import zlib
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

from planner.bounded import MOST_BYTES
from planner.errors import PlannerError

MIB = 1024 * 1024
GUARD = 6 * 1024 * MIB
"""A door that is open must end its own process, not the machine."""


def prometheus(body: bytes, encoding: str) -> None:
    """Ask a server that answers everything with this body."""
    from planner.sources.prometheus.access import Access
    from planner.sources.prometheus.client import Prometheus

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=_serve, args=(server, body, encoding), daemon=True).start()
        now = datetime.now(UTC)
        access = Access(f"http://127.0.0.1:{server.getsockname()[1]}")
        with Prometheus(access, timeout_s=60.0) as client:
            client.range("up", now - timedelta(minutes=10), now, 30.0)


def _serve(server: socket.socket, body: bytes, encoding: str) -> None:
    while True:
        taken, _ = server.accept()
        with taken:
            taken.recv(64 * 1024)
            head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\nContent-Encoding: {encoding}\r\n\r\n"
            try:
                taken.sendall(head.encode() + body)
            except OSError:
                continue  # enough, says the client


def _zeros(pieces: int) -> bytes:
    """Return so many MiB of blanks, packed."""
    packed = zlib.compressobj(1, wbits=zlib.MAX_WBITS | 16)
    return b"".join(packed.compress(b" " * MIB) for _ in range(pieces)) + packed.flush()


def fastjson(body: bytes) -> None:
    """Read a broker's body."""
    from planner.sources.rocketmq.fastjson import parse

    parse(body)


def kafka_array(content: bytes) -> None:
    """Read a broker's array of empty strings."""
    from planner.sources.kafka.wire import Reader

    reader = Reader(content)
    reader.array(lambda: [reader.text()])


def yaml_plan(text: str) -> None:
    """Read a plan file."""
    from planner.documents.plan import read_plan_or_decision

    with TemporaryDirectory() as folder:
        path = Path(folder) / "plan.yaml"
        path.write_text(text, encoding="utf-8")
        read_plan_or_decision(path)


def owners() -> None:
    """Read a plan whose forecast names a hundred thousand million queues in a few letters."""
    from planner.documents.plan import PLAN
    from tests.pod_groups import plan_for
    from tests.step_builders import STEPS

    document = PLAN.document(plan_for("app", ["a"], STEPS[:1]), "plan")
    document["spec"]["forecast"]["ownersBefore"][0]["queues"] = ["orders/broker-a/0-9999999999"]
    document["metadata"]["annotations"]["consumerplanner.dev/digest"] = _digest(document["spec"])
    PLAN.parse(document, "plan")


def _digest(spec: object) -> str:
    from planner.documents.format import digest_of

    return digest_of(spec)


def sample(body: bytes) -> None:
    """Read a sample file."""
    from planner.documents.data import SAMPLE

    SAMPLE.parse(body, "sample")


_NAMES = "abcdefghi"
BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{name}: &{name} [{','.join([f'*{before}'] * 9)}]\n" for before, name in pairwise(_NAMES)
)
BOX = '{"":"\U0001f4a3"},'.encode()
DOORS: dict[str, Callable[[], None]] = {
    "prometheus gzip of 1 GiB": lambda: prometheus(_zeros(1_024), "gzip"),
    "prometheus lists": lambda: prometheus(b'{"status":"success","data":[' + b"[]," * (MOST_BYTES // 4), "identity"),
    "prometheus objects": lambda: prometheus(b"[" + BOX * 400_000 + b"0]", "identity"),
    "prometheus brotli": lambda: prometheus(b"\x00" * 1000, "br"),
    "fastjson brackets": lambda: fastjson(b"[" * MOST_BYTES),
    "fastjson lists": lambda: fastjson(b"[" + b"[]," * 650_000 + b"0]x"),
    "fastjson objects": lambda: fastjson(b"[" + BOX * 900_000 + b"0]x"),
    "fastjson many lists": lambda: fastjson(b"[" + b"[]," * 10_000_000 + b"0]"),
    "kafka array": lambda: kafka_array((16_000_000).to_bytes(4) + b"\0\0" * 16_000_000),
    "kafka array, largest": lambda: kafka_array((999_999).to_bytes(4) + b"\0\0" * 999_998),
    "yaml aliases": lambda: yaml_plan(BOMB),
    "yaml depth": lambda: yaml_plan("[" * 200_000),
    "yaml length": lambda: yaml_plan("- a\n" * 10_000_000),
    "yaml 5000 digits": lambda: yaml_plan("kind: " + "9" * 5_000),
    "owners of a plan": owners,
    "sample depth": lambda: sample(b"[" * 200_000),
    "sample 5000 digits": lambda: sample(b'{"kind":' + b"9" * 5_000 + b"}"),
}


def main(name: str) -> None:
    """Feed one door and print what came of it."""
    resource.setrlimit(resource.RLIMIT_AS, (GUARD, GUARD))
    try:
        DOORS[name]()
        error: BaseException | None = None
    except PlannerError as ours:
        error = ours
    print(json.dumps({"error": type(error).__name__, "sentence": str(error)[:300], "peak_mib": _peak_mib()}))


def _peak_mib() -> int:
    """Return this process's own peak: ``ru_maxrss`` begins with that of the process which started it."""
    status = Path("/proc/self/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) // 1024  # type: ignore[index]


if __name__ == "__main__":
    main(sys.argv[1])
