"""The worst that each door of the planner can be fed, and what that costs: ``python -m tests.doors NAME``.

Prints one line of JSON: the error's type and sentence, the peak of the resident memory in MiB. Each runs in a process
of its own, as only so its memory can be told.
"""

import gzip
import hashlib
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

from planner.errors import PlannerError
from planner.text.bounded import MOST_BYTES
from tests.parquet_footers import Footer, RowGroup

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


def frame(header: bytes, encoding: int) -> None:
    """Read a broker's answer."""
    from planner.sources.rocketmq.codec import decode

    decode((encoding << 24 | len(header)).to_bytes(4) + header)


def _fields() -> bytes:
    """Return a binary header with as many fields as fit into its three bytes of length."""
    fields = b"".join(b"\0\4" + number.to_bytes(4).hex().encode()[4:] + b"\0\0\0\0" for number in range(1_600_000))
    return bytes(13) + b"\0\0\0\0" + len(fields).to_bytes(4) + fields


def scram(message: bytes) -> None:
    """Answer the first message of an account."""
    from planner.sources.kafka.sasl import exchange

    talk = exchange("SCRAM-SHA-256", "user", "password")
    first = next(talk)
    talk.send(message.replace(b"NONCE", first.rpartition(b"r=")[2]))


def route(topics: int) -> None:
    """Read routes of topics on a hundred brokers, each with all the queues that a broker may have."""
    from planner.model.routes import RouteTable
    from planner.sources.rocketmq.answers import topic_route
    from planner.sources.rocketmq.topics import check_queues

    entry = '{"brokerName":"broker-%d","perm":6,"readQueueNums":65536,"writeQueueNums":65536}'
    body = f'{{"brokerDatas":[],"queueDatas":[{",".join(entry % number for number in range(100))}]}}'.encode()
    routes = [topic_route(body, f"topic-{number}").topic for number in range(topics)]
    check_queues(routes)
    RouteTable(tuple(routes)).read_queues  # noqa: B018  listing them is what costs


def cluster_policy(options: dict[str, object]) -> None:
    """Read a policy object, whose options are as large as an API server keeps them."""
    from typing import Any, cast

    from planner.deployments.policies import cluster_policies

    source = {"system": "rocketmq", "nameServers": ["a:1"], "cluster": "c", "group": "g"}
    spec = {"source": source, "scaleTargetRef": {"name": "app"}, "maxReplicas": 8}
    policy = {"apiVersion": "consumerplanner.dev/v1alpha1", "kind": "ConsumerScalingPolicy"}

    class Server:
        def policy(self, _namespace: str, _name: str) -> dict[str, Any]:
            return {**policy, "spec": {**spec, "strategy": "MACHINE_ROOM", "strategyOptions": options}}

    cluster_policies(cast("Any", Server()), "shop")("billing")


def policy_file(text: str) -> None:
    """Read a policy file."""
    from planner.documents.policy import parse_policy

    parse_policy(text, "policy.yaml")


def watch_event() -> None:
    """Hear of a plan object of the most bytes that etcd keeps, and read it."""
    from planner.controller.agenda import Agenda
    from planner.controller.plan_cache import PlanCache
    from planner.documents.plan import PLAN
    from tests.pod_groups import plan_for
    from tests.step_builders import STEPS

    document = PLAN.document(plan_for("app", ["a"], STEPS[:1]), "plan", "shop")
    document["metadata"] |= {"uid": "u", "resourceVersion": "1", "generation": 1}
    document["spec"]["steps"] = [{"kind": "awaitReady", "x": [[]] * 200}] * 1_800
    document["metadata"]["annotations"]["consumerplanner.dev/digest"] = _digest(document["spec"])
    PlanCache(Agenda(), lambda *_: None).note(document)
    PLAN.parse(document, "plan")


def capture(content: bytes, samples: int) -> None:
    """Replay a recording whose file of samples holds these bytes, packed."""
    from planner.sources.capture import HEADER, SAMPLES_FILE, CaptureHeader, open_capture

    at = datetime(2026, 11, 21, tzinfo=UTC)
    with TemporaryDirectory() as made:
        folder = Path(made)
        header = CaptureHeader(("g",), at, at, 5.0, samples, "0", ("s",), ())
        (folder / "capture.json").write_bytes(HEADER.dump(header))
        (folder / SAMPLES_FILE).write_bytes(content)
        list(open_capture(folder).samples())


def large_sample(offsets: int) -> None:
    """Read a sample file with so many queues, and one that is none."""
    from planner.documents.data import SAMPLE
    from planner.documents.format import DIGEST_PREFIX, canonical
    from tests.sample_builders import steady, watch

    real = SAMPLE.document(watch(1, steady(60, 55))[0])
    body = canonical(real["body"])
    first = canonical(real["body"]["offsets"][0]) + b","
    body = body.replace(b'"offsets":[', b'"offsets":[' + first * offsets + b"{},", 1)
    digest = DIGEST_PREFIX + hashlib.sha256(body).hexdigest()
    rest = canonical({"digest": digest, "kind": real["kind"]}).removeprefix(b"{")
    sample(b'{"apiVersion":"' + real["apiVersion"].encode() + b'","body":' + body + b"," + rest)


def parquet(footer: Footer) -> None:
    """Read the footer of a Parquet file, as it is read before Spark reads the rows."""
    from spark_apps.common.parquet_files import check_footer, footer_length

    content = footer.file()
    length = footer_length("part-0.parquet", len(content), content)
    check_footer("part-0.parquet", content[-length - 8 : -8], len(content))


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
    "yaml lists": lambda: yaml_plan("a: [" + "1," * 524_000 + "0]"),
    "yaml brackets": lambda: yaml_plan("a: [" + ("[" * 30 + "]" * 30 + ",") * 17_100 + "0]"),
    "policy lists": lambda: policy_file("a: [" + "1," * 131_000 + "0]"),
    "policy length": lambda: policy_file("a: [" + "1," * 750_000 + "0]"),
    "cluster policy options": lambda: cluster_policy({"machine_rooms": [[]] * 500_000}),
    "cluster policy names": lambda: cluster_policy({str(number): 0 for number in range(20_000)}),
    "watch event": watch_event,
    "rocketmq frame of fields": lambda: frame(_fields(), 1),
    "rocketmq frame of lists": lambda: frame(b"[" + b"[]," * 5_500_000 + b"0]", 0),
    "rocketmq routes": lambda: route(1),
    "scram fields": lambda: scram(b"a=," * 8_000_000),
    "scram rounds": lambda: scram(b"r=NONCE,s=AAAA,i=1000001"),
    "capture of one line": lambda: capture(_zeros(1_024), 1),
    "capture of lines": lambda: capture(gzip.compress(b"{}\n" * 1_000_000), 1),
    "sample bytes": lambda: sample(b'{"a":"' + b"x" * (90 * MIB) + b'"}'),
    "sample queues": lambda: large_sample(220_000),
    "owners of a plan": owners,
    "sample depth": lambda: sample(b"[" * 200_000),
    "parquet rows": lambda: parquet(Footer([RowGroup(rows=10**9)])),
    "parquet rows of groups": lambda: parquet(Footer([RowGroup(rows=10**6)] * 200)),
    "parquet rows of groups alone": lambda: parquet(Footer([RowGroup(rows=2**62)] * 4, rows=1)),
    "parquet rows below zero": lambda: parquet(Footer([RowGroup(rows=-5)])),
    "parquet lists": lambda: parquet(Footer([RowGroup(values=10**12)])),
    "parquet strings": lambda: parquet(Footer([RowGroup(bytes=2**40)])),
    "parquet bytes of groups": lambda: parquet(Footer([RowGroup(bytes=2**30)] * 100)),
    "parquet row groups": lambda: parquet(Footer([RowGroup()] * 50_000)),
    "parquet columns": lambda: parquet(Footer(columns=4_000)),
    "parquet columns, most": lambda: parquet(Footer([], columns=200_000)),
    "parquet depth": lambda: parquet(Footer(depth=60)),
    "parquet depth, most": lambda: parquet(Footer([], depth=400_000)),
    "parquet fields": lambda: parquet(Footer([RowGroup()] * 4_000, columns=16)),
    "parquet footer": lambda: parquet(Footer([], columns=600_000)),
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
