"""``python -m tests.conformance.subscription [kafka|rocketmq] [NAME…]``: every case on real brokers, a row for each."""

import sys
from collections.abc import Iterable

from tests.clusters.kafka import KafkaCluster
from tests.clusters.rocketmq import NEW, RocketMQCluster
from tests.conformance.subscription.cases import KAFKA, ROCKETMQ, Outcome, figures, owners_agree
from tests.conformance.subscription.kafka import BROKER, watch_kafka
from tests.conformance.subscription.rocketmq import watch_rocketmq


def rows(outcomes: Iterable[Outcome]) -> list[str]:
    """Return a row of a table for each case."""
    lines = []
    for outcome in outcomes:
        agree = owners_agree(outcome)
        shown = [
            f"{figure.name} {figure.seen:.1f} in {figure.low:.1f}–{figure.high:.1f}{'' if figure.is_inside else ' NO'}"
            for figure in figures(outcome)
        ]
        more = "; ".join(f"{name}: {count}" for name, count in sorted({**outcome.filtered, **outcome.winners}.items()))
        lines.append(f"| {outcome.name} | {sum(agree)} of {len(agree)} | {'; '.join(shown)} | {more} |")
    return lines


def main(systems: list[str], names: list[str]) -> None:
    """Run the cases of these systems and print what was seen beside what was forecast."""
    if "kafka" in systems:
        with KafkaCluster.start(settings=BROKER) as kafka:
            print("\n".join(rows(watch_kafka(kafka, [case for case in KAFKA if not names or case.name in names]))))
    if "rocketmq" in systems:
        with RocketMQCluster.start(NEW, brokers=1) as rocketmq:
            chosen = [case for case in ROCKETMQ if not names or case.name in names]
            print("\n".join(rows(watch_rocketmq(rocketmq, chosen))))


if __name__ == "__main__":
    asked = sys.argv[1:]
    chosen_systems = [name for name in asked if name in ("kafka", "rocketmq")] or ["kafka", "rocketmq"]
    main(chosen_systems, [name for name in asked if name not in ("kafka", "rocketmq")])
