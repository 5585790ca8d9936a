"""A deliberately sick RocketMQ installation: a group for each thing that ``planner doctor`` sees, healthy ones too.

``SICK`` says which findings each group must have, ``HEALTHY`` names those that must have none.
"""

import time
from collections.abc import Mapping

from tests.clusters.errors import StartFailedError
from tests.clusters.rocketmq import NEW, QueueCounts, RocketMQCluster
from tests.clusters.rocketmq_load import ConsumerProcess, QueueCurve

OLD_CLIENT = "4.9.8"
GRACEFUL = 5_000
"""Milliseconds that a healthy consumer waits for its running calls when it stops."""

COMMITS_MS = 2_000
"""How often clients commit. By default it is 5 s: a busy machine that is late once more makes a commit stand for 10 s.
That is a finding, and a true one."""

STARTED_S, CALM_S = 600.0, 300.0
"""Limits against hanging only."""

Line = dict[str, str | int | float]

SICK: Mapping[str, frozenset[str]] = {
    "sick-mixed-strategies": frozenset({"mixed-strategies"}),
    "sick-twins": frozenset({"duplicate-client-id"}),
    "sick-different-topics": frozenset({"different-topics"}),
    "sick-different-tags": frozenset({"different-tags"}),
    "sick-too-many": frozenset({"idle-members"}),
    "sick-tilted": frozenset({"tilt"}),
    "sick-hot": frozenset({"hot-queue"}),
    "sick-slow": frozenset({"slow-member"}),
    "sick-stalled": frozenset({"stalled"}),
    "sick-never-commits": frozenset({"never-commits"}),
    "sick-unread": frozenset({"unread-queues"}),
    "sick-spare": frozenset({"empty-queues"}),
    "sick-drained": frozenset({"broker-permission"}),
    "sick-retries": frozenset({"retries"}),
    "sick-dead-letters": frozenset({"dead-letters", "retries"}),
    "sick-hasty": frozenset({"no-shutdown-wait"}),
    "sick-old": frozenset({"old-client"}),
    "sick-broadcast": frozenset({"broadcasting"}),
    "sick-mixed-order": frozenset({"mixed-order"}),
    "sick-restless": frozenset({"frequent-rebalances"}),
    "sick-overlapping": frozenset({"owned-twice", "no-owner"}),
    "sick-abandoned": frozenset({"no-members"}),
    "sick-behind": frozenset({"too-few-consumers"}),
}

ALSO: Mapping[str, frozenset[str]] = {
    "sick-overlapping": frozenset({"retry-no-owner"}),
    "sick-twins": frozenset({"mixed-versions"}),
}
"""What may be found as well: when a group is two minutes old, or when the older of two twins is the one listed."""

HEALTHY_FIRST = ("well-busy", "well-quiet", "well-alone", "well-orderly", "well-two-topics")
HEALTHY = (*HEALTHY_FIRST, "well-fresh")


def create_topics(cluster: RocketMQCluster) -> None:
    """Create what the groups read; ``sick-drained`` gets a broker that takes nothing new."""
    for topic, queues in {
        "orders": 4,
        "quiet": 4,
        "small": 2,
        "topic-x": 1,
        "topic-y": 1,
        "hot": 4,
        "jammed": 2,
    }.items():
        cluster.create_topic(topic, queues)
    names = [broker.name for broker in cluster.brokers]
    cluster.create_topic("narrow", per_broker=dict.fromkeys(names, QueueCounts(2, 4)))
    cluster.create_topic("spare", per_broker=dict.fromkeys(names, QueueCounts(4, 2)))
    cluster.create_topic("drained", 4)
    cluster.create_topic("drained", per_broker={names[-1]: QueueCounts(4, 4)}, permission=4)


def curves(cluster: RocketMQCluster, seconds: float) -> list[QueueCurve]:
    """Return a calm load on all topics but ``quiet``; the first queue of ``hot`` gets most, ``jammed`` too much."""
    per_queue = {"orders": 4, "small": 4, "topic-x": 4, "topic-y": 4, "hot": 4, "jammed": 4, "narrow": 4, "spare": 2}
    rates = {"jammed": 30.0}
    found = [
        QueueCurve(topic, broker.name, queue, ((0.0, rates.get(topic, 3.0)), (seconds, rates.get(topic, 3.0))))
        for topic, queues in per_queue.items()
        for broker in cluster.brokers
        for queue in range(min(queues, {"small": 2, "topic-x": 1, "topic-y": 1, "jammed": 2}.get(topic, queues)))
        if not (topic == "hot" and broker is cluster.brokers[0] and queue == 0)
    ]
    hottest = QueueCurve("hot", cluster.brokers[0].name, 0, ((0.0, 60.0), (seconds, 60.0)))
    return [*found, hottest]


def lines(cluster: RocketMQCluster) -> list[Line]:
    """Return the groups that a present-day client runs."""
    first, second = (f"orders/{cluster.brokers[0].name}/{queue}" for queue in (0, 1))
    some = ",".join((first, second))
    return [
        *_members("well-busy", "orders", "1,2", **{"service-ms": 2}),
        *_members("well-quiet", "quiet", "1,2"),
        *_members("well-alone", "orders", "1"),
        *_members("well-orderly", "orders", "1,2", orderly="true", **{"service-ms": 2}),
        *_members("well-two-topics", "orders,quiet", "1,2,3", strategy="AVG_BY_CIRCLE"),
        *_members("sick-mixed-strategies", "orders", "1"),
        *_members("sick-mixed-strategies", "orders", "2", strategy="AVG_BY_CIRCLE"),
        *_members("sick-twins", "orders", "1"),
        *_members("sick-twins", "orders", "2"),
        *_members("sick-different-topics", "orders", "1"),
        *_members("sick-different-topics", "small", "2"),
        *_members("sick-different-tags", "orders", "1", tags="TagA"),
        *_members("sick-different-tags", "orders", "2", tags="TagB"),
        *_members("sick-too-many", "small", "1,2,3,4,5,6"),
        *_members("sick-tilted", "topic-x,topic-y", "1,2,3,4"),
        *_members("sick-hot", "hot", "1,2,3,4"),
        *_members("sick-slow", "orders", "1,2", **{"service-ms": 1}),
        *_members("sick-slow", "orders", "3", **{"service-ms": 120}),
        *_members("sick-stalled", "orders", "1", **{"block-after": 40}),
        *_members("sick-never-commits", "orders", "1", pull="true"),
        *_members("sick-unread", "narrow", "1,2"),
        *_members("sick-spare", "spare", "1,2"),
        *_members("sick-drained", "drained", "1,2"),
        *_members("sick-retries", "small", "1", fail="true"),
        *_members("sick-dead-letters", "small", "1", fail="true", **{"max-reconsume": 0}),
        *_members("sick-hasty", "orders", "1,2", **{"service-ms": 300, "await-termination-ms": 0}),
        *_members("sick-broadcast", "orders", "1,2", broadcast="true"),
        *_members("sick-mixed-order", "orders", "1", orderly="true"),
        *_members("sick-mixed-order", "orders", "2"),
        *_members("sick-restless", "orders", "1,2"),
        *_members("sick-restless", "orders", "3", **{"restart-ms": 6_000}),
        *_members("sick-overlapping", "orders", "1", strategy="CONFIG", queues=some),
        *_members("sick-overlapping", "orders", "2", strategy="CONFIG", queues=first),
        *_members("sick-abandoned", "orders", "1", **{"stop-after-ms": 15_000}),
        *_members("sick-behind", "jammed", "1", threads=1, **{"service-ms": 40, "pull-batch": 4}),
    ]


def old_lines() -> list[Line]:
    """Return what an older client runs: the twin of an id that runs already, and a group of its own."""
    return [
        *_members("sick-twins", "orders", "1"),
        *_members("sick-old", "orders", "1,2", orderly="true"),
    ]


def _members(group: str, topics: str, numbers: str, **flags: str | int) -> list[Line]:
    """Return one line; the waiting time of a stop is set unless the flags say otherwise.

    Instances bear the group's name: clients of one id would share a connection, and one sick group ail them all.
    """
    instances = ",".join(f"{group.partition('-')[2]}-{number}" for number in numbers.split(","))
    usual = {"await-termination-ms": GRACEFUL, "persist-ms": COMMITS_MS}
    return [{"group": group, "topics": topics, "instances": instances, **usual, **flags}]


def admit(cluster: RocketMQCluster, seconds: float) -> list[ConsumerProcess]:
    """Create the topics, start all groups and a load of so many seconds; return when all clients have started."""
    create_topics(cluster)
    new, old = cluster.load(NEW), cluster.load(OLD_CLIENT)
    new.start_producer(curves(cluster, seconds), wait_ready=False)
    wards = [
        new.start_ward(lines(cluster), wait_ready=False),
        old.start_ward(old_lines(), wait_ready=False),
    ]
    for ward in wards:
        ward.await_ready(STARTED_S)
    return wards


def await_calm(cluster: RocketMQCluster) -> None:
    """Return once who stops for good has stopped, and the healthy groups are listed everywhere and have committed."""
    deadline = time.monotonic() + CALM_S
    while late := [group for group in ("sick-abandoned", *HEALTHY_FIRST) if not _is_as_it_should_be(cluster, group)]:
        if time.monotonic() > deadline:
            raise StartFailedError(f"after {CALM_S:g} s not as they are to be: {late}")
        time.sleep(0.5)


def _is_as_it_should_be(cluster: RocketMQCluster, group: str) -> bool:
    return _has_left(cluster, group) if group == "sick-abandoned" else _works(cluster, group)


def _has_left(cluster: RocketMQCluster, group: str) -> bool:
    return not any(cluster.members(group).values()) and any(cluster.committed(group, "orders").values())


def _works(cluster: RocketMQCluster, group: str) -> bool:
    """Tell whether each broker lists all members, and each queue of what they all read has a commit."""
    (line,) = (one for one in lines(cluster) if one["group"] == group)
    members = len(str(line["instances"]).split(","))
    is_read = "orders" in str(line["topics"]).split(",")
    return all(len(known) == members for known in cluster.members(group).values()) and (
        not is_read or _has_committed(cluster, group)
    )


def _has_committed(cluster: RocketMQCluster, group: str) -> bool:
    return None not in cluster.committed(group, "orders").values()


def admit_fresh(cluster: RocketMQCluster) -> ConsumerProcess:
    """Start ``well-fresh``, a healthy group that has just come."""
    ward = cluster.load(NEW).start_ward(_members("well-fresh", "orders", "1,2"), wait_ready=False)
    ward.await_ready(STARTED_S)
    return ward
