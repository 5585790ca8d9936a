"""The systems that groups run on, and in what they differ for those who read a group from outside.

Whoever asks, asks for the fact and not for the system's name: a further system is one more entry here, its rooms in
``allocation``, ``inference``, ``forecast`` and ``simulation``, and its source.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from planner.errors import BadInputError
from planner.model.queues import MessageQueue, Queue, TopicPartition


@dataclass(frozen=True, slots=True)
class System:
    """What is true of every group of one system.

    ``make_queue`` returns the queue of a topic, broker and number. ``members_allocate``: each member computes its own
    queues, so that two strategies can meet in one group; else one party assigns for all. ``reports_setup``: brokers
    pass on how members are set up and how fast they work; else the policy's ``spec.timing`` states it.
    ``close_limits`` says how long a member takes to close, where it does not report that. ``commits_batches``: a member
    commits a batch once it has worked on all of it, however long that takes; else by the clock. ``has_proxies``:
    clients may come through a proxy, which brokers do not list. ``growth_order`` is the order in which a topic gets
    more queues, ``shared_client`` what groups have in common whose members have one client id, ``leftover_advice`` what
    becomes of a group that nobody uses any more, ``even_strategies`` which strategies even out the queues of several
    topics, where that is known without trying. ``queue_choice`` is by what producers choose a message's queue, and
    ``faster_queue`` what lets one consumer do more of one queue. ``memberless_metrics`` says which metrics tell no
    members of some groups, and who does.
    """

    name: str
    title: str
    make_queue: Callable[[str, str, int], Queue]
    members_allocate: bool
    reports_setup: bool
    commits_batches: bool
    has_proxies: bool
    queue_choice: str
    faster_queue: str
    close_limits: str | None = None
    growth_order: str | None = None
    shared_client: str | None = None
    leftover_advice: str | None = None
    even_strategies: str | None = None
    memberless_metrics: str | None = None


ROCKETMQ: Final = System(
    name="rocketmq",
    title="RocketMQ",
    make_queue=MessageQueue,
    members_allocate=True,
    reports_setup=True,
    commits_batches=False,
    has_proxies=True,
    queue_choice="MessageQueueSelector",
    faster_queue="threads, batch",
    growth_order="read queues before write queues",
    shared_client=(
        "one client (MQClientInstance) looks after all of them, "
        "and a notification of one group has the others rebalance, too"
    ),
)

KAFKA: Final = System(
    name="kafka",
    title="Kafka",
    make_queue=lambda topic, _broker, number: TopicPartition(topic, number),
    members_allocate=False,
    reports_setup=False,
    commits_batches=True,
    has_proxies=False,
    queue_choice="partitioner",
    faster_queue="the records of a poll worked on at the same time",
    close_limits="the batch at hand, then 30 s at most",
    leftover_advice="a group that is a leftover expires by itself (offsets.retention.minutes)",
    memberless_metrics=(
        "kafka_exporter shows none of groups of the new protocol (KIP-848), kafka-lag-exporter of no group; planner "
        "advise at the brokers counts them"
    ),
    even_strategies="use an assignor that looks at all topics together (sticky, cooperative-sticky, uniform)",
)

SYSTEMS: Final = {system.name: system for system in (ROCKETMQ, KAFKA)}


def system_named(name: str) -> System:
    """Return the system of that name; raise ``BadInputError`` with the known ones for another."""
    if name not in SYSTEMS:
        raise BadInputError(f"system: found {name!r}, expected one of {', '.join(SYSTEMS)}")
    return SYSTEMS[name]
