"""Collect Kafka transitions: ``python -m tests.conformance.kafka``. What is there is not done again.

``MINUTES`` (default 60) bounds the run; ``--only crash`` takes the cases whose change has that word.
"""

import argparse
import json
import os
import time
from collections.abc import Sequence

from tests.clusters.kafka import KafkaCluster
from tests.conformance.kafka.cells import Case
from tests.conformance.kafka.matrix import cases
from tests.conformance.kafka.stage import BROKER_SETTINGS
from tests.conformance.kafka.waves import run_wave
from tests.conformance.store import Store

AT_ONCE = 8
"""Groups in a wave: with eight of three members each the clients and the broker take a third of two cores."""


def main() -> None:
    """Run waves of missing cases until the time is over."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="a word of the change: join, crash, freeze, ...")
    arguments = parser.parse_args()
    deadline = time.monotonic() + 60 * float(os.environ.get("MINUTES", "60"))
    store = Store("kafka")
    done = store.ids()
    wanted = [case for case in cases() if case.id not in done and arguments.only in json.dumps(case.cell.change)]
    with KafkaCluster.start(settings=BROKER_SETTINGS) as cluster:
        while wanted and time.monotonic() < deadline:
            wave = next_wave(wanted)
            records = run_wave(cluster, wave)
            store.add(records)
            wanted = [case for case in wanted if case not in wave]
            print(f"{len(records)} of {len(wave)} kept, {len(wanted)} left: {_words(wave[0])}", flush=True)
        del cluster.admin  # it would wait for ever for a broker that has stopped
    print(f"{len(store.records())} transitions in {store.path.name}")


def next_wave(wanted: Sequence[Case]) -> list[Case]:
    """Return the first cases that can share client processes and blow with the very first."""

    def company(case: Case) -> tuple[object, ...]:
        return case.cell.client, case.cell.blow, case.cell.release

    return [case for case in wanted if company(case) == company(wanted[0])][:AT_ONCE]


def _words(case: Case) -> str:
    return f"{case.cell.client} {json.dumps(case.cell.change)}"


if __name__ == "__main__":
    main()
