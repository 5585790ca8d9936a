"""What a Kafka assignor is asked, and the group of numbers that it works on."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np

from planner.allocation import fields
from planner.allocation.kafka.group import NO_RACK, Claims, Group, IntArray, Racks, Topics
from planner.allocation.kafka.java_hash import string_hashes, walk_order
from planner.allocation.kafka.names import Claim, GroupNames, Member
from planner.allocation.ordering import java_key, java_sorted
from planner.errors import BadInputError
from planner.text.words import some

MOST_PARTITIONS = 2_000_000
"""Partitions of one request, all topics together; more are refused."""

MOST_MEMBERS = 200_000
"""Members of one request; more are refused."""

_SERVER_STRATEGIES = ("uniform", "range-server")
_COUNTED = "the real assignor counts it as the member's own until the member gives it up, so owners may differ"
_BEYOND_TOPIC = {
    "sticky": _COUNTED,
    "cooperative-sticky": _COUNTED,
    "uniform": "the real assignor fails on it, and the group gets no new target until the claim is gone",
}
"""What assignors that go by claims do with a number that an existing topic does not have (clients and server 4.4.0)."""


@dataclass(frozen=True, slots=True)
class Request:
    """What one assignor assigns to whom: ``partitions`` by topic, ``racks`` of their replicas by topic that names any.

    ``members`` are in the order in which the coordinator knows them; ``options`` are the assignor's, as
    ``find_assignor`` takes them.
    """

    strategy: str
    partitions: Mapping[str, int]
    members: tuple[Member, ...]
    racks: Mapping[str, tuple[frozenset[str], ...]] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)

    def check(self) -> None:
        """Raise ``BadInputError`` for more partitions than fit, an id or a claim that comes twice, and racks that are
        not one list for each partition."""
        _check_counts(self.partitions)
        _check_once([member.member_id for member in self.members], "id")
        _check_once([member.instance_id for member in self.members], "instance_id")
        for index, member in enumerate(self.members):
            _check_claims(member.owned, f"members[{index}].owned")
        if self.strategy in _SERVER_STRATEGIES:
            _check_single_claims(self.members)
        _check_racks(self.racks, self.partitions)


@dataclass(frozen=True, slots=True)
class NamedGroup:
    """A group of numbers and the names behind them: topics and member ids, both in Java's order."""

    group: Group
    topics: tuple[str, ...]
    member_ids: tuple[str, ...]


def missing_claims(request: Request) -> list[str]:
    """Return a sentence for each member that claims partitions which do not exist: deleted, or not created yet.

    The answer leaves all of them aside, as assignors do with claims of topics that are gone
    (``AbstractStickyAssignor#allSubscriptionsEqual``, 3.6 and later; compared with the classes of 4.4.0); a cooperative
    member gives them up and joins once more. Where the real assignor goes by a number beyond an existing topic, the
    sentence says what comes of it.
    """
    return [_missing_claim(request, member.member_id, claims) for member, claims in _missing(request) if claims]


def _missing(request: Request) -> Iterator[tuple[Member, list[Claim]]]:
    for member in request.members:
        yield member, sorted(claim for claim in member.owned if claim[1] >= request.partitions.get(claim[0], 0))


def _missing_claim(request: Request, name: str, claims: Sequence[Claim]) -> str:
    listed = some(f"{topic}/{number}" for topic, number in claims)
    sentence = f"{name} claims {listed}, which does not exist: left aside"
    is_beyond = any(request.partitions.get(topic, 0) for topic, _ in claims)
    real = _BEYOND_TOPIC.get(request.strategy) if is_beyond else None
    return sentence if real is None else f"{sentence}; {real}"


def _check_counts(partitions: Mapping[str, int]) -> None:
    total = sum(partitions.values())
    if total > MOST_PARTITIONS:
        raise BadInputError(f"partitions: found {total} in all, expected at most {MOST_PARTITIONS}")


def _check_claims(claims: Sequence[Claim], place: str) -> None:
    if len(set(claims)) == len(claims):
        return
    first: dict[Claim, int] = {}
    for index, claim in enumerate(claims):
        if first.setdefault(claim, index) != index:
            raise BadInputError(
                f"{place}[{index}]: found {fields.shown(list(claim))} again, which is {place}[{first[claim]}] "
                f"already, expected each partition once"
            )


def _check_once(names: Sequence[str | None], name: str) -> None:
    first: dict[str, int] = {}
    for index, given in enumerate(names):
        if given is not None and first.setdefault(given, index) != index:
            raise BadInputError(
                f"members[{index}].{name}: found {fields.shown(given)} again, which is members[{first[given]}].{name} "
                f"already, expected each once"
            )


def _check_single_claims(members: Sequence[Member]) -> None:
    """Refuse a partition in two members' targets: the server's current target has one owner for each."""
    owners: dict[Claim, int] = {}
    for index, member in enumerate(members):
        for claim in member.owned:
            if owners.setdefault(claim, index) != index:
                raise BadInputError(
                    f"members[{index}].owned: found {fields.shown(list(claim))}, which members[{owners[claim]}] owns "
                    f"already, expected one owner for each partition in a server-side group"
                )


def _check_racks(racks: Mapping[str, Sequence[object]], partitions: Mapping[str, int]) -> None:
    for topic, lists in racks.items():
        if len(lists) != partitions.get(topic, 0):
            raise BadInputError(
                f"options.partition_racks[{topic!r}]: found {len(lists)} lists of racks, expected "
                f"{partitions.get(topic, 0)}, one for each partition"
            )


def named_group(request: Request) -> NamedGroup:
    """Return the group of numbers: subscribed topics with partitions in Java's order, members in the order of ids."""
    subscribed = set(chain.from_iterable(member.topics for member in request.members))
    names = tuple(java_sorted(topic for topic in subscribed if request.partitions.get(topic, 0) > 0))
    topics = Topics(tuple(request.partitions[topic] for topic in names), tuple(string_hashes(names).tolist()))
    member_ids = tuple(java_sorted(member.member_id for member in request.members))
    number_of = {member_id: number for number, member_id in enumerate(member_ids)}
    members = sorted(request.members, key=lambda member: number_of[member.member_id])
    document_order = np.array([number_of[member.member_id] for member in request.members], dtype=np.intp)
    group = Group(
        topics,
        len(members),
        _subscribers(members, names),
        len({member.topics for member in members}) <= 1,
        _ring(members),
        document_order[walk_order([member.member_id for member in request.members])],
        _numbered_claims(members, names, topics),
        _numbered_racks(request, members, names),
        _topicless(members),
        GroupNames(names, tuple(members), request.racks),
    )
    return NamedGroup(group, names, member_ids)


def _subscribers(members: Sequence[Member], names: Sequence[str]) -> tuple[IntArray, ...]:
    everybody = np.arange(len(members), dtype=np.intp)
    if len({member.topics for member in members}) <= 1:
        return (everybody,) * len(names)
    by_topic: dict[str, list[int]] = {name: [] for name in names}
    for number, member in enumerate(members):
        for topic in member.topics & by_topic.keys():
            by_topic[topic].append(number)
    return tuple(np.array(by_topic[name], dtype=np.intp) for name in names)


def _topicless(members: Sequence[Member]) -> frozenset[int]:
    """Return the members without topics, if there are some and all others are alike."""
    if len({member.topics for member in members}) != 2:
        return frozenset()
    return frozenset(number for number, member in enumerate(members) if not member.topics)


def _ring(members: Sequence[Member]) -> IntArray:
    """Return the members as ``MemberInfo#compareTo`` sorts them: static ones by instance id, then the others by id."""
    static = [number for number, member in enumerate(members) if member.instance_id is not None]
    static.sort(key=lambda number: java_key(members[number].instance_id or ""))
    dynamic = [number for number, member in enumerate(members) if member.instance_id is None]
    return np.array(static + dynamic, dtype=np.intp)


def _numbered_claims(members: Sequence[Member], names: Sequence[str], topics: Topics) -> Claims:
    starts = dict(zip(names, topics.starts.tolist(), strict=False))
    sizes = dict(zip(names, topics.sizes, strict=True))
    holders: list[int] = []
    partitions: list[int] = []
    foreign: set[int] = set()
    for number, member in enumerate(members):
        for topic, partition in member.owned:
            if topic in starts and partition < sizes[topic]:
                holders.append(number)
                partitions.append(starts[topic] + partition)
            else:
                foreign.add(number)
    generations = np.array([member.generation for member in members], dtype=np.intp)
    return Claims(
        np.array(holders, dtype=np.intp), np.array(partitions, dtype=np.intp), generations, frozenset(foreign)
    )


def _numbered_racks(request: Request, members: Sequence[Member], names: Sequence[str]) -> Racks | None:
    if not any(member.rack for member in members) or not request.racks:
        return None
    numbers: dict[str, int] = {}
    of_member = tuple(numbers.setdefault(member.rack, len(numbers)) if member.rack else NO_RACK for member in members)
    of_partition: list[tuple[int, ...]] = []
    for name in names:
        of_partition += _rack_numbers(request.racks.get(name, ((),) * request.partitions[name]), numbers)
    return Racks(of_member, tuple(of_partition))


def _rack_numbers(lists: Iterable[Iterable[str]], numbers: dict[str, int]) -> list[tuple[int, ...]]:
    return [tuple(numbers.setdefault(rack, len(numbers)) for rack in sorted(racks)) for racks in lists]
