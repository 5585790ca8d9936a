"""Collect RocketMQ transitions: ``python -m tests.conformance.rocketmq``. What is there is not done again.

``MINUTES`` (default 60) bounds the run; ``--only members`` takes the kinds of series with that in their name;
``--slots`` says how many groups run at once.
"""

import argparse
import os
import time

from tests.conformance.rocketmq.cells import SYSTEM, matrix
from tests.conformance.rocketmq.collect import Collector
from tests.conformance.store import Store


def main() -> None:
    """Run missing series until the time is over."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--only",
        default="",
        help="kinds of series, with commas between: members, switches, queues, orderly, backlog, settings, brokers, "
        "silent, allocated, lite_pull, freezes, cuts, upgrades, blue_green, polled_freezes, polled_cuts, "
        "polled_brokers, fetched",
    )
    parser.add_argument("--slots", type=int, default=4)
    arguments = parser.parse_args()
    deadline = time.time() + 60 * float(os.environ.get("MINUTES", "60"))
    store = Store(SYSTEM)
    kinds = arguments.only.split(",")
    wanted = [series for series in matrix() if any(kind in series.kind for kind in kinds)]
    with Collector(store, deadline) as collector:
        collector.run(wanted, arguments.slots)
    print(f"{len(store.records())} transitions in {store.path.name}")


if __name__ == "__main__":
    main()
