"""A Kafka consumer group as integer arrays: what every assignor reads.

Partitions of all subscribed topics are numbered through, topics in name order, partitions ascending; members are
numbered in the order of their ids. Names come back only in the answer; a user's own assignor sees them, too.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from planner.allocation.kafka.names import NO_GENERATION, GroupNames

IntArray = NDArray[np.intp]
BoolArray = NDArray[np.bool_]

NOBODY = -1
NO_RACK = -1

_LARGEST_RADIX = np.iinfo(np.uint16).max


@dataclass(frozen=True)
class Topics:
    """The topics that a member subscribes to and that have partitions, in Java's name order.

    ``sizes`` are the partition counts, all at least 1. ``hashes`` are the names' ``String#hashCode``; without them
    (a group that is only numbers) a tie that Java breaks by hash is broken as if all topics had the same.
    """

    sizes: tuple[int, ...]
    hashes: tuple[int, ...] = ()

    @cached_property
    def starts(self) -> IntArray:
        """The number of each topic's partition 0, and at the end the count of all partitions."""
        return np.concatenate(([0], np.cumsum(self.sizes, dtype=np.intp))).astype(np.intp)

    @property
    def partition_count(self) -> int:
        """The partitions of all topics together."""
        return int(self.starts[-1])

    @cached_property
    def topic_of(self) -> IntArray:
        """The topic of each partition."""
        return np.repeat(np.arange(len(self.sizes), dtype=np.intp), self.sizes)

    @cached_property
    def number_of(self) -> IntArray:
        """The partition number of each partition within its topic."""
        return np.arange(self.partition_count, dtype=np.intp) - self.starts[self.topic_of]

    @cached_property
    def by_number(self) -> IntArray:
        """All partitions ordered by partition number, then topic: the order in which constrained sticky keeps them."""
        return np.argsort(self.number_of, kind="stable")

    def topics_of(self, partitions: IntArray) -> IntArray:
        """Return the topic of each of some partitions, without a table of all."""
        return np.searchsorted(self.starts, partitions, side="right") - 1

    def block(self, topic: int) -> slice:
        """Return the stretch of one topic's partitions."""
        return slice(int(self.starts[topic]), int(self.starts[topic + 1]))

    def partition_hash(self, partition: int) -> int:
        """Return ``TopicPartition#hashCode`` as an unsigned 32 bit number."""
        topic = int(self.topic_of[partition])
        name_hash = self.hashes[topic] if self.hashes else 0
        return (31 * (31 + int(self.number_of[partition])) + name_hash) & 0xFFFFFFFF


@dataclass(frozen=True)
class Claims:
    """What members say they own: member ``members[k]`` claims partition ``partitions[k]``.

    ``generations`` has one entry a member, ``NO_GENERATION`` where it has none. ``foreign`` are members that claim
    something outside the numbered partitions (a topic nobody subscribes to): they give it up whatever happens.
    ``owners`` says the same by partition where nothing is claimed twice.
    """

    members: IntArray
    partitions: IntArray
    generations: IntArray
    foreign: frozenset[int] = frozenset()
    owners: IntArray | None = None


@dataclass(frozen=True)
class Racks:
    """Where members run and replicas lie: rack numbers, ``NO_RACK`` for a member without one."""

    of_member: tuple[int, ...]
    of_partition: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Group:
    """A group as the assignors see it.

    ``subscribers`` lists for each topic its members, ascending. ``is_uniform`` says that all members subscribe to the
    same names, topics without partitions included. ``ring`` has the members in the order of ``range`` and
    ``roundrobin`` (static ones first), ``walk`` in the order in which Java's hash map holds them. ``topicless`` are the
    members that subscribe to nothing, where all the others subscribe to the same names. ``names`` are those behind the
    numbers, where the group is more than numbers.
    """

    topics: Topics
    member_count: int
    subscribers: tuple[IntArray, ...]
    is_uniform: bool
    ring: IntArray
    walk: IntArray
    claims: Claims
    racks: Racks | None = None
    topicless: frozenset[int] = frozenset()
    names: GroupNames | None = None

    @property
    def passes_for_uniform(self) -> bool:
        """True when the sticky assignors take a mixed group for a uniform one.

        They compare with the first subscription that is not empty, so members without topics go unnoticed when they
        are all met before the others.
        """
        return bool(self.topicless) and self.topicless == set(self.walk[: len(self.topicless)].tolist())

    def claimed_owners(self) -> IntArray:
        """Return the owner that claims each partition, ``NOBODY`` for none; of several the last one."""
        if self.claims.owners is not None:
            return self.claims.owners.copy()
        owners = nobody(self.topics.partition_count)
        owners[self.claims.partitions] = self.claims.members
        return owners

    @cached_property
    def subscription_keys(self) -> IntArray:
        """``topic × members + member`` of every subscription, ascending: who may own what, ready to search."""
        if not self.subscribers:
            return np.empty(0, dtype=np.intp)
        return np.concatenate(
            [topic * self.member_count + members for topic, members in enumerate(self.subscribers)]
        ).astype(np.intp)

    def may_own(self, members: IntArray, partitions: IntArray) -> BoolArray:
        """Return for each pair whether the member subscribes to the partition's topic."""
        keys = self.subscription_keys
        if len(keys) == 0:
            return np.zeros(len(members), dtype=np.bool_)
        pairs = self.topics.topic_of[partitions] * self.member_count + members
        indexes = np.minimum(np.searchsorted(keys, pairs), len(keys) - 1)
        return np.asarray(keys[indexes] == pairs, dtype=np.bool_)


@dataclass(frozen=True)
class Outcome:
    """Who owns each partition after an assignor ran.

    ``owners`` has one member a partition, ``NOBODY`` where nobody subscribes. ``is_determined`` is False where Java's
    hash-map order (or chance) decided something; the answer is then one of several valid ones. ``withheld`` marks
    what a cooperative leader keeps back in this round; ``owners`` still names the member that will get it.
    """

    owners: IntArray
    is_determined: bool = True
    withheld: BoolArray | None = None
    warnings: tuple[str, ...] = ()


def nobody(partition_count: int) -> IntArray:
    """Return owners that leave every partition unowned."""
    return np.full(partition_count, NOBODY, dtype=np.intp)


def no_claims(member_count: int) -> Claims:
    """Return the claims of members that all start fresh."""
    nothing = np.empty(0, dtype=np.intp)
    return Claims(nothing, nothing, np.full(member_count, NO_GENERATION, dtype=np.intp))


def claims_from_owners(owners: IntArray, member_count: int, generation: int = 0) -> Claims:
    """Return the claims of members that all own what ``owners`` says, in one generation."""
    owned = np.flatnonzero(owners != NOBODY)
    return Claims(owners[owned], owned, np.full(member_count, generation, dtype=np.intp), owners=owners)


def equal_group(topics: Topics, member_count: int, owners: IntArray | None = None) -> Group:
    """Return a group of dynamic members that all subscribe to all topics, for the planner's inner loops.

    ``owners`` is the ownership before, ``NOBODY`` for what a leaver owned; ``None`` for a fresh start. Members stand
    for ids in sorted order; as their real hash order is unknown, they are walked in that order.

    >>> from planner.allocation.kafka.sticky import sticky
    >>> sticky(equal_group(Topics((4,)), 2)).owners.tolist()
    [0, 1, 0, 1]
    """
    members = np.arange(member_count, dtype=np.intp)
    claims = no_claims(member_count) if owners is None else claims_from_owners(owners, member_count)
    return Group(topics, member_count, (members,) * len(topics.sizes), True, members, members, claims)


def mixed_group(
    topics: Topics, subscribers: Sequence[IntArray], member_count: int, owners: IntArray | None = None
) -> Group:
    """Return a group of dynamic members with the given subscribers of each topic (members ascending)."""
    members = np.arange(member_count, dtype=np.intp)
    claims = no_claims(member_count) if owners is None else claims_from_owners(owners, member_count)
    is_uniform = all(len(members_of_topic) == member_count for members_of_topic in subscribers)
    return Group(topics, member_count, tuple(subscribers), is_uniform, members, members, claims)


def grouped(keys: IntArray, key_count: int) -> IntArray:
    """Return the indexes that sort small non-negative keys, equal ones in place: by radix where numpy has one."""
    if key_count <= _LARGEST_RADIX:
        return np.argsort(keys.astype(np.uint16), kind="stable")
    return np.argsort(keys, kind="stable")


def ranks_within(sorted_keys: IntArray, key_count: int) -> IntArray:
    """Return for each entry of sorted keys its place among those with the same key: 0 0 2 2 2 gives 0 1 0 1 2."""
    starts = np.searchsorted(sorted_keys, np.arange(key_count))
    return np.arange(len(sorted_keys), dtype=np.intp) - starts[sorted_keys]
