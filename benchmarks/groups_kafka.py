"""How fast many Kafka groups are read: three real brokers, 1 000 and 10 000 groups, and confluent-kafka's calls beside.

All groups are offline, each with commits on all partitions of one of 20 topics. The comparison asks for the commits of
the same groups by ``AdminClient.list_consumer_group_offsets``: one group a call, as many calls at once as we make.
"""

import os
import resource
import sys
import time
from concurrent.futures import ThreadPoolExecutor, wait
from datetime import UTC, datetime

from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient

from planner.model.samples import GroupSample
from planner.sources.kafka import KafkaAdmin, observe_groups
from tests.clusters.kafka import KafkaCluster

COUNTS = tuple(int(count) for count in os.environ.get("GROUPS", "1000,10000").split(","))
TOPICS, PARTITIONS = 20, 32
AT_ONCE = 200
COMPARED = 1000


def main() -> None:
    """Print the seconds of one look at all groups, by a client that knows nothing yet, and of the library's calls."""
    with KafkaCluster.start(brokers=3) as cluster:
        for number in range(TOPICS):
            cluster.create_topic(f"topic-{number:02}", PARTITIONS)
        cluster.commit(_name(0), {("topic-00", 0): 3})  # tried until the cluster has coordinators
        made = 0
        for count in COUNTS:
            commit(cluster.admin, range(made, count))
            made = count
            look_s = min(read_s(cluster.bootstrap, count) for _ in range(3))
            print(f"{look_s:8.2f} s a look at {count} groups, {count / look_s:.0f} groups/s", flush=True)
        compared = min(COMPARED, made)
        theirs_s = min(library_s(cluster.bootstrap, compared) for _ in range(3))
        print(
            f"{theirs_s:8.2f} s the commits alone of {compared}, by confluent-kafka: {compared / theirs_s:.0f} groups/s"
        )
        print(f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:8.0f} MiB peak of this process", flush=True)


def commit(admin: AdminClient, numbers: range) -> None:
    """Give each group a commit on all partitions of its topic."""

    def one(number: int) -> None:
        offsets = [TopicPartition(f"topic-{number % TOPICS:02}", partition, 3) for partition in range(PARTITIONS)]
        asked = admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(_name(number), offsets)])
        for future in asked.values():
            future.result(60)

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(one, numbers))


def read_s(bootstrap: str, count: int) -> float:
    """Return the seconds of one look; leave unless it finds so many groups, each with all its commits."""
    started = time.perf_counter()
    with KafkaAdmin(bootstrap.split(",")) as admin:
        names = [one.group for one in admin.list_groups().groups if one.is_consumer_group]
        samples = observe_groups(admin, cluster="bench", groups=dict.fromkeys(names), at=datetime.now(UTC))
        whole = sum(isinstance(one, GroupSample) and len(one.offsets) == PARTITIONS for one in samples.values())
    took_s = time.perf_counter() - started
    if whole != count:
        sys.exit(f"{whole} groups came whole, expected {count}")
    return took_s


def library_s(bootstrap: str, count: int) -> float:
    """Return the seconds in which confluent-kafka reads the commits of the first ``count`` groups."""
    admin = AdminClient({"bootstrap.servers": bootstrap})

    def one(number: int) -> None:
        for future in admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(_name(number))]).values():
            future.result(60)

    started = time.perf_counter()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        wait([pool.submit(one, number) for number in range(count)])
    return time.perf_counter() - started


def _name(number: int) -> str:
    return f"offline-{number:05}"


if __name__ == "__main__":
    main()
