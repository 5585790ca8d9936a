"""``python -m tests.oracles.kafka.conformance``: 10^5 requests against Kafka's own classes, the result as text.

``--requests N`` and ``--first NUMBER`` choose how many and from where; each request is random by its number and the
strategies asked alone, so a failing one is repeated with ``--first ITS_NUMBER --requests 1``. Every answer is compared
exactly, and once more with the members in another hash order.
"""

import argparse
import sys
import time
from collections import Counter

from tests.allocations import assign
from tests.oracles.kafka.compare import Document, disagreement, explain
from tests.oracles.kafka.oracle import NEWEST, OLD_CLIENT, KafkaOracle
from tests.oracles.kafka.requests import CLIENT_STRATEGIES, STRATEGIES, random_request

REQUESTS = 100_000
_STEP = 2_500


def main() -> int:
    """Run, print a line for each version, and return 1 when anything differed."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--requests", type=int, default=REQUESTS, help="requests, seven tenths for the newest version")
    options.add_argument("--first", type=int, default=0, help="number of the first request")
    chosen = options.parse_args()
    newest = max(1, chosen.requests * 7 // 10)
    with KafkaOracle(NEWEST, with_server=True) as oracle:
        agreed = _run(f"client and server {NEWEST}", oracle, range(chosen.first, chosen.first + newest), STRATEGIES)
    rest = range(chosen.first + newest, chosen.first + chosen.requests)
    if rest:
        with KafkaOracle(OLD_CLIENT) as oracle:
            agreed &= _run(f"client {OLD_CLIENT}", oracle, rest, CLIENT_STRATEGIES)
    return int(not agreed)


def _run(name: str, oracle: KafkaOracle, numbers: range, strategies: tuple[str, ...]) -> bool:
    started = time.monotonic()
    seen: Counter[str] = Counter()
    for start in range(0, len(numbers), _STEP):
        step = numbers[start : start + _STEP]
        requests = [random_request(number, strategies) for number in step]
        for number, request, answer in zip(step, requests, oracle.answers(requests), strict=True):
            if disagreement(request, answer):
                print(f"{name}: request {number} differs\n{explain(request, oracle)}", flush=True)
                return False
            _count(seen, request, answer)
    print(f"{name}: {len(numbers)} requests, 0 differ, {time.monotonic() - started:.0f} s")
    for what in sorted(seen):
        print(f"  {what:32} {seen[what]:7}")
    sys.stdout.flush()
    return True


def _count(seen: Counter[str], request: Document, answer: Document) -> None:
    ours = assign(request)
    seen[request["strategy"]] += 1
    seen[f"{request['strategy']}, determined"] += ours["deterministic"]
    seen["with a warning"] += bool(ours["warnings"])
    seen["the class fails"] += "error" in answer and bool(request["members"])


if __name__ == "__main__":
    sys.exit(main())
