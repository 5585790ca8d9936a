"""The Kafka request of ``planner allocate``, checked at the door and turned into a group of numbers."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from planner.allocation import fields
from planner.allocation.kafka.group import NO_GENERATION, NO_RACK, Claims, Group, IntArray, Racks, Topics
from planner.allocation.kafka.java_hash import string_hashes, walk_order
from planner.allocation.ordering import java_key, java_sorted
from planner.errors import BadInputError

MOST_PARTITIONS = 2_000_000
"""Partitions of one request, all topics together; more are refused."""

MOST_MEMBERS = 200_000
"""Members of one request; more are refused."""

LARGEST_GENERATION = 2**31 - 1

_FIELDS = ("system", "strategy", "group", "partitions", "members", "options")
_MEMBER_FIELDS = ("id", "instance_id", "rack", "topics", "owned", "generation")
_SERVER_STRATEGIES = ("uniform", "range-server")

Claim = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Member:
    """One member as the request has it; ``generation`` is ``NO_GENERATION`` and ``rack`` empty where it has none."""

    member_id: str
    instance_id: str | None
    rack: str
    topics: frozenset[str]
    owned: tuple[Claim, ...]
    generation: int


@dataclass(frozen=True, slots=True)
class Request:
    """A checked request: ``members`` in the document's order, ``racks`` by topic for the topics that name any."""

    strategy: str
    partitions: Mapping[str, int]
    members: tuple[Member, ...]
    racks: Mapping[str, tuple[frozenset[str], ...]]


@dataclass(frozen=True, slots=True)
class NamedGroup:
    """A group of numbers and the names behind them: topics and member ids, both in Java's order."""

    group: Group
    topics: tuple[str, ...]
    member_ids: tuple[str, ...]


def read_request(document: Mapping[str, Any]) -> Request:
    """Return the checked request; raise ``BadInputError`` naming field, value and expectation."""
    document = fields.mapping(document, "request")
    fields.only_known(document, _FIELDS, "request")
    if document.get("system", "kafka") != "kafka":
        raise fields.refusal("system", document["system"], "kafka")
    for name in ("strategy", "partitions", "members"):
        if name not in document:
            raise fields.missing(name, _EXPECTED[name])
    strategy = fields.text(document["strategy"], "strategy", _EXPECTED["strategy"])
    if not isinstance(document.get("group", ""), str):
        raise fields.refusal("group", document["group"], "a text")
    partitions = _partitions(document["partitions"])
    members = _members(document["members"], partitions)
    _check_once([member.member_id for member in members], "id")
    _check_once([member.instance_id for member in members], "instance_id")
    if strategy in _SERVER_STRATEGIES:
        _check_single_claims(members)
    options = document.get("options")
    options = {} if options is None else fields.mapping(options, "options")
    return Request(strategy, partitions, members, _racks(options.get("partition_racks"), partitions))


_EXPECTED = {
    "strategy": "the name of an assignor",
    "partitions": "an object from topic to its count of partitions",
    "members": "a list of members",
}


def _partitions(value: object) -> dict[str, int]:
    counts = {
        fields.text(topic, "partitions", "topic names that are not empty"): fields.whole_number(
            count, f"partitions[{topic!r}]", 0, MOST_PARTITIONS
        )
        for topic, count in fields.mapping(value, "partitions", _EXPECTED["partitions"]).items()
    }
    total = sum(counts.values())
    if total > MOST_PARTITIONS:
        raise BadInputError(f"partitions: found {total} in all, expected at most {MOST_PARTITIONS}")
    return counts


def _members(value: object, partitions: Mapping[str, int]) -> tuple[Member, ...]:
    items = fields.sequence(value, "members", _EXPECTED["members"])
    if len(items) > MOST_MEMBERS:
        raise BadInputError(f"members: found {len(items)}, expected at most {MOST_MEMBERS}")
    return tuple(_member(item, f"members[{index}]", partitions) for index, item in enumerate(items))


def _member(value: object, field: str, partitions: Mapping[str, int]) -> Member:
    document = fields.mapping(value, field, 'an object such as {"id": "c0", "topics": ["t0"]}')
    fields.only_known(document, _MEMBER_FIELDS, field)
    for name, expected in (("id", "a text that is not empty"), ("topics", "a list of topic names")):
        if name not in document:
            raise fields.missing(f"{field}.{name}", expected)
    instance_id = document.get("instance_id")
    if instance_id is not None:
        fields.text(instance_id, f"{field}.instance_id", "null or a text that is not empty")
    topics = fields.sequence(document["topics"], f"{field}.topics", "a list of topic names")
    for index, topic in enumerate(topics):
        fields.text(topic, f"{field}.topics[{index}]")
    return Member(
        fields.text(document["id"], f"{field}.id"),
        instance_id,
        _rack(document.get("rack"), f"{field}.rack"),
        frozenset(topics),
        _claims(document.get("owned"), f"{field}.owned", partitions),
        _generation(document.get("generation"), f"{field}.generation"),
    )


def _rack(value: object, field: str) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise fields.refusal(field, value, "null or the name of a rack")
    return value


def _generation(value: object, field: str) -> int:
    if value is None:
        return NO_GENERATION
    return fields.whole_number(value, field, NO_GENERATION, LARGEST_GENERATION)


def _claims(value: object, field: str, partitions: Mapping[str, int]) -> tuple[Claim, ...]:
    if value is None:
        return ()
    items = fields.sequence(value, field, _CLAIMS_EXPECTED)
    claims = tuple(_claim(item, field, index, partitions) for index, item in enumerate(items))
    if len(set(claims)) < len(claims):
        first: dict[Claim, int] = {}
        for index, claim in enumerate(claims):
            if first.setdefault(claim, index) != index:
                raise BadInputError(
                    f"{field}[{index}]: found {fields.shown(list(claim))} again, which is {field}[{first[claim]}] "
                    f"already, expected each partition once"
                )
    return claims


_CLAIMS_EXPECTED = 'a list of partitions such as [["t0", 0]]'


def _claim(item: object, field: str, index: int, partitions: Mapping[str, int]) -> Claim:
    if not isinstance(item, list | tuple) or len(item) != 2:
        raise fields.refusal(f"{field}[{index}]", item, 'a topic and a partition number such as ["t0", 0]')
    topic, number = item
    if not isinstance(topic, str) or not isinstance(number, int) or isinstance(number, bool):
        raise fields.refusal(f"{field}[{index}]", item, 'a topic and a partition number such as ["t0", 0]')
    count = partitions.get(topic, 0)
    if not 0 <= number < count:
        expected = (
            f"one of the {count} partitions of {topic}" if count else f"a topic with partitions, {topic} has none"
        )
        raise fields.refusal(f"{field}[{index}]", item, expected)
    return topic, number


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


def _racks(value: object, partitions: Mapping[str, int]) -> dict[str, tuple[frozenset[str], ...]]:
    if value is None:
        return {}
    field, expected = "options.partition_racks", "an object from topic to one list of racks for each partition"
    by_topic: dict[str, tuple[frozenset[str], ...]] = {}
    for topic, given in fields.mapping(value, field, expected).items():
        location = f"{field}[{topic!r}]"
        lists = fields.sequence(given, location, "one list of racks for each partition")
        count = partitions.get(topic, 0)
        if len(lists) != count:
            raise BadInputError(
                f"{location}: found {len(lists)} lists of racks, expected {count}, one for each partition"
            )
        by_topic[topic] = tuple(_replica_racks(racks, f"{location}[{index}]") for index, racks in enumerate(lists))
    return by_topic


def _replica_racks(value: object, field: str) -> frozenset[str]:
    racks = fields.sequence(value, field, "a list of rack names")
    return frozenset(_rack(rack, f"{field}[{index}]") for index, rack in enumerate(racks)) - {""}


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
    holders: list[int] = []
    partitions: list[int] = []
    foreign: set[int] = set()
    for number, member in enumerate(members):
        for topic, partition in member.owned:
            if topic in starts:
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
