"""``observe_group`` and ``observe_groups``: one sample of consumer groups, what could not be read named.

First the members, then the commits, last the partitions' ends: read in the opposite order, a lag could come
out too small. Many groups share their requests: a topic's offsets are asked once for all groups that read it.
"""

import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from planner.errors import PlannerError
from planner.model.queues import TopicPartition
from planner.model.routes import BrokerAddress, PartitionRoute, RouteTable
from planner.model.samples import GroupSample, KafkaGroup, QueueOffsets
from planner.sources.kafka.answers import ClusterInfo, Commits, GroupDescription, Routes
from planner.sources.kafka.client import KafkaAdmin
from planner.sources.kafka.describe import Described

log = logging.getLogger(__name__)

_NAMED: Final = 5
"""Partitions that one sentence names before it says "and N more"."""


@dataclass(frozen=True, slots=True)
class _Topics:
    """What the brokers reported of all topics of a sample: routes, newest and oldest offsets."""

    routes: Mapping[str, Routes | PlannerError]
    end_offsets: Mapping[TopicPartition, int | PlannerError]
    first_offsets: Mapping[TopicPartition, int | PlannerError]


def observe_group(
    admin: KafkaAdmin, *, cluster: str | None, group: str, topics: Sequence[str] | None, at: datetime
) -> GroupSample:
    """Return members, ownership, partitions and offsets of ``group``, and what of it could not be read.

    ``cluster`` becomes the sample's; ``None`` takes the cluster's own id. ``topics`` limits the sample to some topics;
    ``None`` takes all that members subscribe to or own or that the group has committed on. ``at`` becomes the
    sample's time. A partition without commit has ``consumer_offset=None``; one whose end could not be read has no
    offsets at all, and a problem says why.

    Raises ``UnknownNameError`` for a group or named topic that is not there, ``BadInputError`` for a group of another
    kind (streams, connect), ``RefusedError`` where the account may not describe the group, ``OutOfReachError``
    when no broker or no coordinator answers.
    """
    sample = observe_groups(admin, cluster=cluster, groups={group: topics}, at=at)[group]
    if isinstance(sample, PlannerError):
        raise sample
    return sample


def observe_groups(
    admin: KafkaAdmin, *, cluster: str | None, groups: Mapping[str, Sequence[str] | None], at: datetime
) -> dict[str, GroupSample | PlannerError]:
    """Return group -> its sample as ``observe_group`` gives it, or the error that it would raise.

    ``groups`` are names with the topics to read, ``None`` for all. Raises ``OutOfReachError`` when no broker
    answers. ``took_s`` of each sample is the time of all requests together.
    """
    start = time.monotonic()
    info = admin.cluster()
    described = admin.describe_groups(list(groups))
    shares = _share_groups(described)
    ends_before = _share_ends(admin, shares) if shares else {}
    committed = _committed(admin, described)
    described |= _recheck_empty_groups(admin, described, committed)
    descriptions = {
        name: description for name, description in described.items() if isinstance(description, GroupDescription)
    }
    topics_of = {
        name: _topics_of(description, committed[name], groups[name]) for name, description in descriptions.items()
    }
    topics = _topics(admin, {topic for names in topics_of.values() for topic in names})
    for share in shares:
        committed[share.group] = admin.share_positions.locate(
            share.group, committed[share.group], ends_before, topics.end_offsets
        )
    took_s = time.monotonic() - start
    log.debug("groups observed", extra={"groups": len(groups), "took_s": took_s})
    samples: dict[str, GroupSample | PlannerError] = {}
    for name, description in described.items():
        if isinstance(description, PlannerError):
            samples[name] = description
        elif error := _missing(groups[name], topics):
            samples[name] = error
        else:
            samples[name] = _sample(
                description,
                committed[name],
                _Topics(
                    {topic: topics.routes[topic] for topic in topics_of[name]}, topics.end_offsets, topics.first_offsets
                ),
                info,
                cluster or info.cluster_id,
                at,
                took_s,
            )
    return samples


def _share_groups(described: Described) -> list[GroupDescription]:
    descriptions = [answer for answer in described.values() if isinstance(answer, GroupDescription)]
    return [description for description in descriptions if description.protocol == "share"]


def _share_ends(admin: KafkaAdmin, shares: Sequence[GroupDescription]) -> Mapping[TopicPartition, int | PlannerError]:
    """Return the newest offsets of what the members of share groups read, before their lags are asked for."""
    topics = {topic for share in shares for member in share.members for topic in member.topics or ()}
    return _topics(admin, topics).end_offsets


def _committed(admin: KafkaAdmin, described: Described) -> dict[str, Commits | PlannerError]:
    """Return what the groups that were described have committed; of share groups their lags."""
    groups = {name for name, answer in described.items() if isinstance(answer, GroupDescription)}
    shares = {share.group for share in _share_groups(described)}
    return admin.committed(groups - shares) | admin.share_lags(shares)


def _recheck_empty_groups(
    admin: KafkaAdmin, described: Described, committed: Mapping[str, Commits | PlannerError]
) -> Described:
    """Return new descriptions of groups without members and commits: a deleted group has no commits either."""
    doubtful = [
        name
        for name, description in described.items()
        if isinstance(description, GroupDescription) and not description.members and committed[name] == Commits({}, {})
    ]
    return admin.describe_groups(doubtful) if doubtful else {}


# Topics.


def _topics_of(
    description: GroupDescription, commits: Commits | PlannerError, topics: Sequence[str] | None
) -> tuple[str, ...]:
    if topics is not None:
        return tuple(sorted(set(topics)))
    subscribed = {topic for member in description.members for topic in member.topics or ()}
    owned = {partition.topic for member in description.members for partition in member.owned or ()}
    committed = (
        set()
        if isinstance(commits, PlannerError)
        else {partition.topic for partition in (*commits.offsets, *commits.errors, *commits.lags)}
    )
    return tuple(sorted(subscribed | owned | committed))


def _topics(admin: KafkaAdmin, names: Iterable[str]) -> _Topics:
    routes = admin.topics(names)
    # No broker has the offsets of a partition without leader: asking for it would only cost the deadline.
    led = [
        route.partition
        for of_topic in routes.values()
        if not isinstance(of_topic, PlannerError)
        for route in of_topic
        if route.leader is not None
    ]
    return _Topics(routes, admin.end_offsets(led), admin.first_offsets(led))


def _missing(named: Sequence[str] | None, topics: _Topics) -> PlannerError | None:
    """Return the error for a topic that was asked for by name and that does not exist."""
    errors = (topics.routes[topic] for topic in named or ())
    return next((error for error in errors if isinstance(error, PlannerError) and not _is_partial(error)), None)


def _is_partial(error: PlannerError) -> bool:
    """True for what may be only ours to see, or only now: a refusal, a broker that does not answer."""
    return error.exit_code != PlannerError.exit_code


# The sample.


def _sample(
    description: GroupDescription,
    commits: Commits | PlannerError,
    topics: _Topics,
    info: ClusterInfo,
    cluster: str,
    at: datetime,
    took_s: float,
) -> GroupSample:
    routes = [
        route for of_topic in topics.routes.values() if not isinstance(of_topic, PlannerError) for route in of_topic
    ]
    offsets = [known for route in routes if (known := _offsets(route.partition, commits, topics)) is not None]
    return GroupSample(
        system="kafka",
        cluster=cluster,
        group=description.group,
        at=at,
        took_s=took_s,
        routes=RouteTable(brokers=_brokers(info, cluster), partitions=tuple(routes)),
        members=description.members,
        offsets=tuple(offsets),
        problems=(
            *description.problems,
            *_topic_problems(topics),
            *_commit_problems(description.group, commits),
            *_end_problems(routes, topics),
            *_contradictions(offsets),
        ),
        kafka=KafkaGroup(
            state=description.state,
            protocol=description.protocol,
            assignor=description.assignor,
            epoch=description.epoch,
            coordinator=description.coordinator,
        ),
    )


def _brokers(info: ClusterInfo, cluster: str) -> tuple[BrokerAddress, ...]:
    return tuple(BrokerAddress(str(node.number), cluster, node.address) for node in info.nodes)


def _offsets(partition: TopicPartition, commits: Commits | PlannerError, topics: _Topics) -> QueueOffsets | None:
    """Return a partition's offsets, ``None`` without its end: what the group has committed shows nothing alone."""
    end, first = topics.end_offsets.get(partition), topics.first_offsets.get(partition)
    if not isinstance(end, int):
        return None
    return QueueOffsets(
        queue=partition,
        broker_offset=end,
        consumer_offset=None if isinstance(commits, PlannerError) else _consumed_to(partition, commits, end),
        first_offset=first if isinstance(first, int) else None,
    )


def _consumed_to(partition: TopicPartition, commits: Commits, end: int) -> int | None:
    lag = commits.lags.get(partition)
    return commits.offsets.get(partition, None if lag is None else max(0, end - lag))


# Problems.


def _topic_problems(topics: _Topics) -> tuple[str, ...]:
    return tuple(
        f"topic {topic}: its partitions are not known, nor is what the group committed there: {error}"
        for topic, error in topics.routes.items()
        if isinstance(error, PlannerError)
    )


def _commit_problems(group: str, commits: Commits | PlannerError) -> tuple[str, ...]:
    if isinstance(commits, PlannerError):
        return (f"group {group}: what it committed is not known: {commits}",)
    return _by_reason("has no readable commit", commits.errors)


def _end_problems(routes: Sequence[PartitionRoute], topics: _Topics) -> tuple[str, ...]:
    leaderless = [str(route.partition) for route in routes if route.leader is None]
    partitions = [route.partition for route in routes]
    without_end = {
        partition: error
        for partition in partitions
        if isinstance(error := topics.end_offsets.get(partition), PlannerError)
    }
    without_first = {
        partition: error
        for partition in partitions
        if partition not in without_end and isinstance(error := topics.first_offsets.get(partition), PlannerError)
    }
    gone = (f"without a leader, so that their offsets are not known: {_some(leaderless)}",) if leaderless else ()
    return (
        *gone,
        *_by_reason("has no readable end", without_end),
        *_by_reason("has no readable first offset", without_first),
    )


def _by_reason(what: str, errors: Mapping[TopicPartition, PlannerError]) -> tuple[str, ...]:
    """Return one sentence for all partitions of a topic, which mostly fail for the same reason."""
    by_topic: dict[str, list[TopicPartition]] = {}
    for partition in sorted(errors):
        by_topic.setdefault(partition.topic, []).append(partition)
    return tuple(
        f"topic {topic} {what} for {len(partitions)} partitions ({_some(str(each.partition) for each in partitions)}): "
        f"{errors[partitions[0]]}"
        for topic, partitions in by_topic.items()
    )


def _contradictions(offsets: Iterable[QueueOffsets]) -> tuple[str, ...]:
    ahead = [
        f"{entry.queue} ({entry.consumer_offset} of {entry.broker_offset})"
        for entry in offsets
        if entry.consumer_offset is not None and entry.consumer_offset > entry.broker_offset
    ]
    if not ahead:
        return ()
    return (f"committed is more than there is, as after a topic was made anew: {_some(ahead)}",)


def _some(names: Iterable[str]) -> str:
    listed = list(names)
    more = f" and {len(listed) - _NAMED} more" if len(listed) > _NAMED else ""
    return ", ".join(listed[:_NAMED]) + more
