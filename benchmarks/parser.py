"""How the reader of fastjson's JSON grows with its text: linear time means ten times as long for ten times the text.

And how much memory the client takes for a body of 16 MiB, the longest frame of RocketMQ's own servers.
"""

import subprocess
import sys
import time

from planner.sources.rocketmq import fastjson
from tests.unit.sources.rocketmq import java_json
from tests.unit.sources.rocketmq.fake_server import FakeServer
from tests.unit.sources.rocketmq.java_json import queue_key

BODY_MIB = 16
CLIENT = """
import resource, sys
from planner.sources.rocketmq import RocketMQAdmin, TimeLimits
with RocketMQAdmin("127.0.0.1:1", limits=TimeLimits(request_s=600)) as admin:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    queues = len(admin.consume_stats(sys.argv[1], "g").offsets)
    print(queues, before, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def main() -> None:
    """Print seconds for three sizes and the ratio to the size before; then the memory for the longest body."""
    before = None
    for entries in (2_000, 20_000, 200_000):
        body = consume_stats(entries)
        took = min(parse_s(body) for _ in range(3))
        grown = "" if before is None else f"  {took / before:5.1f} times the one before"
        print(f"{entries:8} queues, {len(body) / 1e6:6.1f} MB {took:8.3f} s{grown}", flush=True)
        before = took

    memory()


def memory() -> None:
    """Print the peak resident memory of a client that reads a consume-stats answer of 16 MiB, parsing included."""
    one = len(java_json.body({"offsetTable": _table(1000)})) / 1000
    body = java_json.body({"consumeTps": 0.0, "offsetTable": _table(round(BODY_MIB * 2**20 / one))})
    with FakeServer(lambda request, wire: wire.answer(request, body=body)) as server:
        told = subprocess.run(
            [sys.executable, "-c", CLIENT, server.address], capture_output=True, text=True, check=True
        )
    queues, before, after = map(int, told.stdout.split())
    grown = (after - before) * 1024
    print(
        f"{len(body) / 2**20:.1f} MiB body, {queues} queues: {grown / 2**20:.0f} MiB at the peak, "
        f"{grown / len(body):.1f} times"
    )


def _table(queues: int) -> dict[object, object]:
    told = {"brokerOffset": 123456, "consumerOffset": 123450, "lastTimestamp": 1795234288626}
    return {queue_key("orders", f"broker-{index % 8}", index): told for index in range(queues)}


def consume_stats(entries: int) -> bytes:
    """Return a body with so many queues, as many escapes and one number of as many digits."""
    table = {queue_key("orders", f"broker-{index % 8}", index): {"brokerOffset": index} for index in range(entries)}
    return java_json.body({"offsetTable": table, "text": "\\" * entries, "digits": "7" * entries})


def parse_s(body: bytes) -> float:
    """Return how long one parse takes."""
    started = time.perf_counter()
    fastjson.parse(body)
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
