"""``GroupEvidence``: everything that is known of one group, from which all checks draw."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cached_property, reduce
from operator import and_

from planner.allocation.registry import find_strategy, runnable_strategy
from planner.allocation.strategy import Strategy
from planner.history.intervals import queue_intervals
from planner.history.work import MemberWork, member_work
from planner.inference import Inference, infer, observation_of
from planner.model.deployments import Deployment
from planner.model.intervals import QueueInterval
from planner.model.membership import GroupMember, Member, OtherGroup, rocketmq_members
from planner.model.queues import Queue
from planner.model.routes import TopicRoute
from planner.model.samples import GroupSample, QueueOffsets
from planner.model.snapshot import KafkaTiming
from planner.model.systems import System, system_named
from planner.snapshot.strategy import observed_strategy
from planner.snapshot.unlisted import grpc_members, is_share_group, unlisted_consumption
from planner.text.words import queue_noun

RECENT_S = 60.0

PLAIN = ("AVG", "AVG_BY_CIRCLE")
"""Strategies without parameters."""

SETTLES_S = 25.0
"""A difference in what members see that lasts this long is no rebalance under way: clients rebalance every 20 s."""

CALM_S = 4.0
"""A leave or a crash that is noticed settles within 2 s, a join within 3 s (rocketmq.md 3.12)."""

FRESH_S = 30.0
"""A member younger than this may still be taking its queues: nothing that members see differently is judged."""

ADOPTS_ROUTES_S = 120.0
"""A member older than this has surely adopted all routes (poll 30 s, tick 20 s; 40 s observed for retry queues)."""


@dataclass(frozen=True)
class GroupEvidence:
    """One group as its ``samples`` show it, oldest first, at least one.

    ``sample_every_s`` is the pause between samples. ``stated_strategy`` and ``oldest_message_s`` (how long the oldest
    message may wait) come from the group's policy, where there is one. ``others`` are the groups that have members of
    the same client ids, as far as they were read beside it or brokers listed them.
    """

    samples: tuple[GroupSample, ...]
    sample_every_s: float = 5.0
    stated_strategy: str | None = None
    oldest_message_s: float | None = None
    timing: KafkaTiming | None = None
    others: tuple[OtherGroup, ...] = ()

    def __post_init__(self) -> None:
        if not self.samples:
            raise ValueError("a picture needs at least one sample")
        if any(earlier.at > later.at for earlier, later in zip(self.samples, self.samples[1:], strict=False)):
            raise ValueError(f"samples of group {self.samples[0].group} are not in time order")
        object.__setattr__(self, "samples", tuple(_with_hidden_ownership(sample) for sample in self.samples))

    @property
    def newest(self) -> GroupSample:
        """The last sample."""
        return self.samples[-1]

    @property
    def group(self) -> str:
        """The group's name."""
        return self.newest.group

    @property
    def system(self) -> System:
        """The system that the group runs on."""
        return system_named(self.newest.system)

    @property
    def queue_noun(self) -> str:
        """What the group's system calls a queue: ``queue`` or ``partition``."""
        return queue_noun(self.newest.system)

    @property
    def watched_s(self) -> float:
        """Seconds from the first sample to the last."""
        return (self.newest.at - self.samples[0].at).total_seconds()

    @property
    def deployment(self) -> Deployment | None:
        """The Deployment that serves the group, where it was read."""
        return self.newest.deployment

    @cached_property
    def recent(self) -> tuple[GroupSample, ...]:
        """The samples of the last minute: what they agree on is how the group is now, whatever was before."""
        span = timedelta(seconds=max(RECENT_S, 2.5 * self.sample_every_s))
        return tuple(sample for sample in self.samples if sample.at >= self.newest.at - span)

    @property
    def recent_s(self) -> float:
        """Seconds from the first of these samples to the last."""
        return (self.newest.at - self.recent[0].at).total_seconds()

    @property
    def members(self) -> tuple[GroupMember, ...]:
        """The members that are present now."""
        return self.newest.members

    @property
    def clients(self) -> tuple[str, ...]:
        """The members' names that allocation sorts by."""
        return tuple(sorted(member.identity for member in self.members))

    @cached_property
    def processes(self) -> tuple[str, ...]:
        """The member list as allocation sees it: an id that runs in two processes stands there twice.

        An id that was connected twice in a single sample has just reconnected.
        """
        connections = [_connection_counts(sample) for sample in self.recent]
        always = reduce(and_, connections) | Counter(self.clients)
        return tuple(sorted(always.elements()))

    @property
    def rocketmq_members(self) -> tuple[Member, ...]:
        """The members of a RocketMQ group; none for a Kafka group."""
        return rocketmq_members(self.members)

    @cached_property
    def silent(self) -> tuple[str, ...]:
        """Members that did not report what they own."""
        return tuple(member.identity for member in self.members if member.owned is None)

    @cached_property
    def is_broadcasting(self) -> bool:
        """True when each member reads every queue by design."""
        of_group = self.newest.rocketmq.message_models if self.newest.rocketmq else ()
        own = {tuning_property(member, "messageModel") for member in self.rocketmq_members}
        return "BROADCASTING" in {*of_group, *own}

    @cached_property
    def is_pop(self) -> bool:
        """True when the broker hands out messages (POP, server-side rebalance, share group): queues are shared."""
        consume_types = self.newest.rocketmq.consume_types if self.newest.rocketmq else ()
        return (
            self.is_share
            or "CONSUME_POP" in consume_types
            or bool(grpc_members(self.newest))
            or any(
                tuning_property(member, "clientRebalance") == "false"
                or tuning_property(member, "PROP_CONSUME_TYPE") == "CONSUME_POP"
                for member in self.rocketmq_members
            )
        )

    @property
    def is_share(self) -> bool:
        """True for a Kafka share group: it commits nothing, and a partition may have several members."""
        return is_share_group(self.newest)

    @cached_property
    def unlisted_consumption(self) -> tuple[str, ...]:
        """What shows that consumers are at work which no broker lists; empty where nothing does."""
        return unlisted_consumption(
            self.newest, [interval for of_queue in self.intervals.values() for interval in of_queue]
        )

    @property
    def has_owners(self) -> bool:
        """True when each queue should have exactly one owner: members are there and share queues out."""
        return bool(self.members) and not (self.is_broadcasting or self.is_pop)

    @cached_property
    def subscribers(self) -> Mapping[str, frozenset[str]] | None:
        """Data topic -> the members that subscribe it; ``None`` unless every member reported its subscription."""
        by_topic: dict[str, set[str]] = {}
        for member in self.members:
            topics = member.data_topics
            if topics is None:
                return None
            for topic in topics:
                by_topic.setdefault(topic, set()).add(member.identity)
        return {topic: frozenset(members) for topic, members in sorted(by_topic.items())}

    @cached_property
    def queues(self) -> tuple[Queue, ...]:
        """The data queues that the group reads by the routes: of topics that a member subscribes, sorted.

        Where subscriptions are not known, those of all topics that the group has to do with.
        """
        subscribed = self.subscribers
        read = (queue for route in self.routes for queue in route.read_queues) if self.routes else self._partitions
        return tuple(queue for queue in read if not queue.is_retry and (not subscribed or queue.topic in subscribed))

    @cached_property
    def routes(self) -> tuple[TopicRoute, ...]:
        """The newest route of each topic, in name order; none for Kafka.

        Where members subscribe differently, brokers name now the one topic and now the other.
        """
        known = {route.topic: route for sample in self.samples for route in sample.routes.topics}
        topics = {*(self.subscribers or ()), *(route.topic for route in self.newest.routes.topics)}
        return tuple(route for topic, route in sorted(known.items()) if topic in topics)

    @property
    def _partitions(self) -> tuple[Queue, ...]:
        return self.newest.routes.read_queues

    @cached_property
    def retry_queues(self) -> tuple[Queue, ...]:
        """The queues of the group's ``%RETRY%`` topic."""
        return tuple(queue for queue in self.newest.routes.read_queues if queue.is_retry)

    @cached_property
    def offsets(self) -> Mapping[Queue, QueueOffsets]:
        """The newest offsets by queue."""
        return {entry.queue: entry for entry in self.newest.offsets}

    @cached_property
    def owners(self) -> Mapping[Queue, tuple[str, ...]]:
        """The owners of each queue now, by the members' own reports."""
        return self.newest.owners

    @cached_property
    def intervals(self) -> Mapping[Queue, tuple[QueueInterval, ...]]:
        """What happened to each queue between the samples, oldest first; empty with a single sample."""
        by_queue: dict[Queue, list[QueueInterval]] = {}
        for interval in queue_intervals(self.samples, self.sample_every_s):
            by_queue.setdefault(interval.queue, []).append(interval)
        return {queue: tuple(of_queue) for queue, of_queue in by_queue.items()}

    @cached_property
    def work(self) -> tuple[MemberWork, ...]:
        """What each member works on, or the members that read the same partitions of a share group.

        The whole group is judged like one member where it pops, and where the owners are unknown.
        """
        is_hidden = len(self.silent) == len(self.members)
        shared_by = self.clients if (self.is_pop and not self.is_share) or is_hidden else ()
        return member_work(self.intervals, self.owners, self.queues, shared_by)

    @cached_property
    def arrivals(self) -> Mapping[Queue, tuple[int, float]]:
        """Messages that came into each data queue and the seconds they took; queues with a reset are left out."""
        return {
            queue: (sum(interval.arrived for interval in of_queue), sum(interval.seconds for interval in of_queue))
            for queue, of_queue in self.intervals.items()
            if not queue.is_retry and not any(interval.broker_reset for interval in of_queue)
        }

    @cached_property
    def arrival_rates(self) -> Mapping[Queue, float]:
        """Messages per second into each data queue, where known."""
        return {queue: messages / spent for queue, (messages, spent) in self.arrivals.items() if spent > 0}

    @cached_property
    def lag(self) -> int | None:
        """Messages behind over the data queues, ``None`` as soon as one is unknown."""
        lags = [self.offsets[queue].lag if queue in self.offsets else None for queue in self.queues]
        known = [lag for lag in lags if lag is not None]
        return sum(known) if len(known) == len(lags) else None

    @cached_property
    def strategy_name(self) -> str | None:
        """The strategy by the members' own reports, else by the policy."""
        return observed_strategy(self.members)[0] or self.stated_strategy

    @cached_property
    def inference(self) -> Inference | None:
        """What explains the owners of the last sample; ``None`` where queues have no single owner by design."""
        if not self.system.members_allocate or not self.has_owners:
            return None
        return infer([observation_of(self.newest)])

    @cached_property
    def strategy(self) -> Strategy | None:
        """That strategy, where owners can be computed: by its name alone, or with parameters that explain them now."""
        if self.strategy_name in PLAIN:
            return runnable_strategy(self.strategy_name)
        inference = self.inference
        if inference is None or inference.strategy is None:
            return None
        return find_strategy(inference.strategy, inference.options)

    @cached_property
    def youngest_s(self) -> float | None:
        """Seconds since the youngest member started, by its own clock; ``None`` unless all report it."""
        starts = [_started_at_ms(member) for member in self.members]
        known = [start for start in starts if start is not None]
        if not known or len(known) < len(starts):
            return None
        return self.newest.at.timestamp() - max(known) / 1000

    @cached_property
    def is_steady(self) -> bool:
        """True when nobody joined or left over the recent samples."""
        return len({frozenset(member.identity for member in sample.members) for sample in self.recent}) == 1

    @cached_property
    def is_moving(self) -> bool:
        """True when a rebalance may be under way: a member came, went or just started, or the samples are too few."""
        is_fresh = self.youngest_s is not None and self.youngest_s < FRESH_S and self.recent_s < SETTLES_S
        return not self.is_steady or is_fresh or self.recent_s < CALM_S

    @cached_property
    def has_settled(self) -> bool:
        """True when what members see differently is no rebalance under way.

        The same members for ``SETTLES_S``, or for ``CALM_S`` when all of them started ``ADOPTS_ROUTES_S`` ago.
        """
        is_old = self.youngest_s is not None and self.youngest_s >= ADOPTS_ROUTES_S
        return self.is_steady and self.recent_s >= (CALM_S if is_old else SETTLES_S)


def _with_hidden_ownership(sample: GroupSample) -> GroupSample:
    """Return the sample with an unknown ownership where a pull consumer shows no queue at all.

    ``DefaultLitePullConsumerImpl`` of 4.9 leaves the table of its queues out: empty, whatever it owns.
    """
    consume_types = sample.rocketmq.consume_types if sample.rocketmq else ()
    members = tuple(
        replace(member, owned=None) if _hides_queues(member, consume_types) else member for member in sample.members
    )
    return replace(sample, members=members) if members != sample.members else sample


def _hides_queues(member: GroupMember, consume_types: Sequence[str]) -> bool:
    pulls = tuple(consume_types) == ("CONSUME_ACTIVELY",)
    return member.owned == () and (pulls or tuning_property(member, "PROP_CONSUME_TYPE") == "CONSUME_ACTIVELY")


def _connection_counts(sample: GroupSample) -> Counter[str]:
    """Return how often each id is connected to the broker that has it most often."""
    most: Counter[str] = Counter()
    for listing in sample.listed:
        most |= Counter(listing.clients or ())
    return most


def tuning_property(member: GroupMember, name: str) -> str | None:
    """Return one of the client's own properties, ``None`` when it does not report them."""
    return dict(member.tuning.properties).get(name) if member.tuning else None


def _started_at_ms(member: GroupMember) -> int | None:
    return member.tuning.started_at_ms if member.tuning else None


def topic_sizes(queues: Sequence[Queue]) -> dict[str, int]:
    """Return how many of these queues each topic has."""
    sizes: dict[str, int] = {}
    for queue in queues:
        sizes[queue.topic] = sizes.get(queue.topic, 0) + 1
    return sizes
