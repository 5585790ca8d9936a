"""Each policy's brokers: reached by the policy's address and account, and the group read once as a run reads it."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Final

from planner.documents.policy import ConsumerScalingPolicy
from planner.documents.source import KafkaSource
from planner.errors import PlannerError
from planner.isolation import attempt
from planner.model.samples import GroupSample
from planner.orchestration.checks.result import CheckSettings
from planner.policies.fleet import policy_location, read_fleet
from planner.sources.live import open_group
from planner.text.words import counted

AT_ONCE: Final = 8


def check_brokers(settings: CheckSettings) -> Iterator[tuple[bool, str]]:
    """Say of each policy whether its group could be read, side by side, and what was refused.

    Raises ``BadInputError`` where no policy can be served.
    """
    policies = read_fleet(policy_location(settings.policies)).policies
    with ThreadPoolExecutor(max_workers=AT_ONCE, thread_name_prefix="check") as pool:
        yield from pool.map(_check_group, policies)


def _check_group(policy: ConsumerScalingPolicy) -> tuple[bool, str]:
    name, servers = policy.metadata.name, ", ".join(_servers(policy))
    read = attempt(name, "check", _read_once, policy)
    if isinstance(read, PlannerError):
        return False, f"policy {name}: {read}"
    if read.problems:
        return False, (
            f"policy {name}: {servers} answered, and not all of group {read.group} could be read: {read.problems[0]}"
        )
    topics = len({offset.queue.topic for offset in read.offsets})
    summary = f"{counted(len(read.members), 'member')} on {counted(topics, 'topic')}"
    return True, f"policy {name}: {servers} answered, group {read.group} was read: {summary}"


def _read_once(policy: ConsumerScalingPolicy) -> GroupSample:
    with open_group(policy) as read_group:
        return read_group(datetime.now(UTC))


def _servers(policy: ConsumerScalingPolicy) -> tuple[str, ...]:
    source = policy.spec.source
    return source.bootstrap_servers if isinstance(source, KafkaSource) else source.name_servers
