"""The brokers that a policy names, to set offsets at."""

from collections.abc import Iterator
from contextlib import contextmanager

from planner.deployments.offsets.actions import GroupOffsets
from planner.documents.policy import ConsumerScalingPolicy
from planner.documents.source import KafkaSource


@contextmanager
def installation(policy: ConsumerScalingPolicy) -> Iterator[GroupOffsets]:
    """Give the offsets of the groups on the policy's brokers; connections end with the context."""
    source = policy.spec.source
    if isinstance(source, KafkaSource):
        from planner.deployments.offsets.kafka import open_kafka  # noqa: PLC0415  needs the kafka extra

        with open_kafka(source) as kafka:
            yield kafka
    else:
        from planner.deployments.offsets.rocketmq import open_rocketmq  # noqa: PLC0415  only this system needs it

        with open_rocketmq(source) as rocketmq:
            yield rocketmq
