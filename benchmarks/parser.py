"""How the reader of fastjson's JSON grows with its text: linear time means ten times as long for ten times the text."""

import time

from planner.sources.rocketmq import fastjson
from tests.unit.sources.rocketmq import java_json
from tests.unit.sources.rocketmq.java_json import queue_key


def main() -> None:
    """Print seconds for three sizes and the ratio to the size before."""
    before = None
    for entries in (2_000, 20_000, 200_000):
        body = consume_stats(entries)
        took = min(parse_s(body) for _ in range(3))
        grown = "" if before is None else f"  {took / before:5.1f} times the one before"
        print(f"{entries:8} queues, {len(body) / 1e6:6.1f} MB {took:8.3f} s{grown}", flush=True)
        before = took


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
