"""``python -m tests.oracles.conformance``: a million requests against the real classes, the result as text.

Without arguments everything is run. ``--rocketmq N`` and ``--first NUMBER`` choose how many and from where; each
request is random by its number alone, so a failing one is repeated with ``--first ITS_NUMBER --rocketmq 1``.
"""

import argparse
import sys
import time
from collections.abc import Callable

from tests.oracles import topologies
from tests.oracles.compare import Document, explain, first_difference
from tests.oracles.rocketmq import CLIENT_VERSIONS, SERVER_VERSION, RocketMQOracle

ROCKETMQ_REQUESTS = 1_000_000
_STEP = 5_000


def main() -> int:
    """Run, print a line for each part, and return 1 when anything differed."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument(
        "--rocketmq", type=int, default=ROCKETMQ_REQUESTS, help="requests for RocketMQ's client classes"
    )
    options.add_argument("--first", type=int, default=0, help="number of the first request")
    chosen = options.parse_args()
    return int(any([not rocketmq(chosen.rocketmq, chosen.first)]))


def rocketmq(count: int, first: int) -> bool:
    """Ask both client versions half of the requests each, the broker and our own classes a tenth on top."""
    share = max(1, count // len(CLIENT_VERSIONS))
    agreed = True
    for index, version in enumerate(CLIENT_VERSIONS):
        start = first + index * share
        with RocketMQOracle(version) as oracle:
            agreed &= _run(f"client {version}", oracle, range(start, start + share), topologies.request)
            agreed &= _run(f"examples/java in {version}", oracle, range(start, start + share // 10), _ours)
    with RocketMQOracle(SERVER_VERSION, with_server=True) as oracle:
        agreed &= _run(
            f"broker {SERVER_VERSION}, POP", oracle, range(first, first + share // 10), topologies.pop_request
        )
    return agreed


def _ours(number: int) -> Document:
    return topologies.request(number, topologies.OUR_STRATEGIES)


def _run(name: str, oracle: RocketMQOracle, numbers: range, make: Callable[[int], Document]) -> bool:
    started = time.monotonic()
    for start in range(0, len(numbers), _STEP):
        different = first_difference(oracle, [make(number) for number in numbers[start : start + _STEP]])
        if different is not None:
            print(f"{name}: differs\n{explain(different, oracle)}", flush=True)
            return False
    print(f"{name}: {len(numbers)} requests, 0 differ, {time.monotonic() - started:.0f} s", flush=True)
    return True


if __name__ == "__main__":
    sys.exit(main())
